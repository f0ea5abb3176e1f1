"""Why claims do not fit on a node, summed up: how many devices each check kept from each request.

The checks and their order are the allocator's; `trace` runs them. Here they are counted and put into words that are the
same on every node with the same trouble, so that ten thousand nodes can be told in a few lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fishplate.dra.budget import Budget
from fishplate.dra.trace import Obstacle, Reason, Trace, trace
from fishplate.errors import AllocationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fishplate.dra.scene import Scene
    from fishplate.dra.world import Node
    from fishplate.k8s.claim import ResourceClaim

_POOL_REASONS = (Reason.POOL_INCOMPLETE, Reason.POOL_INVALID)
_STEPS = 100_000  # to find the deepest point; the verdict itself was found without this limit


class Tally(NamedTuple):
    """One reason and how many devices of the node it kept out, with the first of them as example."""

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
    reasons: tuple[Tally, ...]

    @property
    def is_satisfiable(self) -> bool:
        return self.suitable >= self.wanted


class NodeDiagnosis(NamedTuple):
    """`stuck` says where the search got no further, when each request could be met alone."""

    pools: tuple[Tally, ...]
    requests: tuple[RequestDiagnosis, ...]
    stuck: str
    blocked: tuple[Tally, ...]
    error: str

    @property
    def key(self) -> tuple[object, ...]:
        """Nodes with the same key can be told together: same reasons, same words, whatever their devices are called."""
        requests = tuple(
            (one.claim, one.request, min(one.suitable, one.wanted), tuple((r.id, r.text) for r in one.reasons))
            for one in self.requests
        )
        return self.error, tuple((r.id, r.text) for r in self.pools), requests


def diagnose(scene: Scene, node: Node, claims: Sequence[ResourceClaim]) -> NodeDiagnosis:
    """Every request of every claim, each against all devices of the node."""
    try:
        found = trace(scene, node, claims, budget=Budget(steps=_STEPS))
    except AllocationError as error:
        return NodeDiagnosis((), (), "", (), error.what)
    pools = _tally(one for one in found.alone if one.reason in _POOL_REASONS)
    requests = tuple(
        _diagnose_request(str(claim), name, wanted, found) for claim in claims for name, wanted in _wanted(claim)
    )
    stuck = (
        f"{found.stuck[1]} of claim {found.stuck[0]}, after {len(found.deepest)} devices were chosen"
        if found.stuck
        else ""
    )
    if stuck and not found.complete:
        stuck += ", as far as was looked"  # the verdict is proven; that nothing got further is not
    return NodeDiagnosis(pools, requests, stuck, _tally(found.blocked), found.error)


def _wanted(claim: ResourceClaim) -> list[tuple[str, int]]:
    """Every request and subrequest with the number it asks for; mode All wants at least one."""
    names = []
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            names.append((request.name, max(request.exactly.count, 1)))
        names += [(f"{request.name}/{one.name}", max(one.count, 1)) for one in request.first_available]
    return names


def _diagnose_request(claim: str, request: str, wanted: int, found: Trace) -> RequestDiagnosis:
    own = [one for one in found.alone if (one.claim, one.request) == (claim, request)]
    suitable = sum(one.reason is Reason.NONE for one in own)
    return RequestDiagnosis(
        claim, request, wanted, suitable, _tally(one for one in own if one.reason not in _POOL_REASONS)
    )


def _tally(obstacles: Iterable[Obstacle]) -> tuple[Tally, ...]:
    """Devices of other classes and devices that nothing stands in the way of are not counted."""
    counted: dict[tuple[str, str], list[str]] = {}
    for one in obstacles:
        if one.foreign or one.reason is Reason.NONE:
            continue
        device = one.device.rpartition("/")[2]
        text, example = one.text, device
        if one.reason is Reason.IN_USE:  # who holds it differs from node to node: an example, not a reason
            text, example = "in use", f"{device} {one.text.removeprefix('in use ')}"
        counted.setdefault((str(one.reason), text), []).append(example)
    return tuple(Tally(id_, text, len(names), names[0]) for (id_, text), names in counted.items())
