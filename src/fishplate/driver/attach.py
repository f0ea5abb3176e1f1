"""The NRI side: the last word before a container is made. It must be fast and must not wait for anything but memory.

For a container that names a claim of ours the answer is one of three:
- its device nodes are in the spec already, put there by CDI: nothing to add;
- they are not, because the runtime does no CDI: they are added here, for this container only;
- its claim is not prepared on this node: the container is refused, with the reason. It never starts without devices.

NRI says nothing of claims. A container is known by its pod's UID and its name, from what the kubelet side recorded; and
by the CDI ids that a runtime shows (NRI 0.10). A runtime drops a plugin that is late and goes on without it, which is
why CDI carries the devices wherever it can and this is the second belt.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import msgspec

from fishplate.driver.cdi import claim_of, nccl_hca
from fishplate.driver.records import Claim, Held
from fishplate.driver.store import Store
from fishplate.errors import InputError
from fishplate.wire.nri import Adjustment, Container, ContainerState, DeviceNode, Event, Pod, RuntimeInfo, Update

_log = logging.getLogger("fishplate.attach")
_NOTHING = Adjustment()

Outcome = Literal["success", "failed", "noop"]
# A pod nobody has heard of may share a claim that is prepared already: ask the API server which.
FindShared = Callable[[Pod], Awaitable[None]]


class Missing(msgspec.Struct, frozen=True):
    """A container that runs without what its claim holds: it started while we were away, or somebody took it out."""

    claim: Claim
    pod: Pod
    container: str
    nodes: tuple[str, ...]


class Attacher:
    """Implements fishplate.wire.nri.PluginHandler."""

    events = Event.RUN_POD_SANDBOX | Event.STOP_POD_SANDBOX | Event.REMOVE_POD_SANDBOX | Event.CREATE_CONTAINER

    def __init__(
        self,
        store: Store,
        *,
        driver: str,
        inject: bool = True,
        find_shared: FindShared | None = None,
        on_missing: Callable[[Missing], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._driver = driver
        self._inject = inject
        self._find_shared = find_shared
        self._on_missing = on_missing
        self._pods: dict[str, str] | None = None  # sandbox id → pod UID; None until the runtime has told
        self._later: asyncio.Future[None] | None = None
        self.runtime: RuntimeInfo | None = None

    # -- connection ----------------------------------------------------------------------------------------------

    def configure(self, runtime: RuntimeInfo) -> None:
        self.runtime = runtime
        _log.info("runtime %s %s, NRI %s", runtime.name, runtime.version, runtime.nri_version or "unknown")

    def disconnected(self, reason: str) -> None:
        self._pods = None
        _log.warning("the runtime's NRI connection is gone: %s", reason)

    def synchronize(self, pods: Sequence[Pod], containers: Sequence[Container]) -> Sequence[Update]:
        """What started while we were away cannot be given devices any more: it is reported, not repaired in silence."""
        self._pods = {pod.id: pod.uid for pod in pods}
        told = self._report_missing(pods, containers, frozenset())
        if self._find_shared and self._store.shared:
            self._later = asyncio.ensure_future(self._look_up(pods, containers, told))
        return ()

    async def _look_up(
        self, pods: Sequence[Pod], containers: Sequence[Container], told: frozenset[tuple[str, str]]
    ) -> None:
        """Pods that came to share a claim while we were away."""
        assert self._find_shared is not None
        for pod in pods:
            try:
                await self._find_shared(pod)
            except InputError as error:
                _log.warning("%s", error)
        self._report_missing(pods, containers, told)

    def _report_missing(
        self, pods: Sequence[Pod], containers: Sequence[Container], told: frozenset[tuple[str, str]]
    ) -> frozenset[tuple[str, str]]:
        """Claim and container of each that was reported, those of before included."""
        found = set(told)
        by_id = {pod.id: pod for pod in pods}
        for container in containers:
            pod = by_id.get(container.pod_id)
            if pod is None or container.state not in (ContainerState.CREATED, ContainerState.RUNNING):
                continue
            for claim in self._store.claims_of(pod.uid):
                wanted = _nodes(claim.devices_of(pod.uid, container.name))
                lacking = _lacking(wanted, container)
                if lacking and (claim.uid, container.id) not in found:
                    found.add((claim.uid, container.id))
                    self._on_missing(Missing(claim, pod, container.name, tuple(node.path for node in lacking)))
        return frozenset(found)

    # -- life of a pod -------------------------------------------------------------------------------------------

    def run_pod_sandbox(self, pod: Pod) -> Awaitable[None] | None:
        if self._pods is not None:
            self._pods[pod.id] = pod.uid
        if self._find_shared and self._store.shared:
            return self._find_shared(pod)
        return None

    def stop_pod_sandbox(self, pod: Pod) -> None:
        return None

    def remove_pod_sandbox(self, pod: Pod) -> None:
        if self._pods is not None:
            self._pods.pop(pod.id, None)

    def other_event(self, event: Event, pod: Pod, container: Container | None) -> None:
        return None

    def runs(self, claim: Claim) -> bool:
        """Whether the runtime has a pod that may use the claim. While nobody can tell, it does; and of a claim that
        pods share nobody can tell all of them."""
        if self._pods is None or claim.shared:
            return True
        alive = set(self._pods.values())
        return any(consumer.uid in alive for consumer in claim.consumers)

    # -- a container ---------------------------------------------------------------------------------------------

    def create_container(self, pod: Pod, container: Container) -> Adjustment:
        self._refuse_unprepared(pod, container)
        claims = self._store.claims_of(pod.uid)
        held = [one for claim in claims for one in claim.devices_of(pod.uid, container.name)]
        if not held:
            return _NOTHING
        lacking = _lacking(_nodes(held), container)
        if lacking and not self._inject:
            paths = ", ".join(node.path for node in lacking)
            raise InputError(
                f"container {container.name} of pod {pod.namespace}/{pod.name} has a claim, but not {paths}",
                remedy="does the runtime do CDI? (containerd 1.7: enable_cdi = true), or run with --injection auto",
            )
        env = _nccl_environment(claims, held, pod, container)
        if not lacking and not env:
            return _NOTHING
        return Adjustment(devices=tuple(lacking), env=env)

    def _refuse_unprepared(self, pod: Pod, container: Container) -> None:
        for claim in self._store.claims_of(pod.uid):
            if claim.state != "prepared" and claim.devices_of(pod.uid, container.name):
                raise InputError(f"claim {claim} of pod {pod.namespace}/{pod.name} is not prepared on this node")
            if claim.lost and claim.devices_of(pod.uid, container.name):
                raise InputError(f"claim {claim} of pod {pod.namespace}/{pod.name}: {claim.lost}")
        for cdi_id in container.cdi_devices:
            uid = claim_of(self._driver, cdi_id)
            if uid is None:
                continue
            known = self._store.claim(uid)
            if known is None or known.state != "prepared":
                raise InputError(
                    f"container {container.name} of pod {pod.namespace}/{pod.name} was given {cdi_id}, "
                    "but that claim is not prepared on this node"
                )


def _nodes(held: Sequence[Held]) -> tuple[DeviceNode, ...]:
    """Each node once, in the order of the claim: rdma_cm belongs to all of them."""
    nodes = {node.path: node for one in held for node in one.nodes}
    return tuple(
        DeviceNode(path=node.path, type="c", major=node.major, minor=node.minor, file_mode=node.mode)
        for node in nodes.values()
    )


def _nccl_environment(claims: Sequence[Claim], held: Sequence[Held], pod: Pod, container: Container) -> dict[str, str]:
    """NCCL_IB_HCA for all of the container's devices. The pod's own word wins over ours; what CDI said for one claim of
    several does not."""
    if not any(claim.nccl and claim.devices_of(pod.uid, container.name) for claim in claims):
        return {}
    wanted = nccl_hca(name for one in held for name in one.rdma)
    by_cdi = {nccl_hca(name for one in claim.held for name in one.rdma) for claim in claims}
    present = [entry for entry in container.env if entry.startswith("NCCL_IB_HCA=")]
    if wanted in present or any(entry not in by_cdi for entry in present):
        return {}
    key, _, value = wanted.partition("=")
    return {key: value}


def _lacking(wanted: Sequence[DeviceNode], container: Container) -> tuple[DeviceNode, ...]:
    present = {(node.path, node.major, node.minor) for node in container.devices}
    return tuple(node for node in wanted if (node.path, node.major, node.minor) not in present)
