"""`fishplate claim`: templates from intent, and the published examples."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fishplate.cli.claim_fabric import AUTO, Decision, check_job, decide
from fishplate.cli.claim_source import Asked, check_source, choose_vendors, find_gpu_places, read_source
from fishplate.cli.output import output_option
from fishplate.cli.sizes import catalog_option, complete_fleet, complete_profile, complete_size
from fishplate.hardware.catalog import load_catalog

if TYPE_CHECKING:
    from fishplate.dra.intent import Claims
    from fishplate.dra.job_placement import Job


def _complete_fabric(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    return [AUTO] if AUTO.startswith(incomplete) else []


@click.group(name="claim")
def command() -> None:
    """Write ResourceClaimTemplates.

    \b
    fishplate claim new --gpus 1 --nics 2 --for Standard_ND128isr_GB300_v6
    fishplate claim examples gb300
    """


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
@click.option(
    "--for",
    "sizes",
    metavar="SIZE",
    multiple=True,
    shell_complete=complete_size,
    help="The VM size of the node pool; several for several pools.",
)
@click.option(
    "--gpu-driver",
    "drivers",
    metavar="PROFILE",
    multiple=True,
    shell_complete=complete_profile,
    help="The GPU driver's release (default: the newest), with --for or --fleet.",
)
@click.option("--gpu-uuid", is_flag=True, help="The NIC driver publishes the UUID of each NIC's own GPU, with --for.")
@click.option("--fleet", metavar="SIZE=N[,…]", shell_complete=complete_fleet, help="A made-up fleet of these VM sizes.")
@click.option(
    "--slices",
    "files",
    type=click.Path(path_type=Path, allow_dash=True),
    multiple=True,
    metavar="FILE",
    help="What the drivers really publish: ResourceSlices, as YAML or JSON, with Nodes and ResourceClaims where"
    " --fabric auto shall look at labels and at what is taken; - is standard input.",
)
@click.option("--context", metavar="NAME", help="Context of the kubeconfig, where the live cluster is asked.")
@click.option(
    "--vendor",
    type=click.Choice(["nvidia", "amd", "any"]),
    help="Whose GPUs, where the slices hold both; any: one template for both, if possible.",
)
@click.option(
    "--fabric",
    default="",
    metavar="auto|ID",
    shell_complete=_complete_fabric,
    help="ID: only NICs of this placement group. auto: whatever keeps a job of --workers on one fabric.",
)
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Pods of the job, with --fabric auto.")
@click.option("--one-per-node", is_flag=True, help="At most one pod of the job on a node, with --fabric auto.")
@click.option(
    "--fabric-label",
    default="",
    metavar="KEY",
    help="Node label that tells the fabric, with --fabric auto (default: one whose value is the placement group).",
)
@click.option("--queue", default="", metavar="NAME", help="LocalQueue of Kueue that admits the job.")
@click.option("--job", "job_name", default="", metavar="NAME", help="Name of the job (default: that of the template).")
@click.option("--name", default="", metavar="NAME", help="Name of the template (default: 1gpu-2nic and the like).")
@click.option("--classes/--no-classes", default=True, show_default=True, help="With the DeviceClasses it refers to.")
@catalog_option
@output_option("yaml", "json")
def new(**options: Any) -> int:  # noqa: ANN401 - click's own; each is read once, below
    """Write a template for so many GPUs and NICs, lined up as you ask.

    One template serves every GPU of a node wherever the drivers publish an attribute that allows it; the reason stands
    on standard error and above the template.
    Without --for, --fleet and --slices the live cluster is asked. Exit 1 if no fabric holds the job of --fabric auto.

    \b
    fishplate claim new --gpus 1 --nics 2 --for Standard_ND128isr_GB300_v6
    fishplate claim new --gpus 4 --nics 4 --for Standard_ND96isr_MI300X_v5 --gpu-driver amd-2025.10
    fishplate claim new --for Standard_ND128isr_GB300_v6 --for Standard_ND96isr_MI300X_v5
    kubectl get resourceslices -o json | fishplate claim new --nics 2 --slices -
    kubectl get resourceslices,nodes,resourceclaims -A -o json | \\
        fishplate claim new --slices - --fabric auto --workers 16
    """
    from fishplate.dra import profile
    from fishplate.dra.intent import Align, Intent
    from fishplate.dra.intent_vendors import write_for_vendors
    from fishplate.dra.job_placement import Job

    names = ("sizes", "fleet", "files", "context", "drivers", "gpu_uuid")
    asked = Asked(**{name: options[name] for name in names})
    fabric, workers, label = options["fabric"], options["workers"], options["fabric_label"]
    check_source(asked)
    for_job = {"--workers": workers, "--one-per-node": options["one_per_node"], "--fabric-label": label}
    for_job |= {"--queue": options["queue"], "--job": options["job_name"]}
    is_size = bool(asked.sizes) and not asked.files
    check_job(fabric, workers, is_size=is_size, others={name: bool(value) for name, value in for_job.items()})
    catalog = load_catalog(options["catalog_files"])
    source = read_source(asked, catalog, fabric=fabric, fabric_label=label)
    vendors = choose_vendors(asked, options["vendor"], options["gpus"], source.slices)
    places = find_gpu_places(asked, source.slices, catalog)
    intent = Intent(gpus=options["gpus"], nics=options["nics"], align=Align(options["align"]), name=options["name"])
    rules = profile()

    def write(pinned: str) -> "Claims":
        wanted = msgspec.structs.replace(intent, fabric=pinned)
        return write_for_vendors(wanted, source.slices, vendors, gpu_numa=places, profile=rules)

    if fabric != AUTO:
        _print_claims(_without_classes(write(fabric), options["classes"]), options["output"])
        return 0
    job = Job(options["job_name"] or intent.template_name, workers, options["one_per_node"], options["queue"])
    decision = decide(write, job, source, rules, wanted_label=label)
    claims = _without_classes(decision.claims, options["classes"])
    _print_decision(decision._replace(claims=claims), job, options["output"])
    return 0 if decision.placement else 1


def _without_classes(claims: "Claims", wanted: bool) -> "Claims":
    return claims if wanted else claims._replace(classes=())


@command.command()
@click.argument("name", metavar="gb300|mi300x", shell_complete=lambda _ctx, _param, _start: ["gb300", "mi300x"])
@click.option("--fabric", default="", metavar="ID", help="Placement group in ib-same-fabric (default: as published).")
@catalog_option
@output_option("yaml", "json")
def examples(name: str, fabric: str, catalog_files: tuple[Path, ...], output: str) -> None:
    """Print DRANET's published templates for AKS.

    gb300: 1nic-aligned, 1nic-unaligned, 2nic-aligned, ib-same-fabric.
    mi300x: 4nic-same-numa, 4nic-cross-numa, 8nic-all.

    \b
    fishplate claim examples gb300 > claims.yaml
    fishplate claim examples gb300 --fabric 2b4b6af0-6f1b-4f0e-8d9a-000000000000
    """
    from fishplate.dra.examples import PUBLISHED_FABRIC, example_size, write_examples
    from fishplate.dra.intent_classes import NIC_CLASS, device_class

    size = load_catalog(catalog_files).find(example_size(name))
    templates = write_examples(size, fabric=fabric or PUBLISHED_FABRIC)
    _print_manifests([msgspec.to_builtins(one) for one in (device_class(NIC_CLASS), *templates)], {}, {}, output)


# -- printing ----------------------------------------------------------------------------------------------------


def _print_claims(claims: "Claims", output: str) -> None:
    _tell(claims.reasons, claims.warnings)
    lines = [*claims.reasons, *(f"Warning: {warning}." for warning in claims.warnings)]
    _print_manifests(claims.manifests, {len(claims.classes): _wrap(lines)}, _about(claims), output)


def _print_decision(decision: Decision, job: "Job", output: str) -> None:
    from fishplate.dra.job_placement import describe_placement, describe_room

    claims, room, placement, _ = decision
    if placement is None:
        click.echo(decision.said, err=True)
        if output == "json":
            said = {"workers": job.workers, "holds": False, "fabrics": describe_room(room, job)}
            _print_manifests([], {}, {"fabric": said | {"reasons": [decision.said]}}, output)
        return
    _tell((*claims.reasons, *placement.reasons), (*claims.warnings, *placement.warnings))
    lines = [*claims.reasons, *(f"Warning: {warning}." for warning in claims.warnings), ""]
    lines += [*placement.reasons, *(f"Warning: {warning}." for warning in placement.warnings)]
    objects = [msgspec.to_builtins(one) for one in placement.objects]
    manifests = [*claims.manifests[: len(claims.classes)], *objects, *claims.manifests[len(claims.classes) :]]
    comments = {len(claims.classes) + len(objects): [*_wrap(lines), *_fragment(decision)]}
    about = _about(claims) | {"fabric": describe_placement(placement, job, room)}
    _print_manifests(manifests, comments, about, output)


def _tell(reasons: tuple[str, ...], warnings: tuple[str, ...]) -> None:
    for reason in reasons:
        click.echo(reason, err=True)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)


def _fragment(decision: Decision) -> list[str]:
    """What the job itself needs, to be copied from the comment."""
    from fishplate.k8s.yaml import dump_yaml

    placement, lines = decision.placement, []
    assert placement is not None
    if placement.job_labels:
        written = dump_yaml({"metadata": {"labels": placement.job_labels}})
        lines += ["", "The job needs:", *written.splitlines()]
    if placement.pod_template:
        lines += ["", "Its pod template needs:", *dump_yaml(placement.pod_template).splitlines()]
    return lines


def _wrap(lines: list[str]) -> list[str]:
    import textwrap

    return [part for line in lines for part in (textwrap.wrap(line, 110) or [""])]


def _about(claims: "Claims") -> dict[str, object]:
    reasons, warnings = list(claims.reasons), list(claims.warnings)
    return {"attribute": claims.attribute or None, "reasons": reasons, "warnings": warnings}


def _print_manifests(
    manifests: list[dict[str, object]], comments: dict[int, list[str]], about: dict[str, object], output: str
) -> None:
    """YAML with comments above the manifest they are about; JSON as one List, which kubectl takes as well: it passes
    over the field `fishplate`, which says why."""
    if output == "json":
        document = {"apiVersion": "v1", "kind": "List", "items": manifests} | ({"fishplate": about} if about else {})
        click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
        return
    from fishplate.k8s.yaml import dump_yaml

    for index, manifest in enumerate(manifests):
        if index:
            click.echo("---")
        for line in comments.get(index, ()):
            click.echo(f"# {line}".rstrip())
        click.echo(dump_yaml(manifest), nl=False)
