"""`fishplate claim`: templates from intent, and the published examples."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from fishplate.cli.fleets import load_published
from fishplate.cli.output import output_option
from fishplate.cli.sizes import catalog_option, complete_size, find_rdma_size
from fishplate.errors import UnknownNameError, UsageError
from fishplate.hardware.catalog import Catalog, Size, load_catalog

if TYPE_CHECKING:
    from fishplate.dra.intent import Claims
    from fishplate.dra.intent_published import Published
    from fishplate.k8s.resource import ResourceSlice

_NODES = 2  # enough to see what differs between nodes


@click.group(name="claim")
def command() -> None:
    """Write ResourceClaimTemplates."""


@command.command()
@click.option("--gpus", type=click.IntRange(min=0), default=1, show_default=True, help="GPUs for each pod.")
@click.option("--nics", type=click.IntRange(min=0), default=1, show_default=True, help="RDMA NICs for each pod.")
@click.option(
    "--align",
    type=click.Choice(["numa", "pcie", "pair", "none"]),
    default="numa",
    show_default=True,
    help="numa: GPUs and NICs of one NUMA node. pcie: below one PCIe root. pair: each GPU with the NICs that belong to"
    " it alone. none: any.",
)
@click.option("--for", "size", metavar="SIZE", shell_complete=complete_size, help="The VM size of the node pool.")
@click.option("--gpu-driver", metavar="PROFILE", help="The GPU driver's release (default: the newest), with --for.")
@click.option("--gpu-uuid", is_flag=True, help="The NIC driver publishes the UUID of each NIC's own GPU, with --for.")
@click.option(
    "--slices",
    "files",
    type=click.Path(path_type=Path, allow_dash=True),
    multiple=True,
    metavar="FILE",
    help="What the drivers really publish: ResourceSlices of the node pool, as YAML or JSON; - is standard input.",
)
@click.option("--vendor", type=click.Choice(["nvidia", "amd"]), help="Whose GPUs, where the slices hold both.")
@click.option("--fabric", default="", metavar="ID", help="Only NICs of this placement group.")
@click.option("--name", default="", metavar="NAME", help="Name of the template (default: 1gpu-2nic and the like).")
@click.option("--classes/--no-classes", default=True, show_default=True, help="With the DeviceClasses it refers to.")
@catalog_option
@output_option("yaml", "json")
def new(
    gpus: int,
    nics: int,
    align: str,
    size: str | None,
    gpu_driver: str | None,
    gpu_uuid: bool,
    files: tuple[Path, ...],
    vendor: str | None,
    fabric: str,
    name: str,
    classes: bool,
    catalog_files: tuple[Path, ...],
    output: str,
) -> None:
    """Write a template for so many GPUs and NICs, lined up as you ask.

    One template serves every GPU of a node wherever the drivers publish an attribute that allows it; the reason stands
    on standard error and above the template.

    \b
    fishplate claim new --gpus 1 --nics 2 --for Standard_ND128isr_GB300_v6
    fishplate claim new --gpus 4 --nics 4 --for Standard_ND96isr_MI300X_v5 --gpu-driver amd-2025.10
    kubectl get resourceslices -o json | fishplate claim new --nics 2 --slices -
    """
    from fishplate.dra import profile
    from fishplate.dra.intent import Align, Intent, write_claims
    from fishplate.dra.intent_proof import describe_worth, pods_per_node

    _check_options(size, gpu_driver, gpu_uuid, files)
    catalog = load_catalog(catalog_files)
    machine = find_rdma_size(catalog, size) if size is not None else None
    slices = _slices(files, machine, catalog, gpu_driver, gpu_uuid)
    published = _read(slices, vendor)
    intent = Intent(gpus=gpus, nics=nics, align=Align(align), fabric=_resolve_fabric(fabric), name=name)
    claims = write_claims(intent, published, gpu_numa=_gpu_places(machine, published, catalog))
    worth = describe_worth(pods_per_node(claims, published, slices, profile()))
    claims = claims._replace(reasons=(*claims.reasons, worth))
    _print_claims(claims if classes else claims._replace(classes=()), output)


@command.command()
@click.argument("name", metavar="gb300|mi300x")
@click.option("--fabric", default="", metavar="ID", help="Placement group in ib-same-fabric (default: as published).")
@catalog_option
@output_option("yaml", "json")
def examples(name: str, fabric: str, catalog_files: tuple[Path, ...], output: str) -> None:
    """Print DRANET's published templates for AKS.

    gb300: 1nic-aligned, 1nic-unaligned, 2nic-aligned, ib-same-fabric.
    mi300x: 4nic-same-numa, 4nic-cross-numa, 8nic-all.
    """
    from fishplate.dra.examples import PUBLISHED_FABRIC, example_size, write_examples
    from fishplate.dra.intent_classes import NIC_CLASS, device_class

    size = load_catalog(catalog_files).find(example_size(name))
    templates = write_examples(size, fabric=fabric or PUBLISHED_FABRIC)
    _print_manifests([msgspec.to_builtins(one) for one in (device_class(NIC_CLASS), *templates)], {}, output)


# -- what is published -------------------------------------------------------------------------------------------


def _check_options(size: str | None, gpu_driver: str | None, gpu_uuid: bool, files: tuple[Path, ...]) -> None:
    if size is None and not files:
        raise UsageError("for which machines?", remedy="give --for SIZE, or --slices FILE with what is published")
    if files and (gpu_driver is not None or gpu_uuid):
        raise UsageError(
            "--gpu-driver and --gpu-uuid say what would be published, --slices says what is",
            remedy="give one or the other",
        )


def _slices(
    files: Sequence[Path], machine: Size | None, catalog: Catalog, gpu_driver: str | None, gpu_uuid: bool
) -> "tuple[ResourceSlice, ...]":
    if files or machine is None:
        return load_published(tuple(files))[0]
    from fishplate.sim.fleet import make_fleet

    drivers = [gpu_driver] if gpu_driver is not None else []
    return make_fleet([(machine.name, _NODES)], catalog, gpu_drivers=drivers, publish_uuid=gpu_uuid).slices


def _read(slices: "tuple[ResourceSlice, ...]", vendor: str | None) -> "Published":
    from fishplate.dra.intent_published import read_published

    if vendor is None:
        return read_published(slices)
    return read_published(slices, vendor="nvidia" if vendor == "nvidia" else "amd")


def _gpu_places(machine: Size | None, published: "Published", catalog: Catalog) -> dict[str, int]:
    """Where the catalogue says that GPUs sit; of live slices, the size is on the NICs."""
    if machine is None:
        names = {str(nic.value("azure.dra.net/vmSize") or "") for nic in published.nics} - {""}
        try:
            machine = catalog.find(names.pop()) if len(names) == 1 else None
        except UnknownNameError:
            machine = None
    if machine is None or machine.layout is None:
        return {}
    return {place.address: place.numa for place in machine.layout.gpus if place.numa is not None}


def _resolve_fabric(fabric: str) -> str:
    """The placement group by its id. `auto` would choose one here, from the job's size and the free capacity."""
    if fabric == "auto":
        raise UsageError("--fabric auto is not available here", remedy="give the id of a placement group")
    return fabric


# -- printing ----------------------------------------------------------------------------------------------------


def _print_claims(claims: "Claims", output: str) -> None:
    for reason in claims.reasons:
        click.echo(reason, err=True)
    for warning in claims.warnings:
        click.echo(f"warning: {warning}", err=True)
    lines = [*claims.reasons, *(f"Warning: {warning}." for warning in claims.warnings)]
    comments = {len(claims.classes): lines}
    _print_manifests(claims.manifests, comments, output)


def _print_manifests(manifests: list[dict[str, object]], comments: dict[int, list[str]], output: str) -> None:
    """YAML with comments above the manifest they are about; JSON as one List, which kubectl takes as well."""
    if output == "json":
        document = {"apiVersion": "v1", "kind": "List", "items": manifests}
        click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
        return
    import textwrap

    from fishplate.k8s.yaml import dump_yaml

    for index, manifest in enumerate(manifests):
        if index:
            click.echo("---")
        for line in comments.get(index, ()):
            click.echo("\n".join(f"# {part}" for part in textwrap.wrap(line, 110)))
        click.echo(dump_yaml(manifest), nl=False)
