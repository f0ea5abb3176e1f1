"""Our sockets and the kubelet's own client code over grpc-go, dialling as the kubelet dials."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest

from fishplate.errors import OutsideError
from fishplate.wire.kubelet import Prepared, PreparedDevice
from fishplate.wire.kubelet_server import KubeletServer, RegistrationPhase, SocketPaths, plan_socket_paths
from oracle.peers import Peer, PeerError
from tests.recording import Claims, healthy, until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.go

CLAIM = {"namespace": "ns", "name": "nic", "uid": "uid-1"}
Body = Callable[[Peer, KubeletServer, Claims, SocketPaths], Awaitable[None]]


def run(binary: Path, folder: Path, body: Body, *, health: bool = True) -> None:
    async def test() -> None:
        handler = Claims()
        paths = plan_socket_paths("dra.net", plugins=folder / "plugins", registry=folder / "registry")
        async with (
            KubeletServer(handler, driver="dra.net", paths=paths, health=health) as server,
            Peer(binary) as peer,
        ):
            await body(peer, server, handler, paths)

    asyncio.run(test())


def test_the_registration_socket_answers_a_client_whose_authority_is_the_path(
    kubelet_binary: Path, tmp_path: Path
) -> None:
    async def body(peer: Peer, server: KubeletServer, handler: Claims, paths: SocketPaths) -> None:
        info = await peer.ask("info", socket=str(paths.registration))
        assert (info["type"], info["name"], info["endpoint"]) == ("DRAPlugin", "dra.net", str(paths.service))
        assert info["versions"] == [
            *("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")
        ]

    run(kubelet_binary, tmp_path, body)


def test_registration_and_refusal_are_noted(kubelet_binary: Path, tmp_path: Path) -> None:
    async def body(peer: Peer, server: KubeletServer, handler: Claims, paths: SocketPaths) -> None:
        phases = [server.registration.phase]
        await peer.ask("notify", socket=str(paths.registration), registered=True)
        phases.append(server.registration.phase)
        await peer.ask("notify", socket=str(paths.registration), registered=False, error="endpoint already registered")
        phases.append(server.registration.phase)
        assert phases == [RegistrationPhase.WAITING, RegistrationPhase.REGISTERED, RegistrationPhase.REFUSED]
        assert (server.registration.error, server.registration.notifications) == ("endpoint already registered", 2)

    run(kubelet_binary, tmp_path, body)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_claims_are_prepared_and_unprepared(kubelet_binary: Path, tmp_path: Path, version: str) -> None:
    async def body(peer: Peer, server: KubeletServer, handler: Claims, paths: SocketPaths) -> None:
        ask = {"socket": str(paths.service), "version": version, "claims": [CLAIM, {**CLAIM, "uid": "uid-2"}]}
        prepared = await peer.ask("prepare", **ask)
        assert set(prepared) == {"uid-1", "uid-2"}
        device = prepared["uid-1"]["devices"][0]
        assert (device["pool_name"], device["device_name"], device["request_names"]) == ("node-a", "ib0", ["nic"])
        assert device["cdi_device_ids"] == ["fishplate.example/net=ib0"]
        assert ("share_id" in device) == (version == "v1")
        assert set(await peer.ask("unprepare", **ask)) == {"uid-1", "uid-2"}
        assert handler.asked == ["prepare ns/nic uid-1, ns/nic uid-2", "unprepare ns/nic uid-1, ns/nic uid-2"]

    run(kubelet_binary, tmp_path, body)


def test_every_claim_gets_one_answer_whatever_the_driver_does(kubelet_binary: Path, tmp_path: Path) -> None:
    async def body(peer: Peer, server: KubeletServer, handler: Claims, paths: SocketPaths) -> None:
        ask = {"socket": str(paths.service), "version": "v1", "claims": [CLAIM]}
        handler.answers = {"somebody-else": Prepared()}
        assert await peer.ask("prepare", **ask) == {"uid-1": {"error": "the driver gave no answer for this claim"}}
        handler.refusal = OutsideError("claim ns/nic got replaced")
        assert await peer.ask("prepare", **ask) == {"uid-1": {"error": "claim ns/nic got replaced"}}
        handler.refusal = ValueError("oh")
        assert await peer.ask("unprepare", **ask) == {"uid-1": {"error": "internal error: ValueError: oh"}}

    run(kubelet_binary, tmp_path, body)


def test_an_answer_of_a_megabyte_arrives(kubelet_binary: Path, tmp_path: Path) -> None:
    async def body(peer: Peer, server: KubeletServer, handler: Claims, paths: SocketPaths) -> None:
        device = PreparedDevice(pool="p", device="d", cdi_device_ids=("x" * (1 << 20),))
        handler.answers = {"uid-1": Prepared(devices=(device,))}
        answer = await peer.ask("prepare", socket=str(paths.service), version="v1", claims=[CLAIM])
        assert len(answer["uid-1"]["devices"][0]["cdi_device_ids"][0]) == 1 << 20

    run(kubelet_binary, tmp_path, body)


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_health_is_streamed(kubelet_binary: Path, tmp_path: Path, version: str) -> None:
    async def body(peer: Peer, server: KubeletServer, handler: Claims, paths: SocketPaths) -> None:
        handler.tell([healthy("ib0")])
        watch = asyncio.create_task(peer.ask("watch", socket=str(paths.service), version=version, count=2))
        await until(lambda: handler.watching == 1)
        handler.tell([healthy("ib0", message="ü" * 2000), healthy("ib1")])
        first, second = await watch
        assert [one["device"]["device_name"] for one in first] == ["ib0"]
        assert [one["device"]["device_name"] for one in second] == ["ib0", "ib1"]
        assert (first[0]["health"], first[0]["last_updated_time"]) == (1, 1_700_000_000)
        assert second[0]["message"] == "ü" * 512

    run(kubelet_binary, tmp_path, body)


def test_a_driver_without_health_says_so(kubelet_binary: Path, tmp_path: Path) -> None:
    async def body(peer: Peer, server: KubeletServer, handler: Claims, paths: SocketPaths) -> None:
        info = await peer.ask("info", socket=str(paths.registration))
        assert info["versions"] == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
        with pytest.raises(PeerError, match="Unimplemented"):
            await peer.ask("watch", socket=str(paths.service), version="v1", count=1)

    run(kubelet_binary, tmp_path, body, health=False)


def test_a_health_stream_ends_as_unavailable_when_the_driver_stops(kubelet_binary: Path, tmp_path: Path) -> None:
    async def body(peer: Peer, server: KubeletServer, handler: Claims, paths: SocketPaths) -> None:
        handler.tell([healthy("ib0")])
        watch = asyncio.create_task(peer.ask("watch", socket=str(paths.service), version="v1", count=2))
        await until(lambda: handler.watching == 1)
        await server.stop(grace=600)  # a stream has no end of its own: nobody waits for it
        assert handler.watching == 0
        with pytest.raises(PeerError, match="Unavailable"):
            await watch

    run(kubelet_binary, tmp_path, body)


def test_a_health_stream_of_many_large_answers_arrives_whole(kubelet_binary: Path, tmp_path: Path) -> None:
    async def body(peer: Peer, server: KubeletServer, handler: Claims, paths: SocketPaths) -> None:
        devices = [healthy(f"ib{number}", message="m" * 1000) for number in range(100)]
        handler.tell(devices)
        watch = asyncio.create_task(peer.ask("watch", socket=str(paths.service), version="v1", count=30))
        while not watch.done():
            handler.tell(devices)
            await asyncio.sleep(0)
        answers = await watch
        assert [len(answer) for answer in answers] == [100] * 30
        assert all(one["message"] == "m" * 1000 for answer in answers for one in answer)
        await until(lambda: handler.watching == 0)  # the client is gone

    run(kubelet_binary, tmp_path, body)


@pytest.mark.parametrize(("claims", "fits"), [(11_000, True), (12_000, False)])
def test_a_request_may_have_a_megabyte(kubelet_binary: Path, tmp_path: Path, claims: int, fits: bool) -> None:
    async def body(peer: Peer, server: KubeletServer, handler: Claims, paths: SocketPaths) -> None:
        many = [{**CLAIM, "uid": f"{number:0>80}"} for number in range(claims)]  # 93 bytes each
        ask = peer.ask("unprepare", socket=str(paths.service), version="v1", claims=many)
        if fits:
            assert len(await ask) == claims
        else:
            with pytest.raises(PeerError, match="ResourceExhausted"):
                await ask

    run(kubelet_binary, tmp_path, body)


def test_a_kubelet_that_calls_for_long_is_not_taken_for_a_flood(kubelet_binary: Path, tmp_path: Path) -> None:
    """grpc-go measures the line with a PING for each answer."""

    async def body(peer: Peer, server: KubeletServer, handler: Claims, paths: SocketPaths) -> None:
        await peer.ask("rounds", socket=str(paths.service), claims=[CLAIM], count=3000)
        assert len(handler.asked) == 6000

    run(kubelet_binary, tmp_path, body)
