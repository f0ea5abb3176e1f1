"""The two handlers with a clock around each call. DRANET's labels: success, failed, noop."""

import time
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence

from fishplate.driver.attach import Attacher
from fishplate.driver.health import HealthBoard
from fishplate.driver.metrics import Metrics
from fishplate.driver.prepare import Preparer
from fishplate.wire.kubelet import ClaimRef, DeviceHealth, Prepared
from fishplate.wire.nri import Adjustment, Container, Event, Pod, RuntimeInfo, Update


class MeteredDra:
    """Implements fishplate.wire.kubelet.DraHandler."""

    def __init__(self, preparer: Preparer, health: HealthBoard, metrics: Metrics) -> None:
        self._preparer = preparer
        self._health = health
        self._metrics = metrics

    async def prepare(self, claims: Sequence[ClaimRef]) -> Mapping[str, Prepared]:
        began = time.perf_counter()
        answers = await self._preparer.prepare(claims)
        self._note("PrepareResourceClaims", began, [answer.error for answer in answers.values()])
        return answers

    async def unprepare(self, claims: Sequence[ClaimRef]) -> Mapping[str, str]:
        began = time.perf_counter()
        errors = await self._preparer.unprepare(claims)
        self._note("UnprepareResourceClaims", began, list(errors.values()))
        return errors

    def watch_health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        return self._health.watch()

    def _note(self, method: str, began: float, errors: list[str]) -> None:
        self._metrics.dra_seconds.of(method).observe(time.perf_counter() - began)
        for error in errors:
            self._metrics.dra_requests.of(method, "failed" if error else "success").inc()


class MeteredNri:
    """Implements fishplate.wire.nri.PluginHandler."""

    def __init__(self, attacher: Attacher, metrics: Metrics) -> None:
        self._attacher = attacher
        self._metrics = metrics
        self.events = attacher.events

    def configure(self, runtime: RuntimeInfo) -> None:
        self._attacher.configure(runtime)

    def disconnected(self, reason: str) -> None:
        self._attacher.disconnected(reason)

    def synchronize(self, pods: Sequence[Pod], containers: Sequence[Container]) -> Sequence[Update]:
        return self._attacher.synchronize(pods, containers)

    def run_pod_sandbox(self, pod: Pod) -> Awaitable[None] | None:
        began = time.perf_counter()
        waiting = self._attacher.run_pod_sandbox(pod)
        if waiting is None:
            self._note("RunPodSandbox", "noop", began)
            return None
        return self._finish(waiting, began)

    async def _finish(self, waiting: Awaitable[None], began: float) -> None:
        outcome = "failed"
        try:
            await waiting
            outcome = "success"
        finally:
            self._note("RunPodSandbox", outcome, began)

    def stop_pod_sandbox(self, pod: Pod) -> None:
        began = time.perf_counter()
        self._attacher.stop_pod_sandbox(pod)
        self._note("StopPodSandbox", "noop", began)

    def remove_pod_sandbox(self, pod: Pod) -> None:
        began = time.perf_counter()
        self._attacher.remove_pod_sandbox(pod)
        self._note("RemovePodSandbox", "noop", began)

    def create_container(self, pod: Pod, container: Container) -> Adjustment:
        began = time.perf_counter()
        outcome = "failed"
        try:
            adjustment = self._attacher.create_container(pod, container)
            outcome = "success" if adjustment.devices or adjustment.env else "noop"
            return adjustment
        finally:
            self._note("CreateContainer", outcome, began)

    def other_event(self, event: Event, pod: Pod, container: Container | None) -> None:
        self._attacher.other_event(event, pod, container)

    def _note(self, method: str, outcome: str, began: float) -> None:
        self._metrics.nri_seconds.of(method, outcome).observe(time.perf_counter() - began)
        self._metrics.nri_requests.of(method, outcome).inc()
