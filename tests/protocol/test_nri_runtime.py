"""Our plugin and containerd's own NRI adaptation, v0.6 and v0.12."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from fishplate.errors import FishplateError
from fishplate.wire import nri_codec, ttrpc
from fishplate.wire.nri import Adjustment, Event, Update
from fishplate.wire.nri_plugin import Phase
from fishplate.wire.proto import nri_pb2
from oracle.peers import Peer, PeerError
from tests.recording import Recorder, running_plugin

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

pytestmark = pytest.mark.go

# Bytes of a whole ttrpc message. 4096 is the Go peer's read buffer; the sizes around it, less the header, are where a
# naive writer kills the connection.
SIZES = [4085, 4086, 4087, 4095, 4096, 4097, 8191, 8192, 8193, 1 << 20]


def run(test: Coroutine[object, object, None]) -> None:
    asyncio.run(test)


async def start(peer: Peer, socket: Path, **options: object) -> None:
    await peer.ask("start", **{"socket": str(socket), "name": "containerd", "version": "v2.0.0", **options})


async def taken_in(peer: Peer, count: int = 1) -> None:
    """The runtime puts a plugin on its list after Synchronize is answered, and logs it then."""
    await peer.ask("await-log", text='"10-fishplate" connected', count=count)


def test_a_pod_and_its_container_from_start_to_end(runtime_binary: Path, tmp_path: Path) -> None:
    async def test() -> None:
        handler, socket = Recorder(), tmp_path / "nri.sock"
        async with Peer(runtime_binary) as peer:
            await start(peer, socket, pods=3)
            async with running_plugin(handler, socket):
                await taken_in(peer)
                await peer.ask("run-pod", uid="u1")
                answer = await peer.ask("create", uid="u1")
                await peer.ask("stop-pod", uid="u1")
                await peer.ask("remove-pod", uid="u1")
        device = answer["adjust"]["linux"]["devices"][0]
        assert (device["path"], device["major"], device["minor"]) == ("/dev/infiniband/uverbs0", "231", "192")
        assert device["fileMode"] == {"value": 0o666}
        assert answer["adjust"]["env"] == [{"key": "A", "value": "b"}]
        assert [pod.uid for pod in handler.pods] == ["uid-0", "uid-1", "uid-2"]
        assert [container.pod_id for container in handler.containers] == ["pod-0", "pod-1", "pod-2"]
        assert handler.created[0].devices[0].path == "/dev/null"
        assert handler.told == [
            *("configure", "synchronize", "run u1 /run/netns/u1", "create u1/main", "stop u1 /run/netns/u1"),
            *("remove u1", "disconnected"),
        ]

    run(test())


def test_messages_of_every_critical_size_come_in(runtime_binary: Path, tmp_path: Path) -> None:
    async def test() -> None:
        handler, socket = Recorder(), tmp_path / "nri.sock"
        async with Peer(runtime_binary) as peer:
            await start(peer, socket)
            async with running_plugin(handler, socket) as plugin:
                await taken_in(peer)
                for size in SIZES:
                    await peer.ask("create", uid="u", message=size)
                assert plugin.state.connections == 1
        seen = [len(container.env[0]) for container in handler.created]
        # The lengths of lengths grow by a byte here and there.
        assert [size - got - (SIZES[0] - seen[0]) for size, got in zip(SIZES, seen, strict=True)] == [
            *(0, 0, 0, 0, 0, 0, 0, 0, 0, 3)
        ]

    run(test())


def adjustment_of(size: int) -> Adjustment:
    """One whose answer, as a ttrpc message, has exactly this many bytes."""
    length = size
    while True:
        adjustment = Adjustment(env={"PAD": "x" * length})
        response = nri_pb2.CreateContainerResponse(adjust=nri_codec.write_adjustment(adjustment))
        excess = len(ttrpc.encode_answer(1, response.SerializeToString())) - size
        if not excess:
            return adjustment
        length -= excess


def test_messages_of_every_critical_size_go_out(runtime_binary: Path, tmp_path: Path) -> None:
    async def test() -> None:
        handler, socket = Recorder(), tmp_path / "nri.sock"
        async with Peer(runtime_binary) as peer:
            await start(peer, socket)
            async with running_plugin(handler, socket) as plugin:
                await taken_in(peer)
                for size in SIZES:
                    handler.adjustment = adjustment_of(size)
                    answer = await peer.ask("create", uid="u")
                    assert answer["adjust"]["env"] == [{"key": "PAD", "value": handler.adjustment.env["PAD"]}]
                assert plugin.state.connections == 1

    run(test())


def test_an_answer_too_long_is_an_error_and_not_the_end(runtime_binary: Path, tmp_path: Path) -> None:
    async def test() -> None:
        handler, socket = Recorder(), tmp_path / "nri.sock"
        async with Peer(runtime_binary) as peer:
            await start(peer, socket)
            async with running_plugin(handler, socket):
                await taken_in(peer)
                handler.adjustment = Adjustment(env={"PAD": "x" * (5 << 20)})
                with pytest.raises(PeerError, match="exceed maximum message size"):
                    await peer.ask("create", uid="u")
                handler.adjustment = Adjustment(env={"A": "b"})
                assert await peer.ask("create", uid="u")

    run(test())


def test_what_the_handler_refuses_is_refused_with_its_reason(runtime_binary: Path, tmp_path: Path) -> None:
    async def test() -> None:
        handler, socket = Recorder(), tmp_path / "nri.sock"
        async with Peer(runtime_binary) as peer:
            await start(peer, socket)
            async with running_plugin(handler, socket):
                await taken_in(peer)
                handler.refusal = FishplateError("the pod's NIC was not attached")
                for op in ("run-pod", "create"):
                    with pytest.raises(PeerError, match="NIC was not attached"):
                        await peer.ask(op, uid="u")
                handler.refusal = KeyError("a mistake of ours")
                with pytest.raises(PeerError, match="internal error: KeyError"):
                    await peer.ask("create", uid="u")
                handler.refusal = None
                assert await peer.ask("create", uid="u")

    run(test())


def test_a_handler_that_takes_too_long_is_refused_before_the_runtime_goes_on_without_us(
    runtime_binary: Path, tmp_path: Path
) -> None:
    async def test() -> None:
        handler, socket = Recorder(), tmp_path / "nri.sock"
        async with Peer(runtime_binary) as peer:
            await start(peer, socket, timeout_ms=3000)
            async with running_plugin(handler, socket) as plugin:
                await taken_in(peer)
                handler.wait = asyncio.Event()
                with pytest.raises(PeerError, match=r"CreateContainer was not done within 2\.4 s"):
                    await peer.ask("create", uid="u")
                handler.wait = None
                assert (await peer.ask("create", uid="u"))["adjust"]
                assert plugin.state.connections == 1

    run(test())


def test_an_old_runtime_that_nobody_knows_is_not_asked_for_new_events(runtime_binary: Path, tmp_path: Path) -> None:
    async def test() -> None:
        handler = Recorder(Event.CREATE_CONTAINER | Event.UPDATE_POD_SANDBOX | Event.POST_UPDATE_POD_SANDBOX)
        socket = tmp_path / "nri.sock"
        async with Peer(runtime_binary) as peer:
            await start(peer, socket, name="somebody", version="devel")
            async with running_plugin(handler, socket):
                await taken_in(peer)
                assert await peer.ask("create", uid="u")

    run(test())


def test_the_runtime_goes_and_comes_back(runtime_binary: Path, tmp_path: Path) -> None:
    async def test() -> None:
        handler, socket = Recorder(), tmp_path / "nri.sock"
        async with running_plugin(handler, socket, ready=False) as plugin:
            for round_ in (1, 2):
                async with Peer(runtime_binary) as peer:
                    await start(peer, socket, pods=round_)
                    state = await plugin.wait_until(Phase.SYNCHRONISED)
                    assert state.connections == round_
                    assert len(handler.pods) == round_
                    await taken_in(peer)
                    assert await peer.ask("create", uid="u")
                await plugin.wait_until(Phase.DISCONNECTED)

    run(test())


def test_updates_nobody_asked_for_arrive_and_failures_come_back(runtime_binary: Path, tmp_path: Path) -> None:
    async def test() -> None:
        handler, socket = Recorder(), tmp_path / "nri.sock"
        handler.updates = [Update(container_id="c0", mems="1")]
        async with Peer(runtime_binary) as peer:
            await start(peer, socket)
            async with running_plugin(handler, socket) as plugin:
                await taken_in(peer)
                updates = [Update(container_id=name, cpus="0-3", mems="0") for name in ("c1", "c2")]
                assert await plugin.update_containers(updates) == updates[:1]
                seen = await peer.ask("updates")
        assert [[one["container_id"] for one in batch] for batch in seen] == [["c0"], ["c1", "c2"]]

    run(test())


def test_a_synchronize_of_many_megabytes_comes_in_pieces(new_runtime_binary: Path, tmp_path: Path) -> None:
    async def test() -> None:
        handler, socket = Recorder(), tmp_path / "nri.sock"
        handler.updates = [Update(container_id="container-pod-7", mems="1")]
        async with Peer(new_runtime_binary) as peer:
            await start(peer, socket, pods=200, padding=64 << 10)
            async with running_plugin(handler, socket):
                await taken_in(peer)
                updates = await peer.ask("updates")
        assert [pod.uid for pod in handler.pods] == [f"uid-{number}" for number in range(200)]
        assert {len(pod.annotations["padding"]) for pod in handler.pods} == {64 << 10}
        assert len(handler.containers) == 200
        assert [[one["container_id"] for one in batch] for batch in updates] == [["container-pod-7"]]

    run(test())
