"""The kubelet side: a claim goes from allocated to prepared, and back.

Order is everything here, because the process may die between any two lines (the places are named in `faults`):

    prepare     read the claim → reserve its devices in the store → write the CDI spec → record it as prepared → answer
    unprepare   remove the CDI spec → forget the claim, which frees its devices → answer

So a device is taken before anything can point at it, and nothing points at it any more before it is free. Each half may
be repeated: the kubelet does, after its own restarts and after ours. Nothing is prepared in part: a claim whose third
device is refused has no devices at all.
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

import msgspec

from fishplate.dra.parameters import Parameters, choose_parameters
from fishplate.driver import faults
from fishplate.driver.cdi import SpecDirectory, device_id
from fishplate.driver.claims import AllocatedClaim, ClaimReader
from fishplate.driver.devices import hold_device, renew
from fishplate.driver.inventory import NodeInventory
from fishplate.driver.records import Claim, Consumer, Held
from fishplate.driver.store import InUseError, Store
from fishplate.driver.turns import Turns
from fishplate.errors import FishplateError, InputError
from fishplate.topology.inventory import Inventory
from fishplate.wire.kubelet import ClaimRef, Prepared, PreparedDevice

_log = logging.getLogger("fishplate.prepare")
_UID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}\Z")


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator decided."""

    driver: str
    node: str
    cdi: bool = True  # answer with CDI ids
    management: bool = False  # umad and issm may be asked for
    nccl: bool = False  # set NCCL_IB_HCA unless a claim says otherwise


class Listener:
    """Who wants to know. The status writer and the metrics do."""

    def prepared(self, claim: Claim) -> None: ...

    def failed(self, claim: AllocatedClaim, reason: str) -> None: ...

    def changed(self, claim: Claim) -> None: ...

    def forgotten(self, claim: Claim) -> None: ...

    def unknown(self, uid: str) -> None:
        """Unprepared without ever having been prepared."""


