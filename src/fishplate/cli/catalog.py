"""`fishplate catalog`: the hardware known, one size in full, or a size name taken apart."""

from pathlib import Path

import click

from fishplate.cli.output import console, emit, output_option, print_table
from fishplate.cli.sizes import catalog_option, complete_size
from fishplate.errors import UnknownNameError, UsageError
from fishplate.hardware.catalog import Catalog, Size, load_catalog


@click.command()
@click.argument("size", required=False, shell_complete=complete_size)
@click.option("--parse", metavar="NAME", help="Explain a VM-size name part by part, known or not.")
@click.option("--all", "show_all", is_flag=True, help="Also sizes without RDMA that are often taken for RDMA sizes.")
@catalog_option
@output_option("table", "json", "yaml")
def command(size: str | None, parse: str | None, show_all: bool, catalog_files: tuple[Path, ...], output: str) -> None:
    """Show the hardware known: every RDMA-capable size, or all about one SIZE.

    \b
    fishplate catalog
    fishplate catalog Standard_ND96isr_H100_v5
    fishplate catalog --parse Standard_HB120-96rs_v3
    """
    if size is not None and parse is not None:
        raise UsageError(
            "SIZE and --parse exclude each other", remedy="--parse explains a name; SIZE shows the machine"
        )
    catalog = load_catalog(catalog_files)
    if parse is not None:
        _explain_name(parse, catalog, output)
    elif size is not None:
        _show_one(catalog.find(size), catalog, output)
    else:
        _list_sizes(catalog.sizes if show_all else catalog.rdma_sizes(), output)


# -- the list ----------------------------------------------------------------------------------------------------


def _list_sizes(sizes: tuple[Size, ...], output: str) -> None:
    if output != "table":
        emit({"sizes": list(sizes)}, output)
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in ("Size", "vCPU", "GiB", "CPU", "GPUs", "NICs", "NUMA", "Layout", "Status"):
        table.add_column(column, no_wrap=True, justify="right" if column in ("vCPU", "GiB", "NUMA") else "left")
    for size in sizes:
        table.add_row(*map(Text, _row(size)), style="dim" if size.status in ("legacy", "retired") else None)
    out = console()
    print_table(out, table)
    out.print("Layout says whether the places of the devices are documented, inferred, or not known.", style="dim")


def _row(size: Size) -> tuple[str, ...]:
    return (
        size.name,
        _or_dash(size.vcpus),
        _or_dash(size.memory_gib),
        size.architecture,
        f"{size.gpu.count} × {size.gpu.model}" if size.gpu else "-",
        f"{size.nic.count} × {size.nic.rate_gbps:g} Gb/s {size.nic.generation}" if size.nic else "none",
        _or_dash(size.numa_nodes),
        size.layout.basis if size.layout else "-",
        f"{size.status} {size.retires}".strip(),
    )


def _or_dash(number: float | None) -> str:
    return "-" if number is None else f"{number:g}"


# -- one size ----------------------------------------------------------------------------------------------------


def _show_one(size: Size, catalog: Catalog, output: str) -> None:
    if output != "table":
        emit(size, output)
        return
    from fishplate.cli.sheet import print_sheet

    print_sheet(size, catalog.sources_of(size))


# -- a name ------------------------------------------------------------------------------------------------------


def _explain_name(text: str, catalog: Catalog, output: str) -> None:
    from fishplate.hardware.size_name import parse_size_name

    name = parse_size_name(text)
    parts = name.explain()
    try:
        known: Size | None = catalog.find(name.name)
    except UnknownNameError:
        known = None
    rdma = known.rdma if known else name.rdma_by_name
    if output != "table":
        document = {
            "name": name.name,
            "prefix": name.prefix,
            "family": name.family,
            "subFamily": name.sub_family,
            "vcpus": name.vcpus,
            "constrainedVcpus": name.constrained_vcpus,
            "features": list(name.features),
            "generation": name.generation_token,
            "accelerator": name.accelerator,
            "fabric": name.fabric,
            "memory": name.memory,
            "version": name.version,
            "promo": name.promo,
            "rdma": rdma,
            "inCatalog": known is not None,
            "parts": [{"text": part, "meaning": meaning} for part, meaning in parts],
            "warnings": list(name.warnings),
        }
        emit(document, output)
        return
    out = console()
    width = max(len(part) for part, _ in parts)
    out.print(f"[bold]{name.name}[/bold]\n")
    for part, meaning in parts:
        out.print(f"  {part:<{width}}  {meaning}", markup=False)
    source = "the catalogue knows it" if known else "by its name; not in the catalogue"
    out.print(f"\n{'RDMA-capable' if rdma else 'Not RDMA-capable'} ({source})")
    for warning in name.warnings:
        out.print(f"note: {warning}", style="yellow", markup=False)
