"""A plugin and our own runtime over a real socket: progress, reconnecting, refusals, the end."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest

from fishplate.errors import FishplateError, InputError
from fishplate.wire import mux, nri_plugin
from fishplate.wire.backoff import Backoff
from fishplate.wire.nri import Container, Event, Pod, Update
from fishplate.wire.nri_plugin import Phase, Plugin, PluginState
from fishplate.wire.nri_runtime import Runtime, RuntimeOptions
from fishplate.wire.trunk import Trunk
from fishplate.wire.ttrpc import StatusError
from tests.recording import UVERBS, Recorder, running_plugin, until

if TYPE_CHECKING:
    from pathlib import Path

POD = Pod(id="s", uid="u", namespaces={"network": "/run/netns/u"})
CONTAINER = Container(id="c", name="main", env=("A=1",))
OLD = RuntimeOptions(version="v1.7.28", nri_version="")


@pytest.mark.parametrize("options", [RuntimeOptions(), OLD])
def test_a_pod_and_its_container_from_start_to_end(tmp_path: Path, options: RuntimeOptions) -> None:
    async def test() -> None:
        handler, path = Recorder(), tmp_path / "nri.sock"
        async with Runtime(path, options=options) as runtime, running_plugin(handler, path):
            await runtime.wait_for_plugins(1)
            await runtime.run_pod_sandbox(POD)
            [adjustment] = await runtime.create_container(POD, CONTAINER)
            await runtime.stop_pod_sandbox(POD)
            await runtime.remove_pod_sandbox(POD)
        assert adjustment.devices == (UVERBS,)
        assert handler.created == [CONTAINER]
        assert handler.told == [
            *("configure", "synchronize", "run u /run/netns/u", "create u/main", "stop u /run/netns/u", "remove u"),
            "disconnected",
        ]

    asyncio.run(test())


def test_progress_is_told_step_by_step(tmp_path: Path) -> None:
    async def test() -> None:
        path, seen, time = tmp_path / "nri.sock", list[PluginState](), iter(range(100))
        plugin = Plugin(
            Recorder(), name="x", index="10", socket=str(path), on_change=seen.append, clock=lambda: next(time)
        )
        async with Runtime(path), asyncio.TaskGroup() as group:
            group.create_task(plugin.run())
            state = await plugin.wait_until(Phase.SYNCHRONISED)
            assert state.runtime is not None
            assert (state.runtime.name, state.attempts, state.connections) == ("containerd", 0, 1)
            await plugin.stop()
        phases = [state.phase for state in seen]
        assert list(dict.fromkeys(phases)) == [
            *(Phase.DISCONNECTED, Phase.CONNECTED, Phase.REGISTERED, Phase.SYNCHRONISED, Phase.STOPPED)
        ]
        assert [state.since for state in seen] == sorted(state.since for state in seen)
        assert plugin.state.runtime is None

    asyncio.run(test())


def test_a_plugin_waits_for_a_runtime_that_is_not_there(tmp_path: Path) -> None:
    async def test() -> None:
        handler, path = Recorder(), tmp_path / "nri.sock"
        async with running_plugin(handler, path, ready=False) as plugin:
            await until(lambda: plugin.state.attempts >= 3)
            assert plugin.state.phase is Phase.DISCONNECTED
            assert "No such file" in plugin.state.error
            async with Runtime(path):
                state = await plugin.wait_until(Phase.SYNCHRONISED)
                assert (state.attempts, state.error) == (0, "")

    asyncio.run(test())


def test_a_runtime_that_restarts_gets_its_plugin_back_and_tells_what_happened(tmp_path: Path) -> None:
    async def test() -> None:
        handler, path = Recorder(), tmp_path / "nri.sock"
        async with running_plugin(handler, path, ready=False) as plugin:
            for round_ in (1, 2, 3):
                pods = tuple(Pod(id=str(number), uid=str(number)) for number in range(round_))
                async with Runtime(path, world=lambda pods=pods: (pods, ())):  # type: ignore[misc]
                    await plugin.wait_until(Phase.SYNCHRONISED)
                    assert (len(handler.pods), plugin.state.connections) == (round_, round_)
                await plugin.wait_until(Phase.DISCONNECTED)
        assert handler.told == ["configure", "synchronize", "disconnected"] * 3

    asyncio.run(test())


def test_there_is_no_last_attempt() -> None:
    """The wait is capped, never zero, and does not overflow after weeks."""
    backoff = Backoff(lambda: 1.0, first=0.1, cap=5.0)
    waits = [backoff.next() for _ in range(5000)]
    assert waits[:3] == [0.1, 0.2, 0.4]
    assert max(waits) == waits[-1] == 5.0
    backoff.reset()
    assert backoff.next() == 0.1
    assert Backoff(lambda: 0.0, first=0.1, cap=5.0).next() == 0.05


def test_a_refusal_is_an_error_and_the_plugin_stays(tmp_path: Path) -> None:
    async def test() -> None:
        handler, path = Recorder(), tmp_path / "nri.sock"
        async with Runtime(path) as runtime, running_plugin(handler, path):
            await runtime.wait_for_plugins(1)
            handler.refusal = FishplateError("not attached", remedy="look at the driver's log")
            with pytest.raises(StatusError, match="look at the driver's log"):
                await runtime.create_container(POD, CONTAINER)
            handler.refusal = None
            assert await runtime.create_container(POD, CONTAINER)

    asyncio.run(test())


def test_an_overdue_answer_is_a_refusal_and_not_silence(tmp_path: Path) -> None:
    async def test() -> None:
        handler, path = Recorder(), tmp_path / "nri.sock"
        async with (
            Runtime(path, options=RuntimeOptions(request_timeout=2.0)) as runtime,
            running_plugin(handler, path),
        ):
            await runtime.wait_for_plugins(1)
            handler.wait = asyncio.Event()
            with pytest.raises(StatusError, match=r"was not done within 1\.6 s"):
                await runtime.create_container(POD, CONTAINER)
            assert len(runtime.plugins) == 1

    asyncio.run(test())


def test_a_plugin_that_was_turned_away_comes_again(tmp_path: Path) -> None:
    async def test() -> None:
        handler, path = Recorder(Event.UPDATE_POD_SANDBOX), tmp_path / "nri.sock"  # nothing that an old runtime knows
        async with Runtime(path, options=OLD) as runtime, running_plugin(handler, path, ready=False) as plugin:
            await until(lambda: len(runtime.refused) >= 2)
            assert "knows none of the events wanted" in runtime.refused[0]
            handler.events = Event.CREATE_CONTAINER
            await plugin.wait_until(Phase.SYNCHRONISED)

    asyncio.run(test())


def test_a_runtime_that_accepts_and_says_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nri_plugin, "SETTLE", 0.05)

    async def test() -> None:
        path = tmp_path / "nri.sock"
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(str(path))
            silent.listen()
            async with running_plugin(Recorder(), path, ready=False) as plugin:
                await until(lambda: plugin.state.attempts >= 3)
                assert "0.05 s" in plugin.state.error

    asyncio.run(test())


def test_a_runtime_that_takes_us_for_registered_and_then_says_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nri_plugin, "SETTLE", 0.2)

    async def test() -> None:
        path, trunks = tmp_path / "nri.sock", list[Trunk]()

        def accept() -> Trunk:
            trunks.append(
                Trunk(
                    serves_on=mux.RUNTIME_SERVICE,
                    asks_on=mux.PLUGIN_SERVICE,
                    serve=lambda _: b"",
                    on_lost=lambda _: None,
                )
            )
            return trunks[-1]

        server = await asyncio.get_running_loop().create_unix_server(accept, str(path))
        async with running_plugin(Recorder(), path, ready=False) as plugin:
            await until(lambda: len(trunks) >= 2)
            assert "did not take us in" in plugin.state.error
        server.close()

    asyncio.run(test())


def test_a_handler_that_cannot_bear_the_end_does_not_end_the_plugin(tmp_path: Path) -> None:
    class Brittle(Recorder):
        def disconnected(self, reason: str) -> None:
            raise RuntimeError(reason)

    async def test() -> None:
        path = tmp_path / "nri.sock"
        async with running_plugin(Brittle(), path, ready=False) as plugin:
            for round_ in (1, 2):
                async with Runtime(path):
                    await plugin.wait_until(Phase.SYNCHRONISED)
                    assert plugin.state.connections == round_
                await plugin.wait_until(Phase.DISCONNECTED)

    asyncio.run(test())


def test_updates_nobody_asked_for(tmp_path: Path) -> None:
    async def test() -> None:
        handler, path, seen = Recorder(), tmp_path / "nri.sock", list[list[Update]]()
        updates = [Update(container_id="a", mems="0"), Update(container_id="b", cpus="1")]

        def take(batch: list[Update]) -> list[Update]:
            seen.append(list(batch))
            return batch[:1]

        async with Runtime(path, on_update=take) as runtime, running_plugin(handler, path) as plugin:  # type: ignore[arg-type]
            await runtime.wait_for_plugins(1)
            assert await plugin.update_containers(updates) == updates[:1]
        assert seen == [[], updates]

    asyncio.run(test())


@pytest.mark.parametrize(("name", "index"), [("", "10"), ("a b", "10"), ("a/b", "10"), ("a", "1"), ("a", "1a")])
def test_names_that_a_runtime_would_refuse_are_refused_at_once(name: str, index: str) -> None:
    with pytest.raises(InputError):
        Plugin(Recorder(), name=name, index=index, socket="s")


def test_stopping_before_running_is_fine(tmp_path: Path) -> None:
    async def test() -> None:
        plugin = Plugin(Recorder(), name="x", index="10", socket=str(tmp_path / "s"))
        await plugin.stop()
        await plugin.run()
        assert plugin.state.phase is Phase.STOPPED

    asyncio.run(test())
