"""Why claims do not fit on a node: for every request, the first step at which each device drops out.

The steps and their order are the scheduler's own. It logs them only at its highest verbosity; all a user sees is
`cannot allocate all claims`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fishplate.dra.allocator import start_search
from fishplate.dra.budget import Budget
from fishplate.errors import AllocationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fishplate.dra.pools import Candidate
    from fishplate.dra.requests import Wanted
    from fishplate.dra.scene import Scene
    from fishplate.dra.search import Search
    from fishplate.dra.world import Node
    from fishplate.k8s.claim import DeviceSelector, ResourceClaim


class Step(NamedTuple):
    """Where a device dropped out: an id that programs can rely on, and the reason in words."""

    id: str
    text: str


class Reason(NamedTuple):
    """One step and how many devices of the node ended there, with the first of them as example."""

    id: str
    text: str
    devices: int
    example: str


class RequestDiagnosis(NamedTuple):
    """What became of one request (or subrequest) on one node, looked at by itself."""

    claim: str
    request: str
    wanted: int
    suitable: int
    reasons: tuple[Reason, ...]

    @property
    def is_satisfiable(self) -> bool:
        return self.suitable >= self.wanted


class NodeDiagnosis(NamedTuple):
    pools: tuple[Reason, ...]
    requests: tuple[RequestDiagnosis, ...]
    error: str

    @property
    def key(self) -> tuple[object, ...]:
        """Nodes with the same key can be told together: same steps, same words, whatever the devices are called."""
        requests = tuple(
            (one.claim, one.request, min(one.suitable, one.wanted), tuple((r.id, r.text) for r in one.reasons))
            for one in self.requests
        )
        return (self.error, tuple((r.id, r.text) for r in self.pools), requests)


def diagnose(scene: Scene, node: Node, claims: Sequence[ResourceClaim]) -> NodeDiagnosis:
    """Every request of every claim, each against all devices of the node."""
    try:
        search = start_search(scene, node, claims, Budget())
    except AllocationError as error:
        return NodeDiagnosis((), (), error.what)
    requests = []
    for c, prepared in enumerate(search.claims):
        for alternatives in prepared.requests:
            requests += [_diagnose_request(search, c, wanted) for wanted in alternatives]
    return NodeDiagnosis(tuple(_pool_reasons(search)), tuple(requests), "")


def _pool_reasons(search: Search) -> Iterator[Reason]:
    for pool in search.pools:
        if pool.incomplete:
            yield Reason("pool-incomplete", f"pool {pool}: {pool.incomplete}", 0, str(pool))
        if pool.invalid:
            yield Reason("pool-invalid", f"pool {pool}: {pool.invalid}", 0, str(pool))


def _diagnose_request(search: Search, c: int, wanted: Wanted) -> RequestDiagnosis:
    tally: dict[Step, list[str]] = {}
    suitable = 0
    for candidate in search.candidates:
        step = first_step(search, c, wanted, candidate)
        if step is None:
            suitable += 1
        elif step.id != "other-driver":
            tally.setdefault(step, []).append(_example(search, step, candidate))
    reasons = tuple(Reason(step.id, step.text, len(names), names[0]) for step, names in tally.items())
    return RequestDiagnosis(str(search.claims[c].claim), wanted.full_name, max(wanted.count, 1), suitable, reasons)


def _example(search: Search, step: Step, candidate: Candidate) -> str:
    """A device's name; of one in use also who holds it. Kept out of the reason's words, so that nodes whose devices are
    held by different claims are still told together."""
    holder = search.scene.holdings.owner(candidate.id) if step.id == "in-use" else None
    return f"{candidate.device.name} by claim {holder}" if holder else candidate.device.name


def first_step(search: Search, c: int, wanted: Wanted, candidate: Candidate) -> Step | None:
    """The first step at which a device drops out when nothing else is chosen yet; None if it does not."""
    claim = search.claims[c].claim
    try:
        if step := _class_step(search, wanted, candidate):
            return step
        if search.is_in_use(c, wanted, candidate):
            return Step("in-use", "in use")
        if not search.profile.binding and candidate.device.binding_conditions:
            return Step("binding-conditions", "has binding conditions, which this scheduler does not know")
        if step := _selector_step(search, f"claim {claim}", "request-selector", wanted.written.selectors, candidate):
            return step
    except AllocationError as error:
        return Step("selector-error", error.what)
    return _resource_step(search, c, wanted, candidate)


def _class_step(search: Search, wanted: Wanted, candidate: Candidate) -> Step | None:
    """A device of another class is nobody's business: it is not counted against the request."""
    name, selectors = wanted.device_class.metadata.name, wanted.device_class.spec.selectors
    step = _selector_step(search, f"class {name}", "class-selector", selectors, candidate)
    return Step("other-driver", "") if step else None


def _selector_step(
    search: Search, owner: str, id_: str, selectors: Sequence[DeviceSelector], candidate: Candidate
) -> Step | None:
    index = search.scene.selectors.first_false(owner, selectors, candidate) if selectors else -1
    if index < 0:
        return None
    selector = selectors[index].cel
    assert selector is not None
    program = search.scene.selectors.compile(selector.expression)
    assert not isinstance(program, str)
    assert candidate.seen is not None
    clause = next((one for one in program.explain(candidate.seen) if one.result != "true"), None)
    said = f"{clause.text} is {clause.message or 'false'}" if clause else "false"
    return Step(id_, f"selector #{index}: {said}")


def _resource_step(search: Search, c: int, wanted: Wanted, candidate: Candidate) -> Step | None:
    profile = search.profile
    if profile.consumable and (shortage := search.find_shortage(c, wanted, candidate, "checking")):
        return Step("capacity", shortage.text)
    if candidate.device.consumes_counters:
        if not profile.partitionable:
            return Step("counters-off", "consumes counters, which this scheduler does not know")
        if not search.is_charged(candidate) and (over := search.counters.find_overdraft(candidate)):
            text = f"needs {over.needed} of counter {over.counter} in {over.counter_set}, {over.available} left"
            return Step("counters", text)
    if profile.taints and (taint := search.find_taint(wanted, candidate)):
        return Step("taint", f"taint {taint} is not tolerated")
    for constraint in search.claims[c].constraints:
        if constraint.applies(wanted.base_name, wanted.subrequest) and (refusal := constraint.explain(candidate)):
            return Step("constraint", refusal.text)
    return None
