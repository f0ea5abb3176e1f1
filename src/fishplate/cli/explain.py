"""`fishplate explain`: what a claim or pod would get on which node, and why not elsewhere."""

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fishplate.cli.fleets import (
    Source,
    load_source,
    nodes_from,
    nodes_named,
    parse_gates,
    scheduler_options,
    source_options,
)
from fishplate.cli.output import emit, output_option
from fishplate.errors import DocumentError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fishplate.dra.explain import Explanation, Story
    from fishplate.dra.world import Node
    from fishplate.k8s.claim import ResourceClaim
    from fishplate.k8s.manifests import Manifest

_EXIT = {"allocated": 0, "does-not-fit": 1, "error": 1, "unknown": 1}


class Subject(NamedTuple):
    """What is asked about: the claims of one pod, or one claim by itself."""

    name: str
    claims: "tuple[ResourceClaim, ...]"
    node_selector: "Mapping[str, str]" = MappingProxyType({})

    def admits(self, node: "Node") -> bool:
        return self.node_selector.items() <= node.labels.items()


@click.command()
@click.argument("what", nargs=-1, required=True, metavar="FILE… | pod NAME")
@source_options
@scheduler_options
@click.option("-n", "--namespace", metavar="NS", default="default", show_default=True, help="Namespace of the pod.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.")
@output_option("table", "json", "yaml")
def command(
    what: tuple[str, ...],
    slices: tuple[Path, ...],
    fleet: str | None,
    minor: str,
    gates: str,
    namespace: str,
    context: str | None,
    output: str,
) -> int:
    """Say what the scheduler would do with claims, and why.

    FILE holds ResourceClaims, ResourceClaimTemplates or Pods (with the claims and classes they name). The devices come
    from --slices, from a made-up --fleet, or from the live cluster, where the right to get and list is enough.

    \b
    fishplate explain claim.yaml --fleet Standard_ND128isr_GB300_v6=2
    fishplate explain pod.yaml --slices slices.json
    fishplate explain pod trainer-0 -n training
    fishplate explain pod trainer-0 -o json | jq '.groups[].reasons'
    """
    from fishplate.dra.explain import explain
    from fishplate.dra.profile import profile
    from fishplate.dra.scene import Scene
    from fishplate.hardware.catalog import load_catalog

    rules = profile(minor, parse_gates(gates))
    if what[0] == "pod" and len(what) == 2 and fleet is None and not slices:
        from fishplate.cli.cluster_view import read_pod_view

        source, world, subjects, notes = read_pod_view(what[1], namespace, context)
    else:
        source, world, subjects, notes = gather(what, slices, fleet, context)
    scene = Scene(world, rules)
    catalog = load_catalog()
    told = []
    for subject in subjects:
        nodes = [node for node in source.nodes if subject.admits(node)]
        others = [node for node in source.nodes if not subject.admits(node)]
        told.append((subject, explain(scene, nodes, subject.claims, catalog=catalog, elsewhere=others)))
        if not nodes:
            labels = ", ".join(f"{key}={value}" for key, value in subject.node_selector.items())
            notes.append(
                f"no node has the labels that {subject.name} selects: {labels}" if labels else "there is no node"
            )
    if output == "table":
        from fishplate.cli.stories import print_explanation

        for subject, explanation in told:
            print_explanation(subject.name, explanation, notes)
    else:
        emit(_document(told, notes), output)
    return max((_EXIT[explanation.outcome] for _, explanation in told), default=0)


def gather(
    what: tuple[str, ...], slices: tuple[Path, ...], fleet: str | None, context: str | None
) -> tuple[Source, Any, list[Subject], list[str]]:
    """Nodes, world and subjects, from files and whatever the devices come from."""
    from fishplate.k8s.claim import DeviceClass, ResourceClaim
    from fishplate.k8s.manifests import load_manifests
    from fishplate.k8s.node import Node as KubernetesNode
    from fishplate.k8s.resource import ResourceSlice

    kinds = ("ResourceClaim", "ResourceClaimTemplate", "Pod", "DeviceClass", "ResourceSlice", "Node")
    manifests = load_manifests(what, kinds=kinds)
    values = [manifest.value for manifest in manifests]
    own_slices = tuple(value for value in values if isinstance(value, ResourceSlice))
    if own_slices and fleet is None and not slices:
        nodes = [value for value in values if isinstance(value, KubernetesNode)]
        source = Source(nodes_from(nodes) if nodes else nodes_named(own_slices), own_slices)
    elif fleet is None and not slices:
        from fishplate.cli.cluster_view import read_cluster

        source, live = read_cluster(context)
        classes = _classes(values, live.classes)
        return source, _world(source, classes, live.claims), subjects_of(manifests), []
    else:
        source = load_source(slices, fleet)
    holders = tuple(value for value in values if isinstance(value, ResourceClaim) and value.status.allocation)
    holders += source.claims
    classes = _classes(
        [value for value in (*values, *source.classes) if isinstance(value, DeviceClass)], _usual_classes()
    )
    return source, _world(source, classes, holders), subjects_of(manifests), []


def _world(source: Source, classes: tuple[Any, ...], claims: tuple[Any, ...]) -> Any:  # noqa: ANN401 - typed inside
    from fishplate.dra.oddities import find_oddities
    from fishplate.dra.world import World

    return World(slices=source.slices, classes=classes, claims=claims, odd=find_oddities(source.slices))


