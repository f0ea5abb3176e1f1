"""Single changes that would make claims fit, each proven by running the allocator again.

From a fixed list: drop one clause of a selector, drop a constraint, ask for one device less, tolerate a taint, wait for
the claim that holds a device, use other nodes. What is not proven is not said.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from fishplate.dra.allocator import allocate
from fishplate.dra.budget import Budget
from fishplate.dra.fleet import Verdict, survey
from fishplate.errors import AllocationError, BudgetError
from fishplate.k8s.claim import CELDeviceSelector, DeviceSelector, DeviceToleration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fishplate.dra.scene import Scene
    from fishplate.dra.world import Node
    from fishplate.k8s.claim import DeviceRequest, ResourceClaim

_STEPS = 20_000  # for one try; a change that cannot be proven quickly is not offered
_MAX_HOLDERS = 8


class Change(NamedTuple):
    id: str
    text: str


def find_changes(scene: Scene, node: Node, claims: Sequence[ResourceClaim]) -> list[Change]:
    """The changes after which the claims fit on this node, each alone."""
    own = scene.narrow(node) if scene.local_slices(node) is not None else scene
    found = [change for change, changed in _rewrites(own, node, claims) if _fits(own, node, changed)]
    return found + list(_waits(own, node, claims))


def find_elsewhere(scene: Scene, nodes: Sequence[Node], claims: Sequence[ResourceClaim]) -> list[Change]:
    """Other nodes that would take the claims, told in groups of alike."""
    groups = survey(scene, nodes, claims, new_budget=lambda: Budget(steps=_STEPS)).groups
    fitting = [node.name for group in groups if group.verdict is Verdict.FITS for node in group.nodes]
    if not fitting:
        return []
    others = "" if len(fitting) == 1 else f" or another of {len(fitting)} nodes"
    return [Change("use-other-nodes", f"let the pod go to {fitting[0]}{others} that its nodeSelector excludes")]


def _fits(scene: Scene, node: Node, claims: Sequence[ResourceClaim]) -> bool:
    try:
        return allocate(scene, node, claims, profile=scene.profile, budget=Budget(steps=_STEPS)) is not None
    except (AllocationError, BudgetError):
        return False


def _rewrites(
    scene: Scene, node: Node, claims: Sequence[ResourceClaim]
) -> Iterator[tuple[Change, list[ResourceClaim]]]:
    for c, claim in enumerate(claims):
        for change, changed in _rewrite_claim(scene, node, claim):
            yield change, [*claims[:c], changed, *claims[c + 1 :]]


def _rewrite_claim(scene: Scene, node: Node, claim: ResourceClaim) -> Iterator[tuple[Change, ResourceClaim]]:
    devices = claim.spec.devices
    for i, constraint in enumerate(devices.constraints):
        rest = devices.constraints[:i] + devices.constraints[i + 1 :]
        name = constraint.match_attribute or constraint.distinct_attribute
        yield (
            Change("drop-constraint", f"claim {claim}: drop constraint #{i} ({name})"),
            _with(claim, constraints=rest),
        )
    for r, request in enumerate(devices.requests):
        for change, changed in _rewrite_request(scene, node, claim, request):
            requests = (*devices.requests[:r], changed, *devices.requests[r + 1 :])
            yield change, _with(claim, requests=requests)


def _with(claim: ResourceClaim, **parts: object) -> ResourceClaim:
    devices = msgspec.structs.replace(claim.spec.devices, **parts)
    return msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, devices=devices))


def _rewrite_request(
    scene: Scene, node: Node, claim: ResourceClaim, request: DeviceRequest
) -> Iterator[tuple[Change, DeviceRequest]]:
    """Only requests that ask for one thing; alternatives are a change of their own kind already."""
    exactly = request.exactly
    if exactly is None:
        return
    place = f"claim {claim}, request {request.name}"
    if exactly.count > 1:
        fewer = msgspec.structs.replace(exactly, count=exactly.count - 1)
        text = f"{place}: ask for {exactly.count - 1} instead of {exactly.count}"
        yield Change("one-device-less", text), msgspec.structs.replace(request, exactly=fewer)
    for s, selector in enumerate(exactly.selectors):
        if selector.cel is None:
            continue
        for clause, rest in _without_each_clause(scene, node, selector.cel.expression):
            kept = (DeviceSelector(cel=CELDeviceSelector(expression=rest)),) if rest else ()
            selectors = exactly.selectors[:s] + kept + exactly.selectors[s + 1 :]
            changed = msgspec.structs.replace(exactly, selectors=selectors)
            text = f"{place}: drop `{clause}` from selector #{s}"
            yield Change("drop-clause", text), msgspec.structs.replace(request, exactly=changed)
    tolerant = msgspec.structs.replace(exactly, tolerations=(*exactly.tolerations, DeviceToleration(operator="Exists")))
    yield (
        Change("tolerate", f"{place}: tolerate the devices' taints"),
        msgspec.structs.replace(request, exactly=tolerant),
    )


def _without_each_clause(scene: Scene, node: Node, expression: str) -> Iterator[tuple[str, str]]:
    """Each conjunct, and the expression without it. Inside cel.bind the conjuncts do not stand alone: none is tried."""
    program = scene.selectors.compile(expression)
    example = next(((one.spec.driver, device) for one in scene.slices_for(node) for device in one.spec.devices), None)
    if isinstance(program, str) or example is None or "cel.bind" in expression:
        return
    clauses = [clause.text for clause in program.explain(scene.selectors.view(example[1], example[0]))]
    for i, clause in enumerate(clauses):
        rest = [other for k, other in enumerate(clauses) if k != i]
        yield clause, " && ".join(rest)  # each as it was written, brackets included


def _waits(scene: Scene, node: Node, claims: Sequence[ResourceClaim]) -> Iterator[Change]:
    """Claims that hold devices of this node: which of them, once gone, lets these in."""
    pools = {(origin.spec.driver, origin.spec.pool.name) for origin in scene.slices_for(node)}
    held = (scene.holdings.devices.get(pool, {}) for pool in pools)
    holders = dict.fromkeys(sorted(holder for devices in held for holder in devices.values()))
    for holder in list(holders)[:_MAX_HOLDERS]:
        if _fits(_without(scene, holder), node, claims):
            yield Change("wait-for-claim", f"wait until claim {holder} is gone")


def _without(scene: Scene, holder: str) -> Scene:
    later = copy(scene)
    devices = {
        pool: {name: owner for name, owner in held.items() if owner != holder}
        for pool, held in scene.holdings.devices.items()
    }
    later.holdings = scene.holdings._replace(devices=devices)
    return later
