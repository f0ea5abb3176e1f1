"""`fishplate bench expect`: what the hardware could do, and how that comes about."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fishplate.cli.bench_inputs import count
from fishplate.cli.output import console, emit, output_option
from fishplate.cli.sizes import catalog_option, complete_size, find_rdma_size
from fishplate.hardware.catalog import Size, load_catalog

if TYPE_CHECKING:
    from fishplate.bench.ceiling import Ceiling
    from fishplate.bench.results import Context

_TESTS = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "reduce", "sendrecv")


@click.command()
@click.option("--size", required=True, metavar="SIZE", shell_complete=complete_size, help="The VM size or server.")
@click.option("--nodes", type=click.IntRange(min=2), default=2, show_default=True, help="How many nodes.")
@click.option("--gpus", type=click.IntRange(min=1), default=1, show_default=True, help="GPUs of each node.")
@click.option("--nics", type=click.IntRange(min=1), default=1, show_default=True, help="NICs of each node.")
@click.option(
    "--align", type=click.Choice(["numa", "none"]), default="numa", show_default=True, help="Their placement."
)
@click.option("--test", type=click.Choice(_TESTS), default="all_reduce", show_default=True, help="The collective.")
@click.option("--data-direct", is_flag=True, help="NICs with a PCIe path of their own use it.")
@catalog_option
@output_option("table", "json")
def expect(
    size: str,
    nodes: int,
    gpus: int,
    nics: int,
    align: str,
    test: str,
    data_direct: bool,
    catalog_files: tuple[Path, ...],
    output: str,
) -> None:
    """Say what a collective could reach at best, and how that comes about.

    This is a model; docs/bench.md says how far it agrees with the published figures.

    \b
    fishplate bench expect --size Standard_ND128isr_GB300_v6 --gpus 1 --nics 2 --align numa
    fishplate bench expect --size Standard_ND96isr_H100_v5 --nodes 8 --gpus 8 --nics 8
    """
    from fishplate.bench.ceiling import check_placement, find_ceiling
    from fishplate.bench.results import Context

    catalog = load_catalog(catalog_files)
    machine = find_rdma_size(catalog, size)
    context = Context(size=machine.name, nodes=nodes, gpus=gpus, nics=nics, align="numa" if align == "numa" else "none")
    check_placement(machine, context)
    ceiling = find_ceiling(machine, context, test=test, data_direct=data_direct, sources=catalog.sources_of(machine))
    published = _published(context, test)
    if output == "json":
        emit({"model": True, "size": machine.name, "ceiling": ceiling, "published": published}, output)
        return
    _print(machine, ceiling, published)


def _published(context: "Context", test: str) -> list[dict[str, object]]:
    """Runs of the published studies that were placed like this."""
    from fishplate.bench.study import load_published, published_names

    runs = [run for name in published_names() for run in load_published(name).runs]
    fields = ("size", "nodes", "gpus", "nics", "align", "over")
    return [
        {"label": run.label, "busbw": run.peak or run.average, "sources": run.sources}
        for run in runs
        if run.test == test and all(getattr(run.context, name) == getattr(context, name) for name in fields)
    ]


def _print(machine: Size, ceiling: "Ceiling", published: list[dict[str, object]]) -> None:
    from rich.text import Text

    out = console()
    placed = f"{ceiling.nodes} nodes, {count(ceiling.gpus, 'GPU')} and {count(ceiling.nics, 'NIC')} each"
    out.print(
        Text.assemble(
            (f"{ceiling.busbw:.4g} GB/s busbw at most", "bold"), f"  {ceiling.test}, {placed}, {machine.name}"
        )
    )
    for step in ceiling.steps:
        out.print(Text(f"  {step}"))
    out.print(f"  good from {ceiling.good_from:.4g} GB/s on")
    for one in published:
        out.print(Text(f"published: {one['label']} {one['busbw']:g} GB/s"))
    out.print("A model, not a measurement: docs/bench.md holds it against what was published.", style="dim")
    for source in ceiling.sources:
        out.print(Text(f"  source: {source}", style="dim"))