def _classes(written: list[Any], known: tuple[Any, ...]) -> tuple[Any, ...]:
    """Classes of the files, and the others that exist; a file's own wins."""
    from fishplate.k8s.claim import DeviceClass

    own = [value for value in written if isinstance(value, DeviceClass)]
    names = {one.metadata.name for one in own}
    return (*own, *(one for one in known if one.metadata.name not in names))


def _usual_classes() -> tuple[Any, ...]:
    from fishplate.sim.fleet import device_classes

    return tuple(device_classes())


def subjects_of(manifests: "list[Manifest]") -> list[Subject]:
    """Pods with all their claims; where there are no pods, each claim and template by itself."""
    from fishplate.k8s.claim import ResourceClaim, ResourceClaimTemplate, default_claim
    from fishplate.k8s.pod import Pod

    claims = {one.value.metadata.name: one.value for one in manifests if isinstance(one.value, ResourceClaim)}
    templates = {
        one.value.metadata.name: one.value for one in manifests if isinstance(one.value, ResourceClaimTemplate)
    }
    pods = [one for one in manifests if isinstance(one.value, Pod)]
    if not pods:
        alone = [claim for claim in claims.values() if claim.status.allocation is None]
        alone += [template.as_claim(template.metadata.name) for template in templates.values()]
        if not alone:
            raise UsageError("nothing to explain", remedy="give a ResourceClaim, a ResourceClaimTemplate or a Pod")
        return [Subject(f"{claim}", (default_claim(claim),)) for claim in alone]
    return [_pod_subject(one, claims, templates) for one in pods]


def _pod_subject(manifest: "Manifest", claims: dict[str, Any], templates: dict[str, Any]) -> Subject:
    from fishplate.k8s.claim import default_claim
    from fishplate.k8s.pod import Pod

    pod = manifest.value
    assert isinstance(pod, Pod)
    own = []
    for claim in pod.spec.resource_claims:
        named, template = claim.resource_claim_name, claim.resource_claim_template_name
        if named is not None and named in claims:
            own.append(claims[named])
        elif template is not None and template in templates:
            own.append(templates[template].as_claim(f"{pod.metadata.name}-{claim.name}"))
        else:
            missing = f"claim {named}" if named else f"claim template {template}"
            raise DocumentError(
                f"pod {pod.metadata.name} names {missing}, which is in none of the files",
                where=manifest.where,
                remedy="give the file that holds it as well",
            )
    waiting = tuple(default_claim(one) for one in own if one.status.allocation is None)
    return Subject(f"pod {pod.metadata.name}", waiting, pod.spec.node_selector)


# -- JSON --------------------------------------------------------------------------------------------------------


def _document(told: "list[tuple[Subject, Explanation]]", notes: list[str]) -> dict[str, Any]:
    subjects = [_subject_document(subject, explanation) for subject, explanation in told]
    if len(subjects) == 1:
        return subjects[0] | {"notes": notes}
    worst = next(
        (one for one in ("error", "unknown", "does-not-fit") if any(s["outcome"] == one for s in subjects)), "allocated"
    )
    return {"outcome": worst, "subjects": subjects, "notes": notes}


def _subject_document(subject: Subject, explanation: "Explanation") -> dict[str, Any]:
    return {
        "subject": subject.name,
        "outcome": explanation.outcome,
        "groups": [_group_document(subject, story) for story in explanation.stories],
        "changes": [change._asdict() for change in explanation.changes],
        "warnings": [warning._asdict() for warning in explanation.warnings],
    }


def _group_document(subject: Subject, story: "Story") -> dict[str, Any]:
    group: dict[str, Any] = {"outcome": story.outcome, "nodes": list(story.nodes)}
    if story.proximity is not None:
        group["allocations"] = [
            {"claim": str(claim), "request": r.request, "driver": r.driver, "pool": r.pool, "device": r.device}
            for claim, result in zip(subject.claims, story.results, strict=True)
            for r in result.devices.results
        ]
        group["relations"] = [pair._asdict() for pair in story.proximity.pairs]
        group["fabrics"] = list(story.fabrics)
        return group
    group["reasons"] = reasons_of(story)
    group["changes"] = [change._asdict() for change in story.changes]
    return group


def reasons_of(story: "Story") -> list[dict[str, Any]]:
    """Everything that stands in the way, in the scheduler's order."""
    if story.error or story.diagnosis is None:
        return [{"id": "error" if story.outcome == "error" else "budget", "text": story.error}]
    diagnosis = story.diagnosis
    reasons: list[dict[str, Any]] = [{"id": pool.id, "text": pool.text} for pool in diagnosis.pools]
    for request in diagnosis.requests:
        short = not request.is_satisfiable
        reasons += [
            {
                "id": reason.id,
                "claim": request.claim,
                "request": request.request,
                "text": reason.text,
                "devices": reason.devices,
                "example": reason.example,
            }
            for reason in request.reasons
            if short
        ]
        if short:
            text = f"{request.suitable} of {request.wanted} wanted devices are suitable"
            if not request.reasons and not request.suitable:
                text = "no device of its class is here"
            reasons.append({"id": "too-few", "claim": request.claim, "request": request.request, "text": text})
    if all(request.is_satisfiable for request in diagnosis.requests):
        text = "each request could be met alone, but not all together"
        reasons.append({"id": "no-completion", "text": f"{text}; no further than {diagnosis.stuck}"})
        reasons += [
            {"id": one.id, "text": one.text, "devices": one.devices, "example": one.example}
            for one in diagnosis.blocked
        ]
    return reasons
