"""One question, many nodes: which of them can take a pod's claims, and how many such pods each.

Nodes that are alike (see `likeness`) share one run of the exact allocator; all others are asked one by one. The answer
is the one that asking each node would give.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from fishplate.dra.allocator import Allocation, allocate
from fishplate.dra.budget import Budget
from fishplate.dra.likeness import Likeness
from fishplate.errors import AllocationError, BudgetError
from fishplate.k8s.bulk import quiet_collector

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from fishplate.dra.scene import Scene
    from fishplate.dra.world import Node
    from fishplate.k8s.claim import ResourceClaim

# Claims that hold nothing (admin access, shares without capacity) fit for ever.
DEFAULT_POD_LIMIT = 64


class Verdict(StrEnum):
    FITS = "fits"
    DOES_NOT_FIT = "does-not-fit"
    ERROR = "error"
    UNKNOWN = "unknown"


class Group:
    """Nodes with one verdict for one reason. `allocation` and `error` are those of the first node."""

    __slots__ = ("allocation", "error", "nodes", "steps", "verdict")

    def __init__(self, verdict: Verdict, allocation: Allocation | None, error: str, steps: int) -> None:
        self.verdict = verdict
        self.allocation = allocation
        self.error = error
        self.steps = steps
        self.nodes: list[Node] = []

    def __repr__(self) -> str:
        return f"Group({self.verdict}, {len(self.nodes)} nodes)"


class Survey:
    def __init__(self, groups: list[Group]) -> None:
        self.groups = groups

    def count(self, verdict: Verdict) -> int:
        return sum(len(group.nodes) for group in self.groups if group.verdict is verdict)

    def verdicts(self) -> dict[str, Verdict]:
        """By node name."""
        return {node.name: group.verdict for group in self.groups for node in group.nodes}


def survey(
    scene: Scene,
    nodes: Sequence[Node],
    claims: Sequence[ResourceClaim],
    *,
    new_budget: Callable[[], Budget] = Budget,
) -> Survey:
    """Ask about every node; each search gets a budget of its own."""
    groups: dict[Hashable, Group] = {}
    for key, node in group_keys(scene, nodes, claims):
        group = groups.get(key)
        if group is None:
            group = groups[key] = _ask(scene, node, claims, new_budget())
        group.nodes.append(node)
    return Survey(list(groups.values()))


def group_keys(scene: Scene, nodes: Sequence[Node], claims: Sequence[ResourceClaim]) -> list[tuple[Hashable, Node]]:
    """Each node with the key it shares with nodes like it; a node that is like no other is its own key."""
    if not nodes:
        return []
    try:
        likeness = Likeness(scene, nodes[0], claims)
    except AllocationError:
        # Claims that make no sense fail before any device is looked at, on some nodes for a reason of the node's own.
        return [(node.name, node) for node in nodes]
    with quiet_collector():
        return [(key if (key := likeness.describe(node)) is not None else node.name, node) for node in nodes]


def _ask(scene: Scene, node: Node, claims: Sequence[ResourceClaim], budget: Budget) -> Group:
    try:
        found = allocate(scene, node, claims, profile=scene.profile, budget=budget)
    except AllocationError as error:
        return Group(Verdict.ERROR, None, error.what, budget.spent)
    except BudgetError as error:
        return Group(Verdict.UNKNOWN, None, error.what, budget.spent)
    return Group(Verdict.DOES_NOT_FIT if found is None else Verdict.FITS, found, "", budget.spent)


class PodCount:
    """How many pods fit, and whether that is all: `exact` is False where the limit, an error or a budget ended it."""

    __slots__ = ("exact", "pods", "reason")

    def __init__(self, pods: int, reason: str = "") -> None:
        self.pods = pods
        self.reason = reason
        self.exact = not reason


def count_pods(
    scene: Scene,
    node: Node,
    claims: Sequence[ResourceClaim],
    *,
    limit: int = DEFAULT_POD_LIMIT,
    new_budget: Callable[[], Budget] = Budget,
) -> PodCount:
    """Allocate again and again on one node, each pod with claims like these."""
    if scene.local_slices(node) is not None:
        scene = scene.narrow(node)
    for pods in range(limit):
        group = _ask(scene, node, claims, new_budget())
        if group.allocation is None:
            return PodCount(pods, group.error)
        scene = scene.holding(group.allocation.results, f"pod {pods}")
    return PodCount(limit, f"stopped at {limit}")


def count_fleet(
    scene: Scene,
    nodes: Sequence[Node],
    claims: Sequence[ResourceClaim],
    *,
    limit: int = DEFAULT_POD_LIMIT,
    new_budget: Callable[[], Budget] = Budget,
) -> dict[str, PodCount]:
    """For every node, by name. Devices that several nodes can reach are counted for each of them."""
    known: dict[Hashable, PodCount] = {}
    counts: dict[str, PodCount] = {}
    for key, node in group_keys(scene, nodes, claims):
        if key not in known:
            known[key] = count_pods(scene, node, claims, limit=limit, new_budget=new_budget)
        counts[node.name] = known[key]
    return counts
