"""The kubelet's sockets with our own client: order, modes, both versions, and the end."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import stat
from typing import TYPE_CHECKING

import pytest

from fishplate.errors import OutsideError
from fishplate.wire import kubelet_codec as codec
from fishplate.wire.grpc_client import Channel
from fishplate.wire.kubelet import ClaimRef, Prepared
from fishplate.wire.kubelet_client import Kubelet
from fishplate.wire.kubelet_server import (
    KubeletServer,
    Registration,
    RegistrationPhase,
    SocketPaths,
    plan_socket_paths,
)
from fishplate.wire.ttrpc import Code, StatusError
from tests.recording import Claims, healthy, until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CLAIMS = [ClaimRef(namespace="ns", name="nic", uid="u1"), ClaimRef(namespace="ns", name="gpu", uid="u2")]


def plan(folder: Path, pod_uid: str = "") -> SocketPaths:
    return plan_socket_paths("dra.net", plugins=folder / "p", registry=folder / "r", pod_uid=pod_uid)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_socket())


@pytest.mark.parametrize("version", ["v1.DRAPlugin", "v1beta1.DRAPlugin"])
def test_a_kubelet_registers_prepares_and_unprepares(tmp_path: Path, version: str) -> None:
    async def test() -> None:
        handler, paths, seen = Claims(), plan(tmp_path), list[Registration]()
        async with (
            KubeletServer(handler, driver="dra.net", paths=paths, on_change=seen.append) as server,
            await Kubelet.register(paths.registration, known=[version]) as kubelet,
        ):
            await server.wait_until(RegistrationPhase.REGISTERED)
            assert kubelet.version == version
            prepared = await kubelet.prepare(CLAIMS)
            assert await kubelet.unprepare(CLAIMS) == {"u1": "", "u2": ""}
        assert prepared["u1"].devices[0].cdi_device_ids == ("fishplate.example/net=ib0",)
        assert handler.asked == ["prepare ns/nic u1, ns/gpu u2", "unprepare ns/nic u1, ns/gpu u2"]
        assert [state.phase for state in seen] == [RegistrationPhase.REGISTERED, RegistrationPhase.STOPPED]

    asyncio.run(test())


def test_a_kubelet_that_knows_no_version_of_ours_says_so(tmp_path: Path) -> None:
    async def test() -> None:
        paths = plan(tmp_path)
        async with KubeletServer(Claims(), driver="dra.net", paths=paths) as server:
            with pytest.raises(OutsideError, match=r"none of v1\.DRAPlugin"):
                await Kubelet.register(paths.registration, known=["v9.DRAPlugin"])
            assert server.registration.phase is RegistrationPhase.REFUSED
            assert "none of v1.DRAPlugin" in server.registration.error

    asyncio.run(test())


def test_every_claim_gets_exactly_one_answer(tmp_path: Path) -> None:
    async def test() -> None:
        handler, paths = Claims(), plan(tmp_path)
        async with (
            KubeletServer(handler, driver="dra.net", paths=paths),
            await Kubelet.register(paths.registration) as kubelet,
        ):
            handler.answers = {"u1": Prepared(), "nobody": Prepared()}
            answers = await kubelet.prepare(CLAIMS)
            assert {uid: answer.error for uid, answer in answers.items()} == {
                "u1": "",
                "u2": "the driver gave no answer for this claim",
            }
            handler.refusal = OutsideError("claim got replaced", remedy="delete the pod")
            answers = await kubelet.prepare(CLAIMS)
            assert {answer.error for answer in answers.values()} == {"claim got replaced\n  delete the pod"}
            handler.refusal = ZeroDivisionError("oh")
            assert set((await kubelet.unprepare(CLAIMS)).values()) == {"internal error: ZeroDivisionError: oh"}

    asyncio.run(test())


def test_health_reaches_every_watcher_of_either_version(tmp_path: Path) -> None:
    async def test() -> None:
        handler, paths = Claims(), plan(tmp_path)
        async with (
            KubeletServer(handler, driver="dra.net", paths=paths),
            await Kubelet.register(paths.registration) as kubelet,
        ):
            for version in ("v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"):
                handler.tell([healthy("ib0")])
                async with contextlib.aclosing(kubelet.watch_health(version)) as watch:
                    assert await anext(watch) == [healthy("ib0")]
                    handler.tell([healthy("ib0", message="link up")])
                    assert await anext(watch) == [healthy("ib0", message="link up")]
                await until(lambda: handler.watching == 0)  # nobody goes on working for a kubelet that left

    asyncio.run(test())


def test_sockets_are_for_root_alone_and_gone_after_a_clean_stop(tmp_path: Path) -> None:
    async def test() -> None:
        paths = plan(tmp_path, "pod-1")
        async with KubeletServer(Claims(), driver="dra.net", paths=paths) as server:
            assert files(tmp_path) == ["dra-pod-1.sock", "dra.net-pod-1-reg.sock"]
            assert {stat.S_IMODE(path.stat().st_mode) for path in (paths.service, paths.registration)} == {0o600}
            assert server.is_reachable
        assert files(tmp_path) == []
        assert not server.is_reachable
        assert server.registration.phase is RegistrationPhase.STOPPED

    asyncio.run(test())


def test_a_stale_socket_of_a_crash_is_replaced(tmp_path: Path) -> None:
    async def test() -> None:
        paths = plan(tmp_path)
        for path in (paths.service, paths.registration):
            path.parent.mkdir(parents=True)
            with socket.socket(socket.AF_UNIX) as crashed:
                crashed.bind(str(path))
        async with (
            KubeletServer(Claims(), driver="dra.net", paths=paths),
            await Kubelet.register(paths.registration) as kubelet,
        ):
            assert await kubelet.prepare(CLAIMS)

    asyncio.run(test())


def test_a_successor_keeps_its_sockets_when_the_predecessor_ends(tmp_path: Path) -> None:
    async def test() -> None:
        paths = plan(tmp_path)
        old = KubeletServer(Claims(), driver="dra.net", paths=paths)
        await old.start()
        async with KubeletServer(Claims(), driver="dra.net", paths=paths) as new:
            assert not old.is_reachable
            await old.stop()
            assert new.is_reachable
            async with await Kubelet.register(paths.registration) as kubelet:
                assert await kubelet.prepare(CLAIMS)

    asyncio.run(test())


def test_the_service_is_there_before_the_registration_socket(tmp_path: Path) -> None:
    """What blocks the registration socket leaves the service socket made, and taken away again."""

    async def test() -> None:
        paths = plan(tmp_path)
        paths.registration.parent.mkdir(parents=True)
        paths.registration.write_text("not a socket")
        server = KubeletServer(Claims(), driver="dra.net", paths=paths)
        with pytest.raises(OutsideError, match="no socket"):
            await server.start()
        assert paths.service.parent.is_dir()
        assert files(tmp_path) == []

    asyncio.run(test())


def test_nothing_is_left_of_a_start_that_failed(tmp_path: Path) -> None:
    async def test() -> None:
        paths = plan(tmp_path)
        paths.service.parent.mkdir(parents=True)
        paths.service.write_text("not a socket")
        server = KubeletServer(Claims(), driver="dra.net", paths=paths)
        with pytest.raises(OutsideError, match="no socket"):
            await server.start()
        assert files(tmp_path) == []
        assert not paths.registration.exists()

    asyncio.run(test())


def test_a_request_that_is_no_protobuf_is_refused_and_nobody_is_asked(tmp_path: Path) -> None:
    async def test() -> None:
        handler, paths = Claims(), plan(tmp_path)
        names = [f"/{service}/NodePrepareResources" for service in codec.DRA_SERVICES.values()]
        names += [f"/{service}/NodeWatchResources" for service in codec.HEALTH_SERVICES.values()]
        async with KubeletServer(handler, driver="dra.net", paths=paths), Channel(paths.service) as channel:
            for name in names:
                with pytest.raises(StatusError, match="cannot be read") as caught:
                    await channel.call(name, b"\xff\xff", timeout=5)
                assert caught.value.code == Code.INTERNAL
        assert (handler.asked, handler.watching) == ([], 0)

    asyncio.run(test())


def test_a_clean_stop_waits_for_a_prepare_but_not_for_a_health_stream(tmp_path: Path) -> None:
    async def test() -> None:
        handler, paths, go_on = Claims(), plan(tmp_path), asyncio.Event()
        prepare = handler.prepare

        async def slow(claims: Sequence[ClaimRef]) -> Mapping[str, Prepared]:
            await go_on.wait()
            return await prepare(claims)

        handler.prepare = slow  # type: ignore[method-assign]
        server = KubeletServer(handler, driver="dra.net", paths=paths)
        await server.start()
        async with await Kubelet.register(paths.registration) as kubelet:
            prepared = asyncio.create_task(kubelet.prepare(CLAIMS))
            watch = kubelet.watch_health()
            await anext(watch)
            stop = asyncio.create_task(server.stop(grace=600))
            await until(lambda: handler.watching == 0)
            go_on.set()
            assert set(await prepared) == {"u1", "u2"}
            await stop
            with pytest.raises(OutsideError, match="UNAVAILABLE: the server is stopping"):
                await anext(watch)

    asyncio.run(test())