class Preparer:
    def __init__(
        self,
        *,
        rules: Rules,
        store: Store,
        specs: SpecDirectory,
        inventory: NodeInventory,
        reader: ClaimReader,
        listener: Listener,
        running: Callable[[Claim], bool],
        attached: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._rules = rules
        self._store = store
        self._specs = specs
        self._inventory = inventory
        self._reader = reader
        self._listener = listener
        self._running = running
        self._attached = attached
        self._clock = clock
        self._turns = Turns()

    # -- the kubelet's calls -------------------------------------------------------------------------------------

    async def prepare(self, claims: Sequence[ClaimRef]) -> Mapping[str, Prepared]:
        async def one(ref: ClaimRef) -> Prepared:
            try:
                return self._answer(await self._one_at_a_time(ref, self._prepare))
            except FishplateError as error:
                return Prepared(error=_line(f"claim {ref}: {error}"))

        answers = await asyncio.gather(*(one(ref) for ref in claims))
        return {ref.uid: answer for ref, answer in zip(claims, answers, strict=True)}

    async def unprepare(self, claims: Sequence[ClaimRef]) -> Mapping[str, str]:
        async def one(ref: ClaimRef) -> str:
            try:
                await self._one_at_a_time(ref, self._unprepare)
            except FishplateError as error:
                return _line(f"claim {ref}: {error}")
            return ""

        errors = await asyncio.gather(*(one(ref) for ref in claims))
        return {ref.uid: error for ref, error in zip(claims, errors, strict=True)}

    async def _one_at_a_time(self, ref: ClaimRef, work: Callable[[ClaimRef], Awaitable[Claim]]) -> Claim:
        """Two calls for one claim never overlap, whatever the kubelet does."""
        if not _UID.match(ref.uid):  # it becomes part of a file's name
            raise InputError(f"{ref.uid!r} is no UID")
        async with self._turns.of(ref.uid):
            return await work(ref)

    # -- prepare -------------------------------------------------------------------------------------------------

    async def _prepare(self, ref: ClaimRef) -> Claim:
        known = await self._known(ref.uid)
        if known and known.state == "prepared" and not known.lost:
            self._specs.write(known)  # the directory lives in memory too and may have been emptied
            return known
        claim = await self._reader.read(ref)
        faults.reach("prepare.fetched")
        try:
            record = await self._plan(claim)
            try:
                return self._take(record)
            except InUseError:
                if not await self.release_orphans(holding={one.device for one in record.held}):
                    raise
                return self._take(record)
        except FishplateError as error:
            self._listener.failed(claim, error.what)
            raise

    async def _known(self, uid: str) -> Claim | None:
        """The claim as recorded; after a look at the host if its devices' numbers are not theirs any more."""
        known = self._store.claim(uid)
        if known and not all(self._inventory.is_current(one.device) for one in known.held):
            await self._inventory.rescan("claim")
            known = self._store.claim(uid)
        return known

    async def _plan(self, claim: AllocatedClaim) -> Claim:
        """What preparing would give, decided before anything is touched."""
        results = claim.results(self._rules.driver)
        if not results:
            raise InputError(f"no device of driver {self._rules.driver} is allocated to it")
        if not self._rules.cdi and not self._attached():
            raise InputError(
                "the container runtime does not have this driver as its NRI plugin; nothing else hands devices over",
                remedy="see /readyz; --injection auto uses CDI as well",
            )
        consumers = await self._reader.consumers(claim)
        if not all(self._inventory.is_current(result.device) for result in results):
            await self._inventory.rescan("claim")
        # From here to the record nothing waits: device numbers that are read now are written now.
        held: list[Held] = []
        nccl = False
        for result in results:
            if result.pool != self._rules.node:
                raise InputError(
                    f"device {result.device} is in pool {result.pool}, which is not this node's ({self._rules.node})"
                )
            settings = choose_parameters(claim.configs, result.request, driver=self._rules.driver)
            nccl = nccl or self._nccl(settings)
            management = self._management(settings, result.request)
            held.append(hold_device(result, self._inventory.now, management=management))
        return Claim(
            uid=claim.ref.uid,
            namespace=claim.ref.namespace,
            name=claim.ref.name,
            held=tuple(held),
            consumers=consumers,
            nccl=nccl,
            shared=claim.shared,
            since=self._clock(),
        )

    def _nccl(self, settings: Parameters) -> bool:
        return self._rules.nccl if settings.nccl_environment is None else settings.nccl_environment

    def _management(self, settings: Parameters, request: str) -> bool:
        if settings.management_nodes and not self._rules.management:
            raise InputError(
                f"request {request} asks for management nodes (umad, issm), which this node's driver does not hand out",
                remedy="they let a pod reconfigure the fabric; the operator allows them with --allow-management-nodes",
            )
        return bool(settings.management_nodes)

    def _take(self, record: Claim) -> Claim:
        fresh = self._store.claim(record.uid) is None
        self._store.reserve(record)
        faults.reach("prepare.reserved")
        try:
            self._specs.write(record)
        except FishplateError:
            if fresh:
                self._store.forget(record.uid)
            raise
        faults.reach("prepare.spec-written")
        self._store.record(record)
        faults.reach("prepare.recorded")
        prepared = self._store.claim(record.uid)
        assert prepared is not None
        self._listener.prepared(prepared)
        return prepared

    def _answer(self, claim: Claim) -> Prepared:
        return Prepared(
            devices=tuple(
                PreparedDevice(
                    pool=one.pool,
                    device=one.device,
                    requests=(one.base_request,),
                    cdi_device_ids=(device_id(self._rules.driver, claim, one),) if self._rules.cdi else (),
                    share_id=one.share_id or None,
                )
                for one in claim.held
            )
        )

    # -- unprepare -----------------------------------------------------------------------------------------------

    async def _unprepare(self, ref: ClaimRef) -> Claim:
        known = self._store.claim(ref.uid)
        self._specs.remove(ref.uid)  # also without a record: a file of ours that nobody remembers
        if known is None:
            self._listener.unknown(ref.uid)
            return Claim(uid=ref.uid, namespace=ref.namespace, name=ref.name)
        faults.reach("unprepare.spec-removed")
        self._store.forget(ref.uid)
        faults.reach("unprepare.forgotten")
        self._listener.forgotten(known)
        return known

    # -- what happened while nobody looked -----------------------------------------------------------------------

    def restore(self) -> None:
        """At start: the specs on disk are those of the claims remembered, no more and no fewer."""
        self._specs.clear_remains()
        known = {claim.uid: claim for claim in self._store.claims if claim.state == "prepared" and not claim.lost}
        for uid in self._specs.claims() - set(known):
            self._specs.remove(uid)
        for claim in known.values():
            self._specs.write(claim)

    def follow(self, inventory: Inventory) -> None:
        """After a scan: device numbers are handed out anew when a driver is loaded again or a card comes back. A spec
        with old numbers would give the next container somebody else's device, so it is written anew; and while the
        device is gone there is no spec, which keeps containers from starting."""
        for claim in self._store.claims:
            if claim.state != "prepared":
                continue
            try:
                held, lost = tuple(renew(one, inventory) for one in claim.held), ""
            except InputError as error:
                held, lost = claim.held, error.what
            try:
                self._keep(claim, msgspec.structs.replace(claim, held=held, lost=lost))
            except FishplateError as error:
                _log.error("claim %s: %s", claim, error)  # tried again after the next scan

    def _keep(self, before: Claim, now: Claim) -> None:
        changed = now != before
        if changed:
            self._specs.remove(now.uid)  # whatever fails below, the old numbers are not offered any more
            self._store.record(now)
        if not now.lost:
            self._specs.write(now)
        if changed:
            self._listener.changed(now)

    async def release_orphans(self, *, holding: Collection[str] = ()) -> tuple[Claim, ...]:
        """Claims whose object is gone, and which the kubelet never gave back; with `holding`, only holders of these
        devices. An object that is gone has no pod, but its containers may outlive it (a pod deleted by force), so the
        runtime is asked as well: no answer means that they run."""
        released = []
        for claim in self._store.claims:
            if holding and not any(one.device in holding for one in claim.held):
                continue
            if self._turns.busy(claim.uid):  # waiting for it here could be waiting for ourselves
                continue
            ref = ClaimRef(namespace=claim.namespace, name=claim.name, uid=claim.uid)
            if self._running(claim) or not await self._is_gone(ref):
                continue
            if not self._running(claim):  # it may have started while the API server was asked
                await self._one_at_a_time(ref, self._unprepare)
                released.append(claim)
        return tuple(released)

    async def _is_gone(self, ref: ClaimRef) -> bool:
        return await self._reader.is_gone(ref, driver=self._rules.driver, pool=self._rules.node)

    async def join(self, claim: Claim, consumer: Consumer) -> Claim:
        """Another pod uses a prepared claim; the kubelet does not call again for it."""
        current = self._store.claim(claim.uid)
        if current is None or current.state != "prepared":
            raise InputError(f"claim {claim} is not prepared on this node")
        others = tuple(one for one in current.consumers if one.uid != consumer.uid)
        self._store.record(msgspec.structs.replace(current, consumers=(*others, consumer)))
        joined = self._store.claim(claim.uid)
        assert joined is not None
        return joined


def _line(text: str) -> str:
    """The kubelet puts it into an event: one line."""
    return "; ".join(part.strip() for part in text.splitlines() if part.strip())
