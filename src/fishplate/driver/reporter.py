"""Everything that happens to a claim, told to whoever should know: its status, an event, a metric, the log."""

import logging
import time
from collections.abc import Callable

from fishplate.driver.attach import Missing
from fishplate.driver.claims import AllocatedClaim
from fishplate.driver.events import About, EventWriter
from fishplate.driver.metrics import Metrics
from fishplate.driver.prepare import Listener
from fishplate.driver.records import Claim
from fishplate.driver.status import StatusWriter, report_failed, report_prepared, report_problem
from fishplate.driver.store import Store

_log = logging.getLogger("fishplate.claims")


class Reporter(Listener):
    def __init__(
        self,
        *,
        driver: str,
        status: StatusWriter,
        events: EventWriter,
        metrics: Metrics,
        store: Store,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._driver = driver
        self._status = status
        self._events = events
        self._metrics = metrics
        self._store = store
        self._clock = clock

    def resume(self) -> None:
        """Statuses that a driver which was killed may not have written. One that is there already changes nothing."""
        for claim in self._store.claims:
            if claim.state == "prepared":
                self._tell_of(claim)
        self._count()

    def prepared(self, claim: Claim) -> None:
        _log.info("claim %s (%s) prepared: %s", claim, claim.uid, ", ".join(one.device for one in claim.held))
        self._status.tell(report_prepared(claim, driver=self._driver))
        self._count()

    def failed(self, claim: AllocatedClaim, reason: str) -> None:
        ref = claim.ref
        _log.warning("claim %s (%s) not prepared: %s", ref, ref.uid, reason)
        self._status.tell(report_failed(claim, driver=self._driver, message=reason, at=self._clock()))
        about = About(kind="ResourceClaim", name=ref.name, namespace=ref.namespace, uid=ref.uid)
        self._events.tell(about, "ClaimPrepareFailed", reason)

    def changed(self, claim: Claim) -> None:
        _log.warning("claim %s (%s): %s", claim, claim.uid, claim.lost or "its devices are back, with new numbers")
        self._tell_of(claim)
        if claim.lost:
            about = About(kind="ResourceClaim", name=claim.name, namespace=claim.namespace, uid=claim.uid)
            self._events.tell(about, "DeviceLost", claim.lost)

    def forgotten(self, claim: Claim) -> None:
        _log.info("claim %s (%s) unprepared", claim, claim.uid)
        self._status.forget(claim.uid)
        self._count()

    def unknown(self, uid: str) -> None:
        self._status.forget(uid)

    def missing(self, found: Missing) -> None:
        """A container that runs without its devices."""
        pod, claim = found.pod, found.claim
        message = f"container {found.container} runs without {', '.join(found.nodes)}: delete the pod to start it anew"
        _log.error("pod %s/%s: %s", pod.namespace, pod.name, message)
        self._metrics.without_devices.inc()
        report = report_problem(
            claim, driver=self._driver, reason="DeviceMissing", message=f"pod {pod.name}: {message}", at=self._clock()
        )
        self._status.tell(report)
        about = About(kind="Pod", name=pod.name, namespace=pod.namespace, uid=pod.uid)
        self._events.tell(about, "RDMADeviceAttachFailed", message)

    def _tell_of(self, claim: Claim) -> None:
        if claim.lost:
            report = report_problem(
                claim, driver=self._driver, reason="DeviceLost", message=claim.lost, at=self._clock()
            )
        else:
            report = report_prepared(claim, driver=self._driver)
        self._status.tell(report)

    def _count(self) -> None:
        self._metrics.held.set(len({one.device for claim in self._store.claims for one in claim.held}))
