"""What keeps the pods of one job on one fabric.

Constraints of a claim never span pods, so no claim can do it. Where nodes carry the fabric as a label, the pods can:
by affinity to each other, or by a Kueue topology, and the claim stays usable on every fabric. Where they do not, the
claim itself is pinned to one placement group; then it serves that fabric alone. Whichever it is, the reason is said.

A label is taken for the fabric's only if it is true on every node: each of its values within one fabric, no node
without it. Nothing is guessed from a label's name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from fishplate.dra.capacity import NO_FABRIC, FabricRoom, Room, choose_fabric
from fishplate.k8s.kueue import QUEUE_NAME, REQUIRED_TOPOLOGY, Topology, TopologyLevel, TopologySpec
from fishplate.k8s.resource import ObjectMeta

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fishplate.dra.world import Node

HOSTNAME = "kubernetes.io/hostname"
INSTANCE = "app.kubernetes.io/instance"
_MOST_NAMED = 8


class How(StrEnum):
    POD_AFFINITY = "pod-affinity"
    KUEUE = "kueue-topology"
    PINNED = "pinned-claim"


class Job(NamedTuple):
    """`queue` is the LocalQueue of Kueue that shall admit the job; "" where Kueue has no part in it."""

    name: str
    workers: int
    one_per_node: bool = False
    queue: str = ""


class FabricLabel(NamedTuple):
    """The node label that tells the fabric; where there is none, `key` is "" and `why` says why not."""

    key: str
    why: str


class Placement(NamedTuple):
    """`pod_template` is for the job's pod template, `job_labels` for the job itself, `objects` for the cluster."""

    how: How
    fabric: FabricRoom
    label: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    pod_template: dict[str, object]
    job_labels: dict[str, str]
    objects: tuple[Topology, ...] = ()


# -- the label ---------------------------------------------------------------------------------------------------


def find_fabric_label(nodes: Sequence[Node], fabrics: Mapping[str, str], wanted: str = "") -> FabricLabel:
    """The label `wanted`, if it is true; else any whose value is the placement group itself. `fabrics` is by node."""
    named = [node for node in nodes if fabrics.get(node.name)]
    if wanted:
        why = _untrue(wanted, named or nodes, fabrics)
        return FabricLabel("" if why else wanted, why or f"every node carries it as {wanted}")
    if not named:
        return FabricLabel("", "no NIC names a placement group that a label could repeat")
    keys = set.intersection(*({key for key, value in _labels(node) if value == fabrics[node.name]} for node in named))
    if not keys:
        return FabricLabel("", f"no label of the nodes carries the placement group{_nearly(named, fabrics)}")
    key = min(keys)
    return FabricLabel(key, f"every node carries it as {key}")


def _labels(node: Node) -> list[tuple[str, str]]:
    return [(key, value) for key, value in node.labels.items() if key != HOSTNAME]


def _nearly(named: Sequence[Node], fabrics: Mapping[str, str]) -> str:
    """A label that only some nodes carry is the commonest reason: say which."""
    keys = sorted({key for node in named for key, value in _labels(node) if value == fabrics[node.name]})
    if not keys:
        return ""
    without = [node.name for node in named if node.labels.get(keys[0]) != fabrics[node.name]]
    return f" on every node: {len(without)} of {len(named)} lack {keys[0]}, {without[0]} for one"


def _untrue(key: str, nodes: Sequence[Node], fabrics: Mapping[str, str]) -> str:
    without = [node.name for node in nodes if not node.labels.get(key)]
    if without:
        return f"{len(without)} of {len(nodes)} nodes lack the label {key}, {without[0]} for one"
    seen: dict[str, str] = {}
    for node in nodes:
        fabric = seen.setdefault(node.labels[key], fabrics.get(node.name, NO_FABRIC))
        if fabric != fabrics.get(node.name, NO_FABRIC):
            return f"{key}={node.labels[key]} stands on nodes of two placement groups"
    return ""


# -- the plan ----------------------------------------------------------------------------------------------------


def plan_placement(job: Job, room: Room, label: FabricLabel, topologies: Sequence[Topology] = ()) -> Placement | None:
    """How to keep the job together; None where no fabric holds all of it. `room` is by the label's value where the
    label can be used, by placement group otherwise."""
    best = choose_fabric(room, job.workers)
    if best is None:
        return None
    if not label.key:
        return _pin(job, best, label)
    existing = next((one for one in topologies if one.has_level(label.key)), None)
    if job.queue or existing is not None:
        return _queue(job, room, best, label, existing)
    return _attract(job, room, best, label)


def describe_shortage(job: Job, room: Room) -> str:
    """Why no plan is possible, with what would be."""
    named = [one for one in room.fabrics if one.fabric]
    most = max(named, key=lambda one: one.pods, default=None)
    if most is None:
        return "no node names its fabric"
    total = sum(one.pods for one in named)
    there = f"the one with most room, {most.fabric}, holds {most.pods}"
    return f"no single fabric holds {job.workers} workers: {there}; all {len(named)} together hold {total}"


def _pin(job: Job, best: FabricRoom, label: FabricLabel) -> Placement:
    reasons = (
        f"The claim is pinned to placement group {best.fabric}: it holds {_holds(best, job)}.",
        f"Not pod affinity or a Kueue topology: {label.why}.",
    )
    spec: dict[str, object] = {"affinity": {"podAntiAffinity": _apart(job)}} if job.one_per_node else {}
    template = _template(job, spec) if spec else {}
    warning = "a pinned claim serves this fabric alone; write another for each job elsewhere"
    return Placement(How.PINNED, best, "", reasons, (warning,), template, {})


