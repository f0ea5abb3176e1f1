"""Handlers for the tests of the wires: they note what they are told and answer what the test has set."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from fishplate.wire.kubelet import ClaimRef, DeviceHealth, Health, Prepared, PreparedDevice
from fishplate.wire.nri import Adjustment, Container, DeviceNode, Event, Pod, RuntimeInfo, Update
from fishplate.wire.nri_plugin import Phase, Plugin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

POD_EVENTS = Event.RUN_POD_SANDBOX | Event.STOP_POD_SANDBOX | Event.REMOVE_POD_SANDBOX
UVERBS = DeviceNode(path="/dev/infiniband/uverbs0", major=231, minor=192, file_mode=0o666)


class Recorder:
    """An NRI plugin's handler."""

    def __init__(self, events: Event = POD_EVENTS | Event.CREATE_CONTAINER) -> None:
        self.events = events
        self.told: list[str] = []  # one line for each call
        self.pods: Sequence[Pod] = ()
        self.containers: Sequence[Container] = ()
        self.created: list[Container] = []
        self.runtime: RuntimeInfo | None = None
        self.adjustment = Adjustment(devices=(UVERBS,), env={"A": "b"})
        self.updates: Sequence[Update] = ()
        self.refusal: Exception | None = None
        self.wait: asyncio.Event | None = None  # CreateContainer is not done before this is set

    def configure(self, runtime: RuntimeInfo) -> None:
        self.runtime = runtime
        self.told.append("configure")

    def synchronize(self, pods: Sequence[Pod], containers: Sequence[Container]) -> Sequence[Update]:
        self.pods, self.containers = pods, containers
        self.told.append("synchronize")
        return self.updates

    def run_pod_sandbox(self, pod: Pod) -> None:
        self._note(f"run {pod.uid} {pod.network_namespace}")

    async def stop_pod_sandbox(self, pod: Pod) -> None:
        await asyncio.sleep(0)
        self._note(f"stop {pod.uid} {pod.network_namespace}")

    def remove_pod_sandbox(self, pod: Pod) -> None:
        self._note(f"remove {pod.uid}")

    def create_container(self, pod: Pod, container: Container) -> Adjustment | Awaitable[Adjustment]:
        self._note(f"create {pod.uid}/{container.name}")
        self.created.append(container)
        return self.adjustment if self.wait is None else self._later(self.wait)

    async def _later(self, event: asyncio.Event) -> Adjustment:
        await event.wait()
        return self.adjustment

    def other_event(self, event: Event, pod: Pod, container: Container | None) -> None:
        self._note(f"{event.name} {pod.uid}/{container.name if container else ''}")

    def disconnected(self, reason: str) -> None:
        self.told.append("disconnected")

    def _note(self, line: str) -> None:
        self.told.append(line)
        if self.refusal is not None:
            raise self.refusal


@contextlib.asynccontextmanager
async def running_plugin(handler: Recorder, socket: Path, *, ready: bool = True) -> AsyncIterator[Plugin]:
    """A plugin that runs, taken in by the runtime unless `ready` is false."""
    plugin = Plugin(handler, name="fishplate", index="10", socket=str(socket), draw=lambda: 0.0)
    async with asyncio.TaskGroup() as group:
        group.create_task(plugin.run())
        try:
            if ready:
                await plugin.wait_until(Phase.SYNCHRONISED)
            yield plugin
        finally:
            await plugin.stop()


async def until(condition: Callable[[], bool]) -> None:
    """For what nobody tells of."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


class Claims:
    """A DRA driver's handler that prepares every claim with one device."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: Mapping[str, Prepared] | None = None  # instead of its own
        self.refusal: Exception | None = None
        self.health: Sequence[DeviceHealth] = ()
        self.watching = 0
        self._changed = asyncio.Event()

    async def prepare(self, claims: Sequence[ClaimRef]) -> Mapping[str, Prepared]:
        self._note("prepare", claims)
        device = PreparedDevice(
            pool="node-a",
            device="ib0",
            requests=("nic",),
            cdi_device_ids=("fishplate.example/net=ib0",),
            share_id="5c0e6a3e-0000-4000-8000-000000000001",
        )
        own = {claim.uid: Prepared(devices=(device,)) for claim in claims}
        return own if self.answers is None else self.answers

    async def unprepare(self, claims: Sequence[ClaimRef]) -> Mapping[str, str]:
        self._note("unprepare", claims)
        return {claim.uid: "" for claim in claims}

    async def watch_health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        self.watching += 1
        try:
            while True:
                changed = self._changed
                yield self.health
                await changed.wait()
        finally:
            self.watching -= 1

    def tell(self, health: Sequence[DeviceHealth]) -> None:
        self.health = health
        self._changed.set()
        self._changed = asyncio.Event()

    def _note(self, verb: str, claims: Sequence[ClaimRef]) -> None:
        self.asked.append(f"{verb} {', '.join(f'{claim} {claim.uid}' for claim in claims)}")
        if self.refusal is not None:
            raise self.refusal


def healthy(device: str, *, message: str = "") -> DeviceHealth:
    return DeviceHealth(
        pool="node-a", device=device, health=Health.HEALTHY, last_updated=1_700_000_000, timeout_s=60, message=message
    )
