"""Keeping the cluster's slices true: list, compare, write what differs, and watch for others' hands.

The kubelet deletes every slice of its node when it starts, and a driver's own 30 s after the driver went away; the
watch sees that and the slices come back. Nothing here is triggered by pods. Writes are bounded: bursts wait, failures
back off.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence

import msgspec

from fishplate.driver import faults
from fishplate.driver.slices import LiveSlice, Plan, dropped_fields, plan_slices
from fishplate.errors import FishplateError, OutsideError
from fishplate.k8s.api import Api, Change, ConflictError, GoneError
from fishplate.k8s.resource import Device, LiveMeta, OwnerReference, ResourceSlice

_PATH = "/apis/resource.k8s.io/v1/resourceslices"
_MIN_INTERVAL_S = 1.0  # between two rounds of writing
_MAX_BACKOFF_S = 60.0
_STABLE_S = 10.0  # a watch that lived this long was a good one
_log = logging.getLogger("fishplate.publish")


class PublishState(msgspec.Struct, frozen=True, kw_only=True):
    """For readiness and metrics."""

    published: bool = False
    generation: int = 0
    devices: int = 0
    writes: int = 0
    failures: int = 0
    error: str = ""
    dropped: tuple[str, ...] = ()


class _Node(msgspec.Struct, frozen=True):
    metadata: LiveMeta


class Publisher:
    def __init__(
        self,
        api: Api,
        *,
        driver: str,
        node: str,
        on_change: Callable[[PublishState], None] = lambda _: None,
        on_write: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._query = {"fieldSelector": f"spec.nodeName={node},spec.driver={driver}"}
        self._node = node
        self._wanted: tuple[ResourceSlice, ...] | None = None
        self._existing: dict[str, LiveSlice] = {}
        self._accepted: dict[str, tuple[Device, ...]] = {}
        self._listed = False
        self._wake = asyncio.Event()
        self._on_change = on_change
        self._on_write = on_write
        self._clock = clock
        self.state = PublishState()

    def want(self, slices: Sequence[ResourceSlice]) -> None:
        """What the node has now. The same again costs nothing."""
        if tuple(slices) != self._wanted:
            self._wanted = tuple(slices)
            self._accepted = {}
            self._wake.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            group.create_task(self._write())

    # -- reading -------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        backoff = 1.0
        while True:
            listed = self._clock()
            try:
                listing = await self._api.list(_PATH, LiveSlice, self._query)
                self._existing = {one.metadata.name: one for one in listing.items}
                self._listed = True
                self._wake.set()
                listed = self._clock()
                await self._follow(listing.resource_version)
            except FishplateError as error:
                if not isinstance(error, GoneError):
                    _log.warning("cannot watch resource slices: %s", error)
                    self._tell(error=str(error))
                if self._clock() - listed > _STABLE_S:  # it worked for a while
                    backoff = 1.0
                await asyncio.sleep(backoff * random.uniform(0.5, 1.0))
                backoff = min(backoff * 2, _MAX_BACKOFF_S)

    async def _follow(self, version: str) -> None:
        """Events until the version is too old. A stream that ends is only opened again."""
        while True:
            opened = self._clock()
            async for event in self._api.watch(_PATH, LiveSlice, query=self._query, resource_version=version):
                if isinstance(event, str):
                    version = event
                else:
                    self._note(event)
            if self._clock() - opened < 1.0:
                await asyncio.sleep(1.0)  # a server that hangs up at once

    def _note(self, event: Change[LiveSlice]) -> None:
        name = event.object.metadata.name
        if event.type == "DELETED":
            gone = self._existing.get(name)
            if gone and gone.metadata.uid == event.object.metadata.uid:
                del self._existing[name]
                self._wake.set()
        elif self._is_newer(event.object):
            self._existing[name] = event.object
            self._wake.set()

    def _is_newer(self, seen: LiveSlice) -> bool:
        """Our own writes are known before the watch tells of them; an older event must not undo them."""
        known = self._existing.get(seen.metadata.name)
        if known is None or known.metadata.uid != seen.metadata.uid:
            return True
        try:
            return int(seen.metadata.resource_version) > int(known.metadata.resource_version)
        except ValueError:
            return seen.metadata.resource_version != known.metadata.resource_version

    # -- writing -------------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        backoff = _MIN_INTERVAL_S
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._wanted is None or not self._listed:
                continue
            try:
                written = await self.publish()
                backoff = _MIN_INTERVAL_S
                if not written:
                    continue
            except ConflictError as error:
                # Somebody wrote meanwhile; or, for ever, a slice of another node or driver has our slice's name.
                _log.warning("cannot publish resource slices yet: %s", error)
                self._on_write("conflict")
                self._tell(failures=self.state.failures + 1, error=str(error))
                backoff = min(backoff * 2, _MAX_BACKOFF_S)
                await self._refresh()
            except FishplateError as error:
                _log.error("cannot publish resource slices: %s", error)
                self._on_write("failed")
                self._tell(failures=self.state.failures + 1, error=str(error))
                backoff = min(backoff * 2, _MAX_BACKOFF_S)
                self._wake.set()
            await asyncio.sleep(backoff * random.uniform(0.75, 1.0))

    async def _refresh(self) -> None:
        try:
            listing = await self._api.list(_PATH, LiveSlice, self._query)
        except OutsideError as error:
            _log.warning("cannot list resource slices: %s", error)
        else:
            self._existing = {one.metadata.name: one for one in listing.items}
        self._listed = True
        self._wake.set()

    async def publish(self) -> int:
        """One round: the number of writes. Zero means that all is as it should be."""
        assert self._wanted is not None
        foreign = [one.metadata.name for one in self._existing.values() if not one.ours]
        if foreign:
            raise OutsideError(
                f"another driver publishes under the same name on this node: {', '.join(sorted(foreign))}",
                remedy="run one of the two on this node",
            )
        plan = self._plan(None)
        if plan.writes:
            faults.reach("publish.listed")
            plan = self._plan(await self._find_owner())
            await self._carry_out(plan)
        devices = sum(len(one.spec.devices) for one in self._wanted)
        self._tell(published=True, generation=plan.generation, devices=devices, error="")
        if plan.writes:
            _log.info("published %d devices, generation %d, %d writes", devices, plan.generation, plan.writes)
        return plan.writes

    def _plan(self, owner: OwnerReference | None) -> Plan:
        assert self._wanted is not None
        return plan_slices(self._wanted, tuple(self._existing.values()), owner=owner, accepted=self._accepted)

    async def _carry_out(self, plan: Plan) -> None:
        for one in plan.delete:
            meta = one.metadata
            await self._api.delete(f"{_PATH}/{meta.name}", uid=meta.uid, resource_version=meta.resource_version)
            self._existing.pop(meta.name, None)
            self._count()
            faults.reach("publish.deleted")
        for one in plan.update:
            self._keep(one, await self._api.replace(f"{_PATH}/{one.metadata.name}", one))
            faults.reach("publish.updated")
        for one in plan.create:
            self._keep(one, await self._api.create(_PATH, one))
            faults.reach("publish.created")

    def _keep(self, sent: LiveSlice, returned: LiveSlice) -> None:
        name = sent.metadata.name
        self._existing[name] = returned
        self._count()
        if lost := dropped_fields(sent.spec.devices, returned.spec.devices):
            self._accepted[name] = returned.spec.devices
            _log.warning("the API server dropped fields, probably of features that are off: %s", ", ".join(lost))
        self._tell(dropped=lost)

    async def _find_owner(self) -> OwnerReference:
        """Slices die with their node. It is read for every write: a node that was made anew has another UID."""
        node = await self._api.get(f"/api/v1/nodes/{self._node}", _Node)
        return OwnerReference(api_version="v1", kind="Node", name=self._node, uid=node.metadata.uid, controller=True)

    def _count(self) -> None:
        self._on_write("success")
        self._tell(writes=self.state.writes + 1)

    def _tell(self, **changes: object) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)
        self._on_change(self.state)
