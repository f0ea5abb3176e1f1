"""`--fabric auto`: which fabric a job goes to, and what keeps it there."""

from typing import TYPE_CHECKING, NamedTuple

from fishplate.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fishplate.cli.fleets import Source
    from fishplate.dra.capacity import Room
    from fishplate.dra.intent import Claims
    from fishplate.dra.job_placement import FabricLabel, Job, Placement
    from fishplate.dra.profile import Profile
    from fishplate.dra.scene import Scene

AUTO = "auto"
_REMEDY = "NICs name theirs as azure.dra.net/placementGroupId; elsewhere say which node label does, with --fabric-label"


class Decision(NamedTuple):
    """`placement` is None where no fabric holds the job; `said` then says so."""

    claims: "Claims"
    room: "Room"
    placement: "Placement | None"
    said: str = ""


def check_job(fabric: str, workers: int | None, *, is_size: bool, others: dict[str, bool]) -> None:
    """`others` are the options that only matter to a job."""
    if fabric != AUTO:
        given = [name for name, is_given in others.items() if is_given]
        if given:
            raise UsageError(f"{given[0]} is about where a job goes", remedy="it goes with --fabric auto")
        return
    if workers is None:
        raise UsageError("how large is the job? A fabric is chosen by its room", remedy="give --workers N")
    if is_size:
        remedy = "give --fleet SIZE=N, --slices FILE with the nodes, or neither for the live cluster"
        raise UsageError("a size alone has no fabrics to choose from", remedy=remedy)


def decide(
    write: "Callable[[str], Claims]", job: "Job", source: "Source", profile: "Profile", *, wanted_label: str
) -> Decision:
    """`write` writes the claims, pinned to the fabric that it is given."""
    from fishplate.dra.capacity import find_fabric
    from fishplate.dra.intent_classes import device_classes
    from fishplate.dra.job_placement import describe_shortage, find_fabric_label, plan_placement
    from fishplate.dra.scene import Scene
    from fishplate.dra.world import World

    claims = write("")
    own = {one.metadata.name for one in source.classes}
    classes = (*source.classes, *(one for one in device_classes() if one.metadata.name not in own))
    scene = Scene(World(slices=source.slices, classes=classes, claims=source.claims), profile)
    fabrics = {node.name: find_fabric(scene, node) for node in source.nodes}
    label = find_fabric_label(source.nodes, fabrics, wanted_label)
    if not label.key and not any(fabrics.values()):
        raise InputError(f"there is no fabric to choose: {label.why}", remedy=_REMEDY)
    room = _measure(claims, scene, source, job, label)
    placement = plan_placement(job, room, label, source.topologies)
    if placement is None:
        return Decision(claims, room, None, describe_shortage(job, room))
    return Decision(claims if label.key else write(placement.fabric.fabric), room, placement)


def _measure(claims: "Claims", scene: "Scene", source: "Source", job: "Job", label: "FabricLabel") -> "Room":
    from fishplate.dra.capacity import measure_room
    from fishplate.k8s.claim import default_claim

    own = [[default_claim(one.as_claim(one.metadata.name))] for one in claims.templates]
    return measure_room(
        scene,
        source.nodes,
        own[0],
        others=own[1:],
        one_per_node=job.one_per_node,
        fabric_of=(lambda node: node.labels.get(label.key, "")) if label.key else None,
    )
