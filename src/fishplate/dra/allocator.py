"""What kube-scheduler would allocate for a pod's claims on one node."""

from __future__ import annotations

import sys
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from fishplate.dra.budget import Budget
from fishplate.dra.pools import gather_pools
from fishplate.dra.requests import Preparation
from fishplate.dra.results import build_results
from fishplate.dra.scene import Scene
from fishplate.dra.search import Search
from fishplate.errors import AllocationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fishplate.dra.profile import Profile
    from fishplate.dra.requests import Prepared
    from fishplate.dra.world import Node, World
    from fishplate.k8s.claim import AllocationResult, ResourceClaim

_SPARE_FRAMES = 500


class Allocation(NamedTuple):
    """One result for each claim, in order, and how many steps the search took."""

    results: tuple[AllocationResult, ...]
    steps: int


def allocate(
    world: World | Scene,
    node: Node,
    claims: Sequence[ResourceClaim],
    *,
    profile: Profile,
    budget: Budget | None = None,
    new_share_id: Callable[[], str] = lambda: str(uuid.uuid4()),
) -> Allocation | None:
    """The allocation of all claims together, or None if they do not fit on this node.

    AllocationError: the scheduler gives up on the pod (or, with `node_only`, on this node). BudgetError: the search was
    stopped, nothing is known. For many nodes of one world, make a Scene once and pass that.
    """
    scene = world if isinstance(world, Scene) else Scene(world, profile)
    budget = budget or Budget()
    before = budget.spent
    search = start_search(scene, node, claims, budget)
    with room_for(search.claims):
        if not search.run():
            if any(pool.invalid for pool in search.pools):
                raise AllocationError("invalid resource pools were encountered", node_only=True)
            return None
    return Allocation(build_results(search, node, new_share_id), budget.spent - before)


def start_search(scene: Scene, node: Node, claims: Sequence[ResourceClaim], budget: Budget) -> Search:
    """Everything before the first device is tried; AllocationError if it does not get that far."""
    pools = gather_pools(scene, node)
    preparation = Preparation(scene, node, pools)
    prepared = [preparation.prepare(claim) for claim in claims]
    return Search(scene, preparation, prepared, pools, budget)


@contextmanager
def room_for(claims: list[Prepared]) -> Iterator[None]:
    """The search recurses for each device, request and claim, and a pod may have more of them than Python's limit."""
    depth = sum(
        2 + sum(2 + max(max(wanted.count, 0) for wanted in alternatives) for alternatives in claim.requests)
        for claim in claims
    )
    before = sys.getrecursionlimit()
    needed = 3 * depth + _SPARE_FRAMES
    if needed <= before:
        yield
        return
    sys.setrecursionlimit(needed)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
