"""`fishplate lint`: claims, held against what is published."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fishplate.cli.fleets import load_files
from fishplate.cli.output import console, emit, output_option
from fishplate.cli.sizes import catalog_option, complete_fleet, complete_profile
from fishplate.errors import DocumentError, UnknownNameError, UsageError
from fishplate.findings import Finding, Verdict, worst
from fishplate.hardware.catalog import Catalog, load_catalog
from fishplate.k8s.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fishplate.documents import Path as FieldPath
    from fishplate.dra.lint_pod_subject import PodSubject
    from fishplate.dra.lint_subject import Setting, Subject
    from fishplate.k8s.manifests import Manifest
    from fishplate.k8s.resource import ResourceSlice

_SIGNS = {Verdict.BAD: ("bad", "bold red"), Verdict.CANNOT_TELL: ("?", "bold yellow"), Verdict.GOOD: ("good", "green")}


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True), metavar="FILE...")
@click.option(
    "--slices",
    type=click.Path(path_type=Path, allow_dash=True),
    multiple=True,
    metavar="FILE",
    help="What is published: ResourceSlices (and DeviceClasses, Nodes) as YAML or JSON; - is standard input.",
)
@click.option("--fleet", metavar="SIZE=N[,…]", shell_complete=complete_fleet, help="A made-up fleet instead.")
@click.option(
    "--gpu-driver",
    "gpu_drivers",
    multiple=True,
    metavar="PROFILE",
    shell_complete=complete_profile,
    help="GPU driver of the fleet.",
)
@click.option(
    "--kubernetes",
    type=click.Choice(["1.34", "1.35", "1.36", "1.37"]),
    default="1.36",
    show_default=True,
    help="Whose scheduler to follow.",
)
@catalog_option
@output_option("table", "json")
def command(
    files: tuple[Path, ...],
    slices: tuple[Path, ...],
    fleet: str | None,
    gpu_drivers: tuple[str, ...],
    kubernetes: str,
    catalog_files: tuple[Path, ...],
    output: str,
) -> int:
    """Find what is wrong with claims and pods before Kubernetes lets a pod wait for ever, or run on TCP.

    Claims and templates, Pods, and what makes pods: Deployment, StatefulSet, DaemonSet, Job, CronJob, MPIJob. Other
    kinds are passed over. Without --slices or --fleet only the form of claims is judged. Exit 1 if anything is bad.

    \b
    fishplate lint claims.yaml --fleet Standard_ND128isr_GB300_v6=2
    fishplate lint claims.yaml mpijob.yaml
    kubectl get resourceslices,nodes -o json | fishplate lint claims.yaml --slices -
    """
    from fishplate.dra.lint import lint_claim
    from fishplate.dra.lint_pods import lint_pod
    from fishplate.k8s.manifests import load_manifests

    if slices and fleet is not None:
        raise UsageError("--slices and --fleet exclude each other", remedy="give one of them")
    manifests = load_manifests(files, pass_over=True)
    subjects = [subject for one in manifests if (subject := _subject(one)) is not None]
    own = tuple(one.value for one in manifests if isinstance(one.value, DeviceClass))
    pods = _pods(manifests)
    if not subjects and not pods:
        where = ", ".join(map(str, files))
        raise DocumentError("no claim and no pod", where=where, remedy="give claims, templates, or what makes pods")
    setting = _setting(slices, fleet, gpu_drivers, kubernetes, load_catalog(catalog_files), own)
    findings = [finding for subject in subjects for finding in lint_claim(subject, setting)]
    findings += [finding for pod in pods for finding in lint_pod(pod)]
    _print(findings, {"claims": len(subjects), "pods": len(pods)}, output)
    if setting.scene is None and subjects:
        click.echo("only the form was judged: --slices or --fleet say what is published", err=True)
    return 1 if worst(findings) is Verdict.BAD else 0


# -- what to lint ------------------------------------------------------------------------------------------------


def _subject(manifest: "Manifest") -> "Subject | None":
    from fishplate.dra.lint_subject import Subject

    value = manifest.value
    if isinstance(value, ResourceClaimTemplate):
        spec, prefix = value.spec.spec, ("spec", "spec", "devices")
    elif isinstance(value, ResourceClaim):
        spec, prefix = value.spec, ("spec", "devices")  # type: ignore[assignment]
    else:
        return None
    name = value.metadata.name
    return Subject(name, spec, _placer(manifest, prefix, name))


def _placer(manifest: "Manifest", prefix: "FieldPath", name: str) -> "Callable[[FieldPath], str]":
    document = manifest.document
    return lambda path: f"{document.where}:{document.line((*manifest.path, *prefix, *path))}: {name}"


def _pods(manifests: "list[Manifest]") -> "list[PodSubject]":
    from fishplate.dra.intent_classes import device_classes
    from fishplate.dra.lint_pod_subject import Around, PodSubject
    from fishplate.k8s.workloads import find_pods

    values = [one.value for one in manifests]
    around = Around(
        {one.metadata.name: one.spec for one in values if isinstance(one, ResourceClaim)},
        {one.metadata.name: one.spec.spec for one in values if isinstance(one, ResourceClaimTemplate)},
        {one.metadata.name: one for one in (*device_classes(), *values) if isinstance(one, DeviceClass)},
    )
    return [
        PodSubject(pod, around, _placer(manifest, pod.path, pod.name))
        for manifest in manifests
        for pod in find_pods(manifest.value)
    ]


# -- what it is held against -------------------------------------------------------------------------------------


def _setting(
    files: tuple[Path, ...],
    fleet: str | None,
    gpu_drivers: tuple[str, ...],
    kubernetes: str,
    catalog: Catalog,
    own: tuple[DeviceClass, ...],
) -> "Setting":
    from fishplate.dra import World, profile
    from fishplate.dra.intent_classes import device_classes
    from fishplate.dra.lint_subject import Setting

    scheduler = profile(kubernetes)
    if fleet is not None:
        from fishplate.sim.fleet import make_fleet, parse_fleet

        made = make_fleet(parse_fleet(fleet), catalog, gpu_drivers=gpu_drivers)
        published, classes, nodes = made.slices, made.classes, made.nodes
        plugins: Mapping[str, frozenset[str]] = {}
    elif files:
        source = load_files(files)
        published, nodes, plugins = source.slices, source.nodes, source.plugins
        classes = (*device_classes(), *source.classes)
    else:
        return Setting(scheduler)
    world = World(slices=published, classes=(*classes, *own))
    return Setting(scheduler, world, nodes, _places(published, catalog), plugins)


def _places(published: "tuple[ResourceSlice, ...]", catalog: Catalog) -> dict[tuple[str, str], int]:
    """Where the catalogue says that GPUs sit, for every size that the NICs name."""
    key = "azure.dra.net/vmSize"
    names = {
        device.attributes[key].string or ""
        for one in published
        for device in one.spec.devices
        if key in device.attributes
    }
    places = {}
    for name in names - {""}:
        try:
            layout = catalog.find(name).layout
        except UnknownNameError:
            continue
        for place in layout.gpus if layout else ():
            if place.numa is not None:
                places[name, place.address] = place.numa
    return places


def _print(findings: list[Finding], counts: dict[str, int], output: str) -> None:
    if output == "json":
        emit({"verdict": worst(findings), **counts, "findings": findings}, output)
        return
    from rich.text import Text

    out = console()
    for finding in findings:
        sign, style = _SIGNS[finding.verdict]
        out.print(Text.assemble((f"{sign:<4} ", style), (finding.id, "bold"), f"  {finding.place}"))
        out.print(Text(f"     {finding.what}"))
        if finding.evidence:
            out.print(Text(f"     {finding.evidence}", style="dim"))
        out.print(Text(f"     → {finding.remedy}\n"))
    bad = sum(finding.verdict is Verdict.BAD for finding in findings)
    found = f"{bad} bad and {len(findings) - bad} uncertain" if findings else "nothing found"
    out.print(", ".join([*(f"{what}: {number}" for what, number in counts.items() if number), found]))
