"""`fishplate lint`: claims, held against what is published."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fishplate.cli.fleets import load_published
from fishplate.cli.output import console, emit, output_option
from fishplate.cli.sizes import catalog_option
from fishplate.errors import DocumentError, UnknownNameError, UsageError
from fishplate.findings import Finding, Verdict, worst
from fishplate.hardware.catalog import Catalog, load_catalog
from fishplate.k8s.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate

if TYPE_CHECKING:
    from fishplate.documents import Path as FieldPath
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
    help="What is published: ResourceSlices (and DeviceClasses) as YAML or JSON; - is standard input.",
)
@click.option("--fleet", metavar="SIZE=N[,…]", help="A simulated fleet instead.")
@click.option("--gpu-driver", "gpu_drivers", multiple=True, metavar="PROFILE", help="GPU driver of the fleet.")
@click.option("--kubernetes", default="1.36", show_default=True, metavar="MINOR", help="Version of the scheduler.")
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
    """Find what is wrong with claims before Kubernetes lets a pod wait for ever.

    Without --slices or --fleet only their form is judged. Exit code 1 if anything is bad.

    \b
    fishplate lint claims.yaml --fleet Standard_ND128isr_GB300_v6=2
    kubectl get resourceslices -o json | fishplate lint claims.yaml --slices -
    """
    from fishplate.dra.lint import lint_claim
    from fishplate.k8s.manifests import load_manifests

    if slices and fleet is not None:
        raise UsageError("--slices and --fleet exclude each other", remedy="give one of them")
    manifests = load_manifests(files, pass_over=True)
    subjects = [subject for one in manifests if (subject := _subject(one)) is not None]
    if not subjects:
        where = ", ".join(map(str, files))
        raise DocumentError("no ResourceClaim or ResourceClaimTemplate", where=where, remedy="nothing to lint here")
    own = tuple(one.value for one in manifests if isinstance(one.value, DeviceClass))
    setting = _setting(slices, fleet, gpu_drivers, kubernetes, load_catalog(catalog_files), own)
    findings = [finding for subject in subjects for finding in lint_claim(subject, setting)]
    _print(findings, len(subjects), output)
    if setting.scene is None:
        click.echo("only the form was judged: --slices or --fleet say what is published", err=True)
    return 1 if worst(findings) is Verdict.BAD else 0


# -- what to lint ------------------------------------------------------------------------------------------------


def _subject(manifest: "Manifest") -> "Subject | None":
    from fishplate.dra.lint_subject import Subject

    document, value = manifest.document, manifest.value
    if isinstance(value, ResourceClaimTemplate):
        spec, prefix = value.spec.spec, ("spec", "spec", "devices")
    elif isinstance(value, ResourceClaim):
        spec, prefix = value.spec, ("spec", "devices")  # type: ignore[assignment]
    else:
        return None
    name = value.metadata.name

    def where(path: "FieldPath") -> str:
        return f"{document.where}:{document.line((*manifest.path, *prefix, *path))}: {name}"

    return Subject(name, spec, where)


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
    from fishplate.dra.world import Node

    scheduler = profile(kubernetes)
    if fleet is not None:
        from fishplate.sim.fleet import make_fleet, parse_fleet

        made = make_fleet(parse_fleet(fleet), catalog, gpu_drivers=gpu_drivers)
        published, classes, nodes = made.slices, made.classes, made.nodes
    elif files:
        published, found = load_published(files)
        classes = (*device_classes(), *found)
        nodes = tuple(Node(name=name) for name in sorted({one.spec.node_name or "" for one in published} - {""}))
    else:
        return Setting(scheduler)
    world = World(slices=published, classes=(*classes, *own))
    return Setting(scheduler, world, nodes, _places(published, catalog))


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


def _print(findings: list[Finding], claims: int, output: str) -> None:
    if output == "json":
        emit({"verdict": worst(findings), "claims": claims, "findings": findings}, output)
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
    out.print(f"claims: {claims}, {found}")
