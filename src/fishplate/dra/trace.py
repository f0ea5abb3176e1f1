"""Why a device was not taken: a second pass over a search that failed, kept out of the search itself.

kube-scheduler says "cannot allocate all claims" and no more. This pass asks, for each request and each device, which
check refuses the device first, in the order in which the allocator checks. It asks twice: with nothing chosen (is there
a device for this request at all?), and at the deepest point the search reached, where counters, constraints and devices
already chosen count, too (what stood in the way of the next device?).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from fishplate.dra.allocator import room_for
from fishplate.dra.budget import Budget
from fishplate.dra.pools import gather_pools, node_matches
from fishplate.dra.requests import Preparation
from fishplate.dra.search import Outcome, Search, Taken
from fishplate.errors import AllocationError, BudgetError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fishplate.dra.pools import Candidate, Pool
    from fishplate.dra.requests import Prepared, Wanted
    from fishplate.dra.scene import Scene
    from fishplate.dra.world import Node
    from fishplate.k8s.claim import DeviceSelector, ResourceClaim


class Reason(StrEnum):
    """In the order in which the allocator checks."""

    POOL_INCOMPLETE = "pool-incomplete"
    POOL_INVALID = "pool-invalid"
    IN_USE = "in-use"
    CHOSEN_ALREADY = "chosen-already"
    BINDING_CONDITIONS = "binding-conditions"
    CLASS_SELECTOR = "class-selector"
    REQUEST_SELECTOR = "request-selector"
    SELECTOR_ERROR = "selector-error"
    NODE_SELECTION = "node-selection"
    CAPACITY = "capacity"
    COUNTERS_DISABLED = "counters-disabled"
    COUNTERS = "counters"
    TAINT = "taint"
    CONSTRAINT = "constraint"
    NONE = "none"


class Obstacle(NamedTuple):
    """`device` is driver/pool/device, or driver/pool where the whole pool is out. `foreign`: of another class, so that
    it says nothing about the request, whatever else is in its way."""

    claim: str
    request: str
    device: str
    reason: Reason
    text: str
    foreign: bool = False


class Step(NamedTuple):
    claim: str
    request: str
    device: str


class Trace(NamedTuple):
    """What a search came to.

    `alone`: each request and device with nothing chosen. `deepest`: the largest partial choice, in order. `stuck`: the
    claim and request that could not go on from there, and `blocked` why not, device by device. `complete`: False if a
    budget ended the search, so that `deepest` may not be the deepest.
    """

    fits: bool
    error: str
    alone: tuple[Obstacle, ...]
    deepest: tuple[Step, ...]
    stuck: tuple[str, str] | None
    blocked: tuple[Obstacle, ...]
    complete: bool


class _Recorder(Search):
    """A search that remembers how far it got."""

    deepest: tuple[tuple[int, Taken], ...] = ()
    stuck: tuple[int, Wanted] | None = None

    def _try_devices(self, c: int, r: int, k: int, d: int, within: bool, start: int) -> Outcome:
        self._note(c, self.claims[c].requests[r][k])
        return super()._try_devices(c, r, k, d, within, start)

    def _take_all(self, c: int, r: int, k: int, d: int, within: bool) -> Outcome:
        self._note(c, self.claims[c].requests[r][k])
        return super()._take_all(c, r, k, d, within)

    def _note(self, c: int, wanted: Wanted) -> None:
        depth = sum(map(len, self.results))
        if self.stuck is None or depth > len(self.deepest):
            self.deepest = tuple((index, taken) for index, all_taken in enumerate(self.results) for taken in all_taken)
            self.stuck = (c, wanted)


def trace(scene: Scene, node: Node, claims: Sequence[ResourceClaim], *, budget: Budget | None = None) -> Trace:
    """AllocationError only where the claims make no sense before any device is looked at."""
    pools = gather_pools(scene, node)
    preparation = Preparation(scene, node, pools)
    prepared = [preparation.prepare(claim) for claim in claims]
    search = _Recorder(scene, preparation, prepared, pools, budget or Budget())
    fits, error, complete = False, "", True
    with room_for(prepared):
        try:
            fits = search.run()
        except AllocationError as failure:
            error = failure.what
        except BudgetError:
            complete = False
    examiner = _Examiner(scene, node, pools, preparation)
    alone = [
        obstacle
        for index, claim in enumerate(prepared)
        for alternatives in claim.requests
        for wanted in alternatives
        for obstacle in examiner.examine(prepared, index, wanted, ())
    ]
    blocked: list[Obstacle] = []
    stuck = None
    if not fits and search.stuck is not None:
        index, wanted = search.stuck
        stuck = (str(prepared[index].claim), wanted.full_name)
        blocked = examiner.examine(prepared, index, wanted, search.deepest)
    deepest = tuple(
        Step(str(prepared[index].claim), taken.wanted.full_name, str(taken.candidate))
        for index, taken in search.deepest
    )
    return Trace(fits, error, tuple(alone), deepest, stuck, tuple(blocked), complete)


class _Examiner:
    def __init__(self, scene: Scene, node: Node, pools: list[Pool], preparation: Preparation) -> None:
        self._scene = scene
        self._node = node
        self._pools = pools
        self._preparation = preparation

    def examine(
        self, prepared: list[Prepared], index: int, wanted: Wanted, chosen: tuple[tuple[int, Taken], ...]
    ) -> list[Obstacle]:
        """Every device for one request, after these choices."""
        fresh = [self._preparation.prepare(claim.claim) for claim in prepared]
        search = Search(self._scene, self._preparation, fresh, self._pools, Budget())
        for owner, taken in chosen:
            number = sum(other.wanted is taken.wanted for other in search.results[owner])
            search.take(owner, taken.wanted, taken.candidate, number, must=False)
        claim = str(prepared[index].claim)
        found = []
        for pool in self._pools:
            if pool.invalid:
                found.append(Obstacle(claim, wanted.full_name, str(pool), Reason.POOL_INVALID, pool.invalid))
            elif pool.incomplete and not self._scene.profile.allows_incomplete:
                found.append(Obstacle(claim, wanted.full_name, str(pool), Reason.POOL_INCOMPLETE, pool.incomplete))
            for candidate in [] if pool.invalid else pool.candidates:
                reason, text = self._first_obstacle(search, index, wanted, candidate)
                foreign = reason is Reason.CLASS_SELECTOR or self._is_foreign(wanted, candidate)
                found.append(Obstacle(claim, wanted.full_name, str(candidate), reason, text, foreign))
        return found

    def _is_foreign(self, wanted: Wanted, candidate: Candidate) -> bool:
        """The allocator checks use before class, so a busy GPU is `in use` also to a request for NICs."""
        try:
            selectors = wanted.device_class.spec.selectors
            return bool(selectors) and self._scene.selectors.first_false("class", selectors, candidate) >= 0
        except AllocationError:
            return False

    def _first_obstacle(self, search: Search, c: int, wanted: Wanted, candidate: Candidate) -> tuple[Reason, str]:
        if search.is_in_use(c, wanted, candidate):
            owner = self._scene.holdings.owner(candidate.id)
            if owner is None:
                return Reason.CHOSEN_ALREADY, "chosen already for this pod"
            return Reason.IN_USE, f"in use by claim {owner}"
        return self._selection(search, c, wanted, candidate) or self._state(search, c, wanted, candidate)

    def _selection(self, search: Search, c: int, wanted: Wanted, candidate: Candidate) -> tuple[Reason, str] | None:
        device = candidate.device
        if device.binding_conditions and not self._scene.profile.binding:
            return Reason.BINDING_CONDITIONS, "has binding conditions, and their feature gate is off"
        name, claim = wanted.device_class.metadata.name, str(search.claims[c].claim)
        asked = (
            (Reason.CLASS_SELECTOR, f"class {name}", wanted.device_class.spec.selectors),
            (Reason.REQUEST_SELECTOR, f"claim {claim}", wanted.written.selectors),
        )
        for reason, owner, selectors in asked:
            try:
                index = self._scene.selectors.first_false(owner, selectors, candidate)
            except AllocationError as error:
                return Reason.SELECTOR_ERROR, error.what
            if index >= 0:
                return reason, f"{owner}: selector #{index} says no: {self._clause(selectors[index], candidate)}"
        if candidate.slice.spec.per_device_node_selection and not node_matches(
            self._node, device.node_name, device.all_nodes, device.node_selector
        ):
            return Reason.NODE_SELECTION, f"cannot be reached from {self._node.name}"
        return None

    def _clause(self, selector: DeviceSelector, candidate: Candidate) -> str:
        """The first conjunct that is not true, and not the whole expression."""
        expression = "" if selector.cel is None else selector.cel.expression
        program = self._scene.selectors.compile(expression)
        if isinstance(program, str) or candidate.seen is None:
            return expression
        clause = next((one for one in program.explain(candidate.seen) if one.result != "true"), None)
        return f"{clause.text} is {clause.message or 'false'}" if clause else expression

    def _state(self, search: Search, c: int, wanted: Wanted, candidate: Candidate) -> tuple[Reason, str]:
        """What depends on what is taken."""
        profile, device = self._scene.profile, candidate.device
        if profile.consumable:
            try:
                shortage = search.find_shortage(c, wanted, candidate, "checking")
            except AllocationError as error:
                return Reason.CAPACITY, error.what
            if shortage is not None:
                return Reason.CAPACITY, shortage.text
        if device.consumes_counters and not profile.partitionable:
            return Reason.COUNTERS_DISABLED, "consumes counters, and their feature gate is off"
        if device.consumes_counters and not search.is_charged(candidate):
            overdraft = search.counters.find_overdraft(candidate)
            if overdraft is not None:
                where = f"counter {overdraft.counter} of set {overdraft.counter_set}"
                return Reason.COUNTERS, f"{where}: needs {overdraft.needed}, available {overdraft.available}"
        taint = search.find_taint(wanted, candidate) if profile.taints else None
        if taint is not None:
            return Reason.TAINT, f"taint {taint} is not tolerated"
        for index, constraint in enumerate(search.claims[c].constraints):
            if constraint.applies(wanted.base_name, wanted.subrequest):
                refusal = constraint.explain(candidate)
                if refusal is not None:
                    return Reason.CONSTRAINT, f"constraint #{index}: {refusal.text}"
        return Reason.NONE, "nothing is in the way"
