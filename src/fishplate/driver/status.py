"""What the claim's status says of our devices, and events where something failed.

One server-side apply per claim, when it was prepared or could not be; tried again until the API server takes it or the
claim is gone. Nothing waits for it: a pod starts whether or not its status is written yet.
"""

import asyncio
import datetime as dt
import logging
import random
from collections.abc import Callable

import msgspec

from fishplate.driver import faults
from fishplate.driver.claims import AllocatedClaim, claim_path
from fishplate.driver.records import Claim, Held
from fishplate.errors import FishplateError, OutsideError
from fishplate.k8s.api import Api, ConflictError, RefusedError
from fishplate.k8s.client import NotFoundError
from fishplate.k8s.resource import LiveMeta

_MAX_MESSAGE = 1024
_MAX_BACKOFF_S = 60.0
_log = logging.getLogger("fishplate.status")


class Condition(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    type: str
    status: str
    reason: str
    message: str = ""
    last_transition_time: str


class DeviceStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    driver: str
    pool: str
    device: str
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that we have to say of one claim."""

    uid: str
    namespace: str
    name: str
    devices: tuple[DeviceStatus, ...]

    def body(self) -> object:
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            # The UID makes the API server refuse to write into a claim that was made anew under the same name.
            "metadata": {"name": self.name, "namespace": self.namespace, "uid": self.uid},
            # Two requests may hold one device (adminAccess); its entry stands once.
            "status": {"devices": list({(one.pool, one.device, one.share_id): one for one in self.devices}.values())},
        }


class _ToldStatus(msgspec.Struct, frozen=True):
    devices: tuple[dict[str, object], ...] = ()


class _Told(msgspec.Struct, frozen=True):
    """A claim, as far as its drivers told of their devices."""

    metadata: LiveMeta
    status: _ToldStatus = _ToldStatus()


def report_prepared(claim: Claim, *, driver: str) -> Report:
    def status(held: Held) -> DeviceStatus:
        # DRANET's word for devices without a network interface, where users look for it.
        reason = "RDMADeviceReady" if held.interface else "RDMAOnlyDeviceReady"
        condition = _condition("True", reason, "", claim.since)
        return DeviceStatus(
            driver=driver, pool=held.pool, device=held.device, share_id=held.share_id or None, conditions=(condition,)
        )

    return Report(
        uid=claim.uid, namespace=claim.namespace, name=claim.name, devices=tuple(status(one) for one in claim.held)
    )


def report_problem(claim: Claim, *, driver: str, reason: str, message: str, at: float) -> Report:
    """A claim that was prepared and does not serve its pod after all."""
    condition = _condition("False", reason, message, at)
    return Report(
        uid=claim.uid,
        namespace=claim.namespace,
        name=claim.name,
        devices=tuple(
            DeviceStatus(
                driver=driver,
                pool=one.pool,
                device=one.device,
                share_id=one.share_id or None,
                conditions=(condition,),
            )
            for one in claim.held
        ),
    )


def report_failed(claim: AllocatedClaim, *, driver: str, message: str, at: float) -> Report:
    condition = _condition("False", "PrepareFailed", message, at)
    return Report(
        uid=claim.ref.uid,
        namespace=claim.ref.namespace,
        name=claim.ref.name,
        devices=tuple(
            DeviceStatus(
                driver=driver,
                pool=result.pool,
                device=result.device,
                share_id=result.share_id or None,
                conditions=(condition,),
            )
            for result in claim.results(driver)
        ),
    )


def _condition(status: str, reason: str, message: str, at: float) -> Condition:
    moment = dt.datetime.fromtimestamp(int(at), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Condition(
        type="Ready", status=status, reason=reason, message=message[:_MAX_MESSAGE], last_transition_time=moment
    )


class StatusWriter:
    """A report per claim waits here until it is written; a newer one takes the place of an older."""

    def __init__(self, api: Api, *, manager: str, on_write: Callable[[str], None] = lambda _: None) -> None:
        self._api = api
        self._manager = manager
        self._waiting: dict[str, Report] = {}
        self._said: dict[str, Report] = {}
        self._wake = asyncio.Event()
        self._on_write = on_write

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def tell(self, report: Report) -> None:
        """The kubelet tries a refused claim again and again: the same words are not written twice."""
        latest = self._waiting.get(report.uid) or self._said.get(report.uid)
        if report.devices and _words(latest) != _words(report):
            self._waiting[report.uid] = report
            self._wake.set()

    def forget(self, uid: str) -> None:
        self._waiting.pop(uid, None)
        self._said.pop(uid, None)

    async def run(self) -> None:
        backoff = 0.5
        while True:
            await self._wake.wait()
            self._wake.clear()
            outcome = [await self._write(report) for report in tuple(self._waiting.values())]
            if all(outcome):
                backoff = 0.5
            else:
                self._wake.set()
                await asyncio.sleep(backoff * random.uniform(0.5, 1.0))
                backoff = min(backoff * 2, _MAX_BACKOFF_S)

    async def _apply(self, path: str, report: Report) -> None:
        """Server-side apply, as upstream. For a claim with parameters the API server may refuse it: on the way through
        apply their JSON comes out in another order of keys, and then the allocation counts as changed (seen on 1.36).
        A JSON Patch of our own entries leaves the order alone. Parameters written with spaces survive neither; then
        the status stays unwritten, and the log and an event say what there is to say."""
        try:
            await self._api.apply(path, report.body(), manager=self._manager)
        except RefusedError as error:
            if "status.allocation" not in error.what:
                raise
            claim = await self._api.get(path.removesuffix("/status"), _Told)
            if claim.metadata.uid != report.uid:
                raise ConflictError("another claim has its name", where=path) from error
            ours = msgspec.to_builtins(report.devices)
            others = [one for one in claim.status.devices if one.get("driver") != report.devices[0].driver]
            test = {"op": "test", "path": "/metadata/resourceVersion", "value": claim.metadata.resource_version}
            change = {"op": "add", "path": "/status/devices", "value": [*others, *ours]}
            try:
                await self._api.patch(path, [test, change])
            except RefusedError as refusal:
                if "status.allocation" in refusal.what:
                    raise
                raise OutsideError(refusal.what, where=path) from refusal  # changed meanwhile: once more

    async def _write(self, report: Report) -> bool:
        """True when there is no more to do for this report."""
        path = claim_path(report.namespace, report.name) + "/status"
        try:
            await self._apply(path, report)
            faults.reach("status.applied")
            self._on_write("success")
            if report.uid in self._waiting:  # not forgotten meanwhile
                self._said[report.uid] = report
        except (NotFoundError, ConflictError):
            self._on_write("gone")  # the claim is gone or another one has its name
        except RefusedError as error:
            if error.code in (401, 403):
                _log.error("the status of claim %s/%s has to wait: %s", report.namespace, report.name, error)
                self._on_write("failed")
                return False  # rights can be given
            _log.error("the status of claim %s/%s is refused: %s", report.namespace, report.name, error)
            self._on_write("refused")
        except FishplateError as error:
            _log.warning("the status of claim %s/%s has to wait: %s", report.namespace, report.name, error)
            self._on_write("failed")
            return False
        if self._waiting.get(report.uid) is report:
            del self._waiting[report.uid]
        return True


def _words(report: Report | None) -> object:
    """A report without its times."""
    if report is None:
        return None
    return [
        (one.device, one.share_id, [(c.type, c.status, c.reason, c.message) for c in one.conditions])
        for one in report.devices
    ]