def _attract(job: Job, room: Room, best: FabricRoom, label: FabricLabel) -> Placement:
    affinity: dict[str, object] = {"podAffinity": _required(_term(job, label.key))}
    if job.one_per_node:
        affinity["podAntiAffinity"] = _apart(job)
    narrowing = _narrow(job, room, label.key)
    if narrowing:
        affinity["nodeAffinity"] = narrowing
    reasons = (
        f"Pod affinity keeps the {job.workers} workers on one fabric: {label.why}, so the claim serves every fabric.",
        f"Best now: {best.fabric}, which holds {_holds(best, job)}.",
        *(_narrowing_reason(room, job) if narrowing else ()),
    )
    warning = "affinity does not look ahead: the first worker decides the fabric, and others may take room meanwhile"
    return Placement(How.POD_AFFINITY, best, label.key, reasons, (warning,), _template(job, {"affinity": affinity}), {})


def _queue(job: Job, room: Room, best: FabricRoom, label: FabricLabel, existing: Topology | None) -> Placement:
    affinity: dict[str, object] = {"podAntiAffinity": _apart(job)} if job.one_per_node else {}
    narrowing = _narrow(job, room, label.key)
    if narrowing:
        affinity["nodeAffinity"] = narrowing
    template = _template(job, {"affinity": affinity} if affinity else {}, annotations={REQUIRED_TOPOLOGY: label.key})
    found = f"the Topology {existing.metadata.name} has it" if existing else f"a Topology with {label.key} is written"
    reasons = (
        f"A Kueue topology keeps the {job.workers} workers on one fabric: {label.why}, and {found}.",
        f"Best now: {best.fabric}, which holds {_holds(best, job)}.",
        *(_narrowing_reason(room, job) if narrowing else ()),
    )
    warnings = ["Kueue counts nodes and quota; devices of claims only with its gate DynamicResourceAllocation"]
    if existing is None:
        warnings.append("the ResourceFlavor of the queue has to name the Topology (spec.topologyName)")
    if not job.queue:
        warnings.append(f"the job needs the label {QUEUE_NAME}; --queue writes it")
    labels = {QUEUE_NAME: job.queue} if job.queue else {}
    objects = () if existing else (_topology(label.key),)
    return Placement(How.KUEUE, best, label.key, reasons, tuple(warnings), template, labels, objects)


def _holds(best: FabricRoom, job: Job) -> str:
    return f"{best.pods} such pods, {best.left_over(job.workers)} more than the job"


def _narrow(job: Job, room: Room, key: str) -> dict[str, object]:
    """Nodes of the fabrics that hold the whole job now, where others have room for a part of it only."""
    open_ = [one for one in room.fabrics if one.fabric and one.pods]
    holding = sorted((one for one in open_ if one.holds(job.workers)), key=lambda one: (one.pods, one.fabric))
    if len(holding) == len(open_):
        return {}
    values = [one.fabric for one in holding[:_MOST_NAMED]]
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": values}]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def _narrowing_reason(room: Room, job: Job) -> tuple[str, ...]:
    small = [one for one in room.fabrics if one.fabric and one.pods and not one.holds(job.workers)]
    what = "1 fabric has" if len(small) == 1 else f"{len(small)} fabrics have"
    return (f"Node affinity leaves out what cannot hold the whole job: {what} room for a part of it only.",)


# -- manifests ---------------------------------------------------------------------------------------------------


def _term(job: Job, key: str) -> dict[str, object]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {INSTANCE: job.name}}}


def _required(term: dict[str, object]) -> dict[str, object]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _apart(job: Job) -> dict[str, object]:
    return _required(_term(job, HOSTNAME))


def _template(job: Job, spec: dict[str, object], *, annotations: dict[str, str] | None = None) -> dict[str, object]:
    """The part of a pod template that matters here; affinity finds the job's pods by this label."""
    metadata: dict[str, object] = {"labels": {INSTANCE: job.name}} if "affinity" in spec else {}
    if annotations:
        metadata["annotations"] = annotations
    parts: dict[str, object] = {"metadata": metadata, "spec": spec}
    return {name: part for name, part in parts.items() if part}


def _topology(key: str) -> Topology:
    levels = tuple(TopologyLevel(node_label=name) for name in (key, HOSTNAME))
    return Topology(metadata=ObjectMeta(name="fabrics"), spec=TopologySpec(levels=levels))


def describe_placement(placement: Placement, job: Job, room: Room) -> dict[str, object]:
    """For programs; `-o json` has it under `fishplate.fabric`."""
    return {
        "how": placement.how,
        "fabric": placement.fabric.fabric,
        "label": placement.label or None,
        "workers": job.workers,
        "holds": True,
        "fabrics": describe_room(room, job),
        "podTemplate": placement.pod_template or None,
        "jobLabels": placement.job_labels or None,
        "reasons": list(placement.reasons),
        "warnings": list(placement.warnings),
        "objects": [msgspec.to_builtins(one) for one in placement.objects],
    }


def describe_room(room: Room, job: Job) -> list[dict[str, object]]:
    return [
        {"fabric": one.fabric or None, "pods": one.pods, "holds": bool(one.fabric) and one.holds(job.workers)}
        for one in room.fabrics
    ]
