"""Requests made ready for the search: class looked up, devices of mode All collected, limits checked.

Everything here runs before the first device is tried, for all claims and all subrequests, so an error in a subrequest
that would never be reached is still fatal for the pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishplate.dra.constraints import build_constraints
from fishplate.dra.consumption import ConsumptionError, find_shortage, read_requests
from fishplate.dra.pools import node_matches
from fishplate.errors import AllocationError, InputError
from fishplate.k8s import claim as claim_kinds
from fishplate.k8s.claim import DeviceSubRequest, ExactDeviceRequest
from fishplate.k8s.resource import MAX_RESULTS_PER_CLAIM

if TYPE_CHECKING:
    from fishplate.dra.constraints import Constraint
    from fishplate.dra.pools import Candidate, Pool
    from fishplate.dra.scene import Scene
    from fishplate.dra.world import Node
    from fishplate.k8s.claim import DeviceClass, DeviceRequest, ResourceClaim
    from fishplate.k8s.quantity import Quantity


class Wanted:
    """One request, or one subrequest of `parent`, as the search works on it."""

    def __init__(self, name: str, parent: str, written: ExactDeviceRequest | DeviceSubRequest) -> None:
        self.name = name
        self.parent = parent
        self.written = written
        self.device_class: DeviceClass
        self.count = 0
        self.admin = isinstance(written, ExactDeviceRequest) and bool(written.admin_access)
        self.takes_all = written.allocation_mode == claim_kinds.ALL
        self.capacity: dict[str, Quantity] = {}
        self.all_devices: list[Candidate] = []
        self.matches: dict[Candidate, bool] = {}

    @property
    def full_name(self) -> str:
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def base_name(self) -> str:
        return self.parent or self.name

    @property
    def subrequest(self) -> str:
        return self.name if self.parent else ""


class Prepared:
    """One claim: for each request its alternatives, of which a plain request has one."""

    def __init__(self, claim: ResourceClaim) -> None:
        self.claim = claim
        self.requests: list[list[Wanted]] = []
        self.constraints: list[Constraint] = []


class Preparation:
    def __init__(self, scene: Scene, node: Node, pools: list[Pool]) -> None:
        self._scene = scene
        self._profile = scene.profile
        self._node = node
        self._pools = pools

    def prepare(self, claim: ResourceClaim) -> Prepared:
        prepared = Prepared(claim)
        least = 0
        for request in claim.spec.devices.requests:
            self._check_gates(claim, request)
            alternatives = self._alternatives(claim, request)
            smallest = min(alternative.count for alternative in alternatives)
            if self._profile.limits_by_request and smallest > MAX_RESULTS_PER_CLAIM - least:
                raise AllocationError(
                    f"claim {claim}, request {request.name}: adding {smallest} devices exceeds the claim limit of "
                    f"{MAX_RESULTS_PER_CLAIM}, with {least} already accounted for"
                )
            least += smallest
            prepared.requests.append(alternatives)
        if not self._profile.limits_by_request and least > MAX_RESULTS_PER_CLAIM:
            raise AllocationError(
                f"claim {claim}: number of requested devices {least} exceeds the claim limit of {MAX_RESULTS_PER_CLAIM}"
            )
        prepared.constraints = build_constraints(claim, self._profile)
        return prepared

    def _check_gates(self, claim: ResourceClaim, request: DeviceRequest) -> None:
        profile = self._profile
        if not profile.prioritized_list and request.first_available:
            text = "has subrequests, but the DRAPrioritizedList feature is disabled"
            raise AllocationError(f"claim {claim}, request {request.name}: {text}")
        if profile.consumable or not profile.knows_capacity:
            return
        text = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
        if request.exactly is not None and request.exactly.capacity is not None:
            raise AllocationError(f"claim {claim}, request {request.name}: {text}")
        for subrequest in request.first_available:
            if subrequest.capacity is not None:
                culprit = f"request {request.name}" if profile.minor == "1.34" else f"subrequest {subrequest.name}"
                raise AllocationError(f"claim {claim}, {culprit}: {text}")

    def _alternatives(self, claim: ResourceClaim, request: DeviceRequest) -> list[Wanted]:
        if not request.first_available:
            if request.exactly is None:
                raise AllocationError(f"resource claim {claim}, request {request.name}: unknown request type")
            wanted = Wanted(request.name, "", request.exactly)
            self._check(claim, wanted, wanted.matches)
            return [wanted]
        alternatives = []
        confused: dict[Candidate, bool] = {}
        for index, subrequest in enumerate(request.first_available):
            wanted = Wanted(subrequest.name, request.name, subrequest)
            mixed_up = self._profile.confuses_subrequests
            self._check(claim, wanted, ({} if index > 1 else confused) if mixed_up else wanted.matches)
            alternatives.append(wanted)
        return alternatives

    def _check(self, claim: ResourceClaim, wanted: Wanted, memory: dict[Candidate, bool]) -> None:
        profile, written = self._profile, wanted.written
        place = f"claim {claim}, request {wanted.name}"
        if profile.minor == "1.37" and written.derived_attributes:
            raise AllocationError(f"{place}: cannot handle request with derived attributes, the feature is disabled")
        for index, selector in enumerate(written.selectors):
            if selector.cel is None:
                text = "CEL expression empty (unsupported selector type?)"
                raise AllocationError(f"{place}, selector #{index}: {text}")
        if not profile.admin_access and isinstance(written, ExactDeviceRequest) and written.admin_access is not None:
            raise AllocationError(f"{place}: admin access is requested, but the feature is disabled")
        name = written.device_class_name
        if not name:
            raise AllocationError(f"{place}: missing device class name (unsupported request type?)")
        if name not in self._scene.classes:
            missing = f'deviceclasses.resource.k8s.io "{name}" not found'
            raise AllocationError(f"{place}: could not retrieve device class {name}: {missing}")
        wanted.device_class = self._scene.classes[name]
        if profile.consumable:
            wanted.capacity = read_requests(written.capacity)
        match written.allocation_mode:
            case claim_kinds.EXACT_COUNT:
                wanted.count = written.count
            case claim_kinds.ALL:
                self._collect(claim, wanted, memory)
                wanted.count = len(wanted.all_devices)
            case mode:
                raise AllocationError(f"{place}: unsupported count mode {mode}")

    def _collect(self, claim: ResourceClaim, wanted: Wanted, memory: dict[Candidate, bool]) -> None:
        place = f"claim {claim}, request {wanted.name}"
        for pool in self._pools:
            state = "being updated" if pool.incomplete else "invalid" if pool.invalid else ""
            if state:
                raise AllocationError(f"{place}: asks for all devices, but resource pool {pool} is currently {state}")
            for candidate in pool.candidates:
                if self.is_selectable(claim, wanted, candidate, memory) and self._is_large_enough(
                    place, wanted, candidate
                ):
                    wanted.all_devices.append(candidate)

    def _is_large_enough(self, place: str, wanted: Wanted, candidate: Candidate) -> bool:
        if not self._profile.consumable:
            return True
        held = self._scene.holdings.capacity.get(candidate.id, {})
        taken = () if self._profile.all_ignores_remaining_capacity else (held,)
        try:
            return find_shortage(wanted.capacity, candidate.rules, taken, self._profile) is None
        except ConsumptionError as error:
            name = candidate.device.name
            raise AllocationError(f"{place}: checking capacity for device {name}: {error}") from error

    def is_selectable(
        self, claim: ResourceClaim, wanted: Wanted, candidate: Candidate, memory: dict[Candidate, bool]
    ) -> bool:
        if not self._profile.binding and candidate.device.binding_conditions:
            return False
        known = memory.get(candidate)
        if known is None:
            known = memory[candidate] = self._select(claim, wanted, candidate)
        return known

    def _select(self, claim: ResourceClaim, wanted: Wanted, candidate: Candidate) -> bool:
        first_false = self._scene.selectors.first_false
        device_class = wanted.device_class
        owner = f"class {device_class.metadata.name}"
        if device_class.spec.selectors and first_false(owner, device_class.spec.selectors, candidate) >= 0:
            return False
        if wanted.written.selectors and first_false(f"claim {claim}", wanted.written.selectors, candidate) >= 0:
            return False
        if not candidate.slice.spec.per_device_node_selection:
            return True
        device = candidate.device
        try:
            return node_matches(self._node, device.node_name, device.all_nodes, device.node_selector)
        except InputError as error:
            raise AllocationError(f"failed to parse node selector: {error.what}") from error
