"""What a template is worth on an empty node, asked of the allocator and not of the writer."""

from collections.abc import Sequence

from fishplate.dra.budget import Budget
from fishplate.dra.fleet import PodCount, count_pods
from fishplate.dra.intent import Claims
from fishplate.dra.intent_attributes import count
from fishplate.dra.intent_classes import device_classes
from fishplate.dra.intent_published import Published
from fishplate.dra.profile import Profile
from fishplate.dra.scene import Scene
from fishplate.dra.world import Node, World
from fishplate.k8s.claim import default_claim
from fishplate.k8s.resource import ResourceSlice

_NODES_TRIED = 8
_SECONDS = 10.0


def pods_per_node(
    claims: Claims, published: Published, slices: Sequence[ResourceSlice], profile: Profile
) -> dict[str, PodCount]:
    """For each template, how many such pods an empty node takes: the best of a few nodes."""
    scene = Scene(World(slices=tuple(slices), classes=device_classes()), profile)
    best_first = sorted(published.nodes, key=lambda node: (len(node.gpus), len(node.nics)), reverse=True)
    nodes = [Node(name=node.name) for node in best_first[:_NODES_TRIED]]
    counted = {}
    for one in claims.templates:
        claim = default_claim(one.as_claim(one.metadata.name))
        counts = [count_pods(scene, node, [claim], new_budget=lambda: Budget(seconds=_SECONDS)) for node in nodes]
        counted[one.metadata.name] = max(counts, key=lambda each: each.pods)
    return counted


def describe_worth(counted: dict[str, PodCount]) -> str:
    parts = [f"{count(each.pods, 'such pod')} of {name}" for name, each in counted.items()]
    if len(parts) == 1:
        (each,) = counted.values()
        return f"An empty node takes {count(each.pods, 'such pod')}."
    return f"An empty node takes {' and '.join(parts)}."
