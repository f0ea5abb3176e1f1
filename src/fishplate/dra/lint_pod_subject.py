"""What the rules about pods look at: one pod, and the claims and classes that are known beside it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from fishplate.dra.device_plugins import Hardware, hardware_of
from fishplate.dra.intent_classes import GPU_DRIVERS, NIC_CLASS, NIC_DRIVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from fishplate.documents import Path
    from fishplate.k8s.claim import DeviceClass, DeviceRequest, ResourceClaimSpec
    from fishplate.k8s.pod import Container, PodResourceClaim
    from fishplate.k8s.workloads import PodUse


class Around:
    """Claims, templates and classes of the same files (and classes of the cluster, where somebody looked)."""

    def __init__(
        self,
        claims: Mapping[str, ResourceClaimSpec],
        templates: Mapping[str, ResourceClaimSpec],
        classes: Mapping[str, DeviceClass],
    ) -> None:
        self.claims = claims
        self.templates = templates
        self.classes = classes

    def find(self, named: PodResourceClaim) -> ResourceClaimSpec | None:
        if named.resource_claim_name is not None:
            return self.claims.get(named.resource_claim_name)
        return self.templates.get(named.resource_claim_template_name or "")

    def hardware(self, class_name: str) -> Hardware:
        """What a class hands out, by its name and by what its selectors ask for."""
        known = self.classes.get(class_name)
        selectors = known.spec.selectors if known else ()
        words = " ".join([class_name, *(one.cel.expression for one in selectors if one.cel)])
        if any(driver in words for driver in GPU_DRIVERS.values()) or class_name.startswith("mig."):
            return "gpu"
        return "nic" if class_name == NIC_CLASS or f'"{NIC_DRIVER}"' in words or "rdma" in words else ""

    def serves(self, resource: str) -> bool:
        """Whether a class stands behind an extended resource: then DRA hands it out, and no plugin."""
        return any(one.spec.extended_resource_name == resource for one in self.classes.values())


class Asking(NamedTuple):
    """A request of a claim: what it is for, and how many at most."""

    claim: str
    request: str
    hardware: Hardware
    number: int


class PodSubject:
    """One pod. `where` tells the place of a field, given its path below the pod's spec."""

    def __init__(self, pod: PodUse, around: Around, where: Callable[[Path], str]) -> None:
        self.name = pod.name
        self.spec = pod.spec
        self.copies = pod.copies
        self.idle_launcher = pod.idle_launcher
        self.around = around
        self.where = where

    @cached_property
    def containers(self) -> list[tuple[Path, Container]]:
        spec = self.spec
        return [
            *((("initContainers", index), one) for index, one in enumerate(spec.init_containers)),
            *((("containers", index), one) for index, one in enumerate(spec.containers)),
        ]

    @cached_property
    def asked(self) -> list[Asking]:
        """Every request of every claim of the pod that is known."""
        return list(self._read())

    def _read(self) -> Iterator[Asking]:
        for named in self.spec.resource_claims:
            found = self.around.find(named)
            for request in found.devices.requests if found else ():
                for class_name, number in _wanted(request):
                    yield Asking(named.name, request.name, self.around.hardware(class_name), number)

    def has(self, hardware: Hardware) -> bool:
        return any(one.hardware == hardware for one in self.asked)

    def given(self, container: Container, hardware: Hardware) -> int:
        """How many devices of a kind a container gets, from claims and plugins."""
        uses = {(one.name, one.request) for one in container.resources.claims}
        claimed: dict[tuple[str, str], int] = {}
        for one in self.asked:
            if one.hardware == hardware and ((one.claim, "") in uses or (one.claim, one.request) in uses):
                key = (one.claim, one.request)
                claimed[key] = max(claimed.get(key, 0), one.number)  # of alternatives, one is given
        return sum(claimed.values()) + sum(number for _, number in plugin_resources(container, hardware))


def _wanted(request: DeviceRequest) -> Iterator[tuple[str, int]]:
    if request.exactly is not None:
        yield request.exactly.device_class_name, max(request.exactly.count, 1)
    for one in request.first_available:
        yield one.device_class_name, max(one.count, 1)


def plugin_resources(container: Container, hardware: Hardware) -> list[tuple[str, int]]:
    """Extended resources of a kind that a container asks for, with their number."""
    asked = container.resources.requests | container.resources.limits
    found = [(name, str(amount)) for name, amount in asked.items() if hardware_of(name) == hardware]
    return [(name, int(amount)) for name, amount in found if amount.isdigit() and int(amount)]
