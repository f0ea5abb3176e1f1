"""What would become of claims on a fleet, and why: nodes that are alike are told together.

Three outcomes: allocated (some node takes all claims), does-not-fit (no node does, and that is proven), error (the
scheduler would give up on the pod). Where a search was stopped by its budget, the outcome is never called a proof.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, NamedTuple

from fishplate.dra.budget import Budget
from fishplate.dra.capacity import find_fabric
from fishplate.dra.changes import Change, find_changes, find_elsewhere
from fishplate.dra.diagnosis import NodeDiagnosis, diagnose
from fishplate.dra.fleet import Group, Verdict, survey
from fishplate.dra.foresight import Foreseen, foresee
from fishplate.dra.proximity import Proximity, judge_proximity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fishplate.dra.scene import Scene
    from fishplate.dra.world import Node
    from fishplate.hardware.catalog import Catalog
    from fishplate.k8s.claim import AllocationResult, DeviceSelector, ResourceClaim
    from fishplate.k8s.resource import Device

Outcome = Literal["allocated", "does-not-fit", "error", "unknown"]
_OUTCOMES: dict[Verdict, Outcome] = {
    Verdict.FITS: "allocated",
    Verdict.DOES_NOT_FIT: "does-not-fit",
    Verdict.ERROR: "error",
    Verdict.UNKNOWN: "unknown",
}
# The one error that ends the attempt for its node alone.
_NODE_ONLY_ERROR = "invalid resource pools were encountered"
_SECONDS_PER_NODE = 10.0  # the scheduler's own limit for one node
_SECONDS = 60.0  # for all nodes together; what is left over then is called unknown


class Story(NamedTuple):
    """Nodes with one fate for one reason."""

    outcome: Outcome
    nodes: tuple[str, ...]
    results: tuple[AllocationResult, ...]
    proximity: Proximity | None
    diagnosis: NodeDiagnosis | None
    error: str
    changes: tuple[Change, ...]
    fabrics: tuple[str, ...] = ()
    """The placement groups of its nodes, where the claims get NICs: pods on different ones cannot reach each other."""


class Explanation(NamedTuple):
    """`changes` are those that concern the choice of nodes; each story has its own besides."""

    outcome: Outcome
    stories: tuple[Story, ...]
    warnings: tuple[Foreseen, ...]
    changes: tuple[Change, ...] = ()


def explain(
    scene: Scene,
    nodes: Sequence[Node],
    claims: Sequence[ResourceClaim],
    *,
    catalog: Catalog,
    elsewhere: Sequence[Node] = (),
    changes: bool = True,
    clock: Callable[[], float] = time.monotonic,
) -> Explanation:
    """All claims together, as one pod would bring them, on every node; `elsewhere` are nodes that the pod excludes."""
    end = clock() + _SECONDS

    def new_budget() -> Budget:
        return Budget(seconds=max(0.1, min(_SECONDS_PER_NODE, end - clock())), clock=clock)

    found = survey(scene, nodes, claims, new_budget=new_budget)
    devices = _devices(scene)
    parts = _Parts(scene, claims)
    stories = _merge(
        _tell(scene, group, nodes_, claims, devices, catalog) for group in found.groups for nodes_ in parts.split(group)
    )
    outcome = _overall(stories)
    by_name = {node.name: node for node in nodes}
    stories = [_add_fabrics(scene, by_name, story) for story in stories]
    if outcome != "allocated" and changes:
        stories = [
            story._replace(changes=tuple(find_changes(scene, by_name[story.nodes[0]], claims))) for story in stories
        ]
    order: list[Outcome] = ["allocated", "error", "unknown", "does-not-fit"]
    stories.sort(key=lambda story: (order.index(story.outcome), -len(story.nodes)))
    others = find_elsewhere(scene, elsewhere, claims) if outcome != "allocated" and elsewhere else []
    return Explanation(outcome, tuple(stories), tuple(foresee(scene, claims)), tuple(others))


def _add_fabrics(scene: Scene, nodes: Mapping[str, Node], story: Story) -> Story:
    if story.proximity is None or not story.proximity.fabrics:
        return story
    fabrics = dict.fromkeys(find_fabric(scene, nodes[name]) for name in story.nodes)
    return story._replace(fabrics=tuple(fabrics))


def _overall(stories: Sequence[Story]) -> Outcome:
    outcomes = {story.outcome for story in stories}
    # An error on any node that is looked at aborts the whole attempt, whatever other nodes could do.
    order: tuple[Outcome, ...] = ("error", "allocated", "unknown")
    for outcome in order:
        if outcome in outcomes:
            return outcome
    return "does-not-fit"


def _devices(scene: Scene) -> dict[tuple[str, str, str], Device]:
    return {
        (origin.spec.driver, origin.spec.pool.name, device.name): device
        for origin in scene.world.slices
        for device in origin.spec.devices
    }


class _Parts:
    """Nodes that share a verdict may have it for different reasons: a device that is in use and one that a selector
    refuses are equally lost to the allocator, but not to the reader. So a group that does not fit is split by what its
    reasons can depend on: which devices are in use, and the values that selectors and constraints read."""

    def __init__(self, scene: Scene, claims: Sequence[ResourceClaim]) -> None:
        self._scene = scene
        self._names: frozenset[str] | None = frozenset()
        for claim in claims:
            for constraint in claim.spec.devices.constraints:
                self._add({constraint.match_attribute or constraint.distinct_attribute or ""})
            for request in claim.spec.devices.requests:
                for one in (request.exactly, *request.first_available):
                    if one is not None:
                        classes = scene.classes.get(one.device_class_name)
                        self._add_selectors((*(classes.spec.selectors if classes else ()), *one.selectors))

    def _add(self, names: Iterable[str]) -> None:
        if self._names is not None:
            self._names |= frozenset(names)

    def _add_selectors(self, selectors: Iterable[DeviceSelector]) -> None:
        for selector in selectors:
            program = self._scene.selectors.compile(selector.cel.expression) if selector.cel else ""
            if isinstance(program, str):
                continue
            if program.reads.everything:
                self._names = None  # whatever it reads may be what tells two nodes apart
            else:
                self._add(f"{domain}/{name}" for kind, domain, name in program.reads.items if kind == "attribute")

    def split(self, group: Group) -> list[tuple[Node, ...]]:
        if group.verdict is not Verdict.DOES_NOT_FIT:
            return [tuple(group.nodes)]
        parts: dict[object, list[Node]] = {}
        for node in group.nodes:
            parts.setdefault(node.name if self._names is None else self._describe(node), []).append(node)
        return [tuple(nodes) for nodes in parts.values()]

    def _describe(self, node: Node) -> object:
        names = sorted(self._names or ())
        return tuple(
            (
                origin.spec.driver,
                device.name,
                self._scene.holdings.owner((origin.spec.driver, origin.spec.pool.name, device.name)) is not None,
                tuple(_value(device, origin.spec.driver, name) for name in names),
            )
            for origin in self._scene.slices_for(node)
            for device in origin.spec.devices
        )


def _value(device: Device, driver: str, name: str) -> object:
    attribute = device.attributes.get(name)
    if attribute is None and name.startswith(f"{driver}/"):
        attribute = device.attributes.get(name.removeprefix(f"{driver}/"))
    return None if attribute is None else attribute.value


def _tell(
    scene: Scene,
    group: Group,
    nodes: tuple[Node, ...],
    claims: Sequence[ResourceClaim],
    devices: dict[tuple[str, str, str], Device],
    catalog: Catalog,
) -> tuple[object, Story]:
    """A group's story, and the key under which stories that read the same are put together."""
    names = tuple(node.name for node in nodes)
    outcome = _OUTCOMES[group.verdict]
    if group.error == _NODE_ONLY_ERROR:
        outcome = "does-not-fit"
    if group.allocation is not None:
        results = group.allocation.results
        proximity = judge_proximity(results, devices, catalog)
        words = tuple(tuple((r.request, r.driver, r.device) for r in one.devices.results) for one in results)
        key: object = (outcome, words, tuple(pair[2:] for pair in proximity.pairs))
        return key, Story(outcome, names, results, proximity, None, "", ())
    diagnosis = diagnose(scene, nodes[0], claims) if not group.error else None
    key = (outcome, group.error, diagnosis.key if diagnosis else None)
    return key, Story(outcome, names, (), None, diagnosis, group.error, ())


def _merge(told: Iterable[tuple[object, Story]]) -> list[Story]:
    merged: dict[object, Story] = {}
    for key, story in told:
        known = merged.get(key)
        merged[key] = story if known is None else known._replace(nodes=known.nodes + story.nodes)
    return list(merged.values())
