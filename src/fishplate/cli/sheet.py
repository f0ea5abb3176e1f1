"""One size of the catalogue in full, for people."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from fishplate.cli.output import console, print_table
from fishplate.hardware.catalog import Expectation, Size

if TYPE_CHECKING:
    from rich.console import Console


def print_sheet(size: Size, sources: Mapping[str, str]) -> None:
    out = console()
    retires = f" ({size.retires})" if size.retires else ""
    out.print(f"[bold]{escape(size.name)}[/bold]  {size.provider}, {size.status}{escape(retires)}")
    for line in _facts(size):
        out.print(f"  {line}", markup=False)
    if size.layout:
        _print_layout(out, size)
    if size.expected:
        _print_expected(out, size)
    if size.aks:
        aks = size.aks
        out.print("\n[bold]On AKS[/bold]")
        out.print(f"  feature AKSInfinibandSupport must be {aks.infiniband_feature} in the whole subscription")
        out.print(f"  --os-sku {' or '.join(aks.os_skus)}   --gpu-driver {aks.gpu_driver}", markup=False)
        for note in aks.notes:
            out.print(f"  {note}", markup=False)
    keys = dict.fromkeys((*size.sources, *(size.layout.sources if size.layout else ())))
    out.print("\n[bold]Sources[/bold]")
    for key in keys:
        out.print(f"  {sources.get(key, key)}", markup=False, style="dim")


def _facts(size: Size) -> list[str]:
    facts = [f"{size.vcpus} vCPUs, {size.memory_gib:g} GiB, {size.architecture}" if size.memory_gib else ""]
    if size.numa_nodes:
        facts.append(f"{size.numa_nodes} NUMA nodes {size.numa_note and f'({size.numa_note})'}".strip())
    if size.gpu:
        gpu = size.gpu
        facts.append(f"{gpu.count} × {gpu.product_name}, {gpu.memory_gib:g} GiB each, joined by {gpu.link}")
    if size.nic:
        nic = size.nic
        facts.append(f"{nic.count} × {nic.model}, {nic.rate_gbps:g} Gb/s {nic.generation}, {nic.link_layer}")
    if size.constrained_from:
        facts.append(f"{size.constrained_from} with fewer vCPUs")
    if size.why_not_rdma:
        facts.append(f"not RDMA-capable: {size.why_not_rdma}")
    return [fact for fact in (*facts, *size.notes) if fact]


def _print_layout(out: "Console", size: Size) -> None:
    layout = size.layout
    assert layout is not None
    out.print(f"\n[bold]Layout[/bold] ({layout.basis}: {escape(layout.basis_note)})")
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in ("Device", "PCI address", "NUMA", "Root", "Pair"):
        table.add_column(column, no_wrap=True)
    for kind, places in (("GPU", layout.gpus), ("NIC", layout.nics)):
        for index, place in enumerate(places):
            numa = "?" if place.numa is None else f"{place.numa}"
            table.add_row(f"{kind}{index}", place.address, numa, place.root, place.pair or "-")
    print_table(out, table)


def _print_expected(out: "Console", size: Size) -> None:
    out.print("\n[bold]Published figures[/bold]")
    for one in size.expected:
        out.print(f"  {one.test}: {_figure(one)}", markup=False)


def _figure(one: Expectation) -> str:
    parts = [f"{one.expect:g} {one.unit}" if one.expect is not None else ""]
    parts.append(f"fails below {one.fail_below:g} {one.unit}" if one.fail_below is not None else "")
    parts.append(f"fails above {one.fail_above:g} {one.unit}" if one.fail_above is not None else "")
    return ", ".join(filter(None, parts))
