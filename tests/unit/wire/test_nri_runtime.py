"""Our runtime treats plugins as containerd does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fishplate.wire import mux
from fishplate.wire.nri import Container, Event, Pod
from fishplate.wire.nri_runtime import Runtime, RuntimeOptions
from fishplate.wire.nri_service import RUNTIME
from fishplate.wire.proto import nri_pb2 as pb
from fishplate.wire.trunk import Trunk
from tests.recording import Recorder, running_plugin, until

if TYPE_CHECKING:
    from pathlib import Path

    from fishplate.wire.calls import Call
    from fishplate.wire.ttrpc import Request, Served

POD = Pod(id="s", uid="u")
CONTAINER = Container(id="c", name="main")


class Silent(Trunk):
    """It does not even refuse."""

    def _refuse(self, call: Call, error: Exception) -> None:
        pass


async def plug(path: Path, answers: dict[str, bytes]) -> Trunk:
    """A plugin that answers what it is told to, registered; what has no answer is never answered."""

    async def never() -> bytes:
        await asyncio.Event().wait()
        return b""

    def serve(request: Request) -> Served:
        return answers[request.method] if request.method in answers else never()

    trunk = Silent(serves_on=mux.PLUGIN_SERVICE, asks_on=mux.RUNTIME_SERVICE, serve=serve, on_lost=lambda _: None)
    await asyncio.get_running_loop().create_unix_connection(lambda: trunk, str(path))
    name = pb.RegisterPluginRequest(plugin_name="raw", plugin_idx="05").SerializeToString()
    await trunk.call(RUNTIME, "RegisterPlugin", name, timeout=30)
    return trunk


def configured(events: int) -> bytes:
    return pb.ConfigureResponse(events=events).SerializeToString()


async def refusal(runtime: Runtime) -> str:
    await until(lambda: bool(runtime.refused))
    return runtime.refused[0]


def test_a_plugin_with_an_unknown_event_is_thrown_out(tmp_path: Path) -> None:
    async def test() -> None:
        async with Runtime(tmp_path / "s", options=RuntimeOptions(nri_version="")) as runtime:
            await plug(tmp_path / "s", {"Configure": configured(0x808)})
            assert await refusal(runtime) == "invalid plugin events: 0x800"

    asyncio.run(test())


def test_a_plugin_that_cannot_take_pieces_is_thrown_out(tmp_path: Path) -> None:
    async def test() -> None:
        world = [Pod(id=str(number), annotations={"pad": "x" * 100}) for number in range(10)]
        options = RuntimeOptions(message_limit=300)
        async with Runtime(tmp_path / "s", world=lambda: (world, ()), options=options) as runtime:
            await plug(tmp_path / "s", {"Configure": configured(0x8), "Synchronize": b""})
            assert await refusal(runtime) == "plugin does not handle split sync requests"

    asyncio.run(test())


def test_our_plugin_takes_pieces(tmp_path: Path) -> None:
    async def test() -> None:
        handler = Recorder()
        world = [Pod(id=str(number), annotations={"pad": "x" * 100}) for number in range(10)]
        options = RuntimeOptions(message_limit=300)
        async with (
            Runtime(tmp_path / "s", world=lambda: (world, [CONTAINER]), options=options) as runtime,
            running_plugin(handler, tmp_path / "s"),
        ):
            await runtime.wait_for_plugins(1)
        assert (list(handler.pods), list(handler.containers)) == (world, [CONTAINER])

    asyncio.run(test())


def test_a_plugin_that_does_not_answer_is_dropped_and_the_others_go_on(tmp_path: Path) -> None:
    async def test() -> None:
        options = RuntimeOptions(request_timeout=1.0)
        async with Runtime(tmp_path / "s", options=options) as runtime, running_plugin(Recorder(), tmp_path / "s"):
            await plug(tmp_path / "s", {"Configure": configured(int(Event.CREATE_CONTAINER)), "Synchronize": b""})
            first, second = await runtime.wait_for_plugins(2)
            assert (first.name, second.name) == ("05-raw", "10-fishplate")
            assert len(await runtime.create_container(POD, CONTAINER)) == 1
            assert [plugin.name for plugin in await runtime.wait_for_plugins(1)] == ["10-fishplate"]

    asyncio.run(test())
