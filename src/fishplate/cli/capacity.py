"""`fishplate capacity`: how many such pods fit, per fabric."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fishplate.cli.explain import gather
from fishplate.cli.fleets import parse_gates, scheduler_options, source_options
from fishplate.cli.output import console, emit, output_option, print_table

if TYPE_CHECKING:
    from fishplate.dra.capacity import Room


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@source_options
@scheduler_options
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Size of the job: which fabrics hold all of it?"
)
@click.option("--one-per-node", is_flag=True, help="At most one such pod on a node, as anti-affinity would have it.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.")
@output_option("table", "json", "yaml")
def command(
    files: tuple[str, ...],
    slices: tuple[Path, ...],
    fleet: str | None,
    minor: str,
    gates: str,
    workers: int | None,
    one_per_node: bool,
    context: str | None,
    output: str,
) -> int:
    """Count how many pods with the claims of FILE fit now, fabric by fabric.

    Exit 1 when none fits, or when no single fabric holds --workers of them.

    \b
    fishplate capacity claim.yaml --fleet Standard_ND128isr_GB300_v6=36 --workers 32
    kubectl get resourceslices,nodes,resourceclaims -A -o json | fishplate capacity claim.yaml --slices -
    """
    from fishplate.dra.capacity import choose_fabric, measure_room
    from fishplate.dra.profile import profile
    from fishplate.dra.scene import Scene

    source, world, subjects, _ = gather(files, slices, fleet, context)
    scene = Scene(world, profile(minor, parse_gates(gates)))
    enough = True
    documents = []
    for subject in subjects:
        room = measure_room(
            scene,
            [node for node in source.nodes if subject.admits(node)],
            subject.claims,
            one_per_node=one_per_node,
        )
        best = choose_fabric(room, workers) if workers else None
        enough = enough and room.pods > 0 and (workers is None or best is not None)
        documents.append(_document(subject.name, room, workers, best.fabric if best else None))
    if output == "table":
        for document in documents:
            _print(document)
    else:
        emit(documents[0] if len(documents) == 1 else {"subjects": documents}, output)
    return 0 if enough else 1


def _document(subject: str, room: "Room", workers: int | None, best: str | None) -> dict[str, Any]:
    document: dict[str, Any] = {
        "subject": subject,
        "pods": room.pods,
        "fabrics": [
            {
                "fabric": one.fabric or None,
                "nodes": one.nodes,
                "usableNodes": one.usable,
                "pods": one.pods,
                "exact": one.exact,
                **({"holds": one.holds(workers), "leftOver": one.left_over(workers)} if workers else {}),
            }
            for one in room.fabrics
        ],
    }
    return document | ({"workers": workers, "best": best} if workers else {})


def _print(document: dict[str, Any]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    out = console()
    out.print(f"{document['subject']}: {document['pods']} such pods fit now", markup=False, style="bold")
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    workers = document.get("workers")
    for column in ("Fabric", "Nodes", "Usable", "Pods", *([f"Holds {workers}", "Left over"] if workers else [])):
        table.add_column(column, no_wrap=True)
    for one in document["fabrics"][:30]:
        cells = [one["fabric"] or "(none named)", str(one["nodes"]), str(one["usableNodes"])]
        cells.append(f"{one['pods']}" + ("" if one["exact"] else " or more"))
        if workers:
            cells += ["yes" if one["holds"] else "no", str(one["leftOver"]) if one["holds"] else "-"]
        table.add_row(*map(Text, cells))
    print_table(out, table)
    if workers:
        best = document["best"]
        out.print(f"best for {workers}: {best}" if best else f"no single fabric holds {workers} of them", markup=False)
