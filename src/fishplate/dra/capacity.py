"""How many such pods fit now, per fabric, and which fabrics can hold a whole job.

Constraints of a claim never span pods, so nothing in a claim keeps the workers of a job on one InfiniBand fabric; but
workers on different fabrics cannot talk to each other at all. A fabric here is what the NICs of a node publish as their
placement group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fishplate.dra.budget import Budget
from fishplate.dra.fleet import DEFAULT_POD_LIMIT, count_fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fishplate.dra.scene import Scene
    from fishplate.dra.world import Node
    from fishplate.k8s.claim import ResourceClaim

PLACEMENT_GROUP = "azure.dra.net/placementGroupId"
NO_FABRIC = ""
_SECONDS_PER_SEARCH = 10.0  # the scheduler's own limit for one node; a count that it ends is not exact


class FabricRoom(NamedTuple):
    """What one fabric can take. `exact` is False where counting stopped early on some node."""

    fabric: str
    nodes: int
    usable: int
    pods: int
    exact: bool

    def holds(self, workers: int) -> bool:
        return self.pods >= workers

    def left_over(self, workers: int) -> int:
        """Pods that would still fit after the job: the smaller, the less room is torn."""
        return self.pods - workers


class Room(NamedTuple):
    pods: int
    fabrics: tuple[FabricRoom, ...]


def measure_room(
    scene: Scene,
    nodes: Sequence[Node],
    claims: Sequence[ResourceClaim],
    *,
    others: Sequence[Sequence[ResourceClaim]] = (),
    one_per_node: bool = False,
    fabric_of: Callable[[Node], str] | None = None,
) -> Room:
    """Count pods with such claims on every node, fabric by fabric; the fullest fit first. `others` are the claims of
    further pods that share no device with these, as templates for each NUMA node do; `fabric_of` tells a node's fabric
    where it is not the placement group that its NICs name."""
    name = fabric_of or (lambda node: find_fabric(scene, node))
    limit = 1 if one_per_node else DEFAULT_POD_LIMIT
    sorts = [
        count_fleet(scene, nodes, one, limit=limit, new_budget=lambda: Budget(seconds=_SECONDS_PER_SEARCH))
        for one in (claims, *others)
    ]
    fabrics: dict[str, list[tuple[int, bool]]] = {}
    for node in nodes:
        found = [counts[node.name] for counts in sorts]
        pods = sum(one.pods for one in found)
        exact = all(one.exact or (one_per_node and one.pods) for one in found)
        fabrics.setdefault(name(node), []).append((min(pods, 1) if one_per_node else pods, exact))
    rooms = [
        FabricRoom(
            fabric=fabric,
            nodes=len(found),
            usable=sum(1 for pods, _ in found if pods),
            pods=sum(pods for pods, _ in found),
            exact=all(exact for _, exact in found),
        )
        for fabric, found in fabrics.items()
    ]
    rooms.sort(key=lambda room: (-room.pods, room.fabric))
    return Room(sum(room.pods for room in rooms), tuple(rooms))


def choose_fabric(room: Room, workers: int) -> FabricRoom | None:
    """The fabric that holds the whole job and is left with the least torn room; None if no fabric holds it."""
    holding = [fabric for fabric in room.fabrics if fabric.fabric and fabric.holds(workers)]
    return min(holding, key=lambda fabric: (fabric.left_over(workers), fabric.fabric), default=None)


def find_fabric(scene: Scene, node: Node) -> str:
    """The placement group that the node's devices name; "" where none does."""
    for origin in scene.slices_for(node):
        for device in origin.spec.devices:
            attribute = device.attributes.get(PLACEMENT_GROUP)
            if attribute is not None and attribute.string:
                return attribute.string
    return NO_FABRIC
