"""An inventory for people: what is here, the relation matrix, and what follows from it."""

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from fishplate.cli.output import console, print_table
from fishplate.topology.alignment import align_all
from fishplate.topology.inventory import Inventory, Nic, PciFunction
from fishplate.topology.relations import gpu_labels, nic_labels, relate_gpu_and_nic, relate_gpus, relate_nics

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {
    "X": "dim",
    "PIX": "bold green",
    "PXB": "green",
    "PHB": "green",
    "NODE": "green",
    "SYS": "red",
    "?": "yellow",
}
_LEGEND = (
    "X itself  NV# NVLinks  XGMI Infinity Fabric  PIX one switch  PXB several switches  PHB one host bridge\n"
    "NODE same NUMA node  SYS across NUMA nodes  ? nobody knows"
)


def print_inventory(inventory: Inventory) -> None:
    out = console()
    _print_host(out, inventory)
    if inventory.gpus:
        print_table(out, _gpu_table(inventory))
    if inventory.rdma_nics:
        print_table(out, _nic_table(inventory))
    else:
        out.print("No RDMA device found.", style="yellow")
    if len(inventory.rdma_nics) + len(inventory.gpus) > 1:
        print_table(out, _matrix(inventory))
        out.print(_LEGEND, style="dim")
    _print_alignment(out, inventory)
    _print_interfaces(out, inventory)
    _print_problems(out, inventory)


def _print_host(out: "Console", inventory: Inventory) -> None:
    host = inventory.host
    nodes = len([node for node in inventory.numa_nodes if node.cpu_count])
    facts = [
        " or ".join(host.sizes[:3]) or " ".join(filter(None, (host.vendor, host.product))),
        host.architecture,
        f"{nodes} NUMA node{'s' if nodes != 1 else ''}" if nodes else "",
        f"RDMA namespaces {host.rdma_netns}" if host.rdma_netns else "",
    ]
    out.print(f"[bold]{escape(host.name or 'host')}[/bold]  {escape(', '.join(filter(None, facts)))}\n")


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _numa(pci: PciFunction | None) -> str:
    if pci is None or pci.numa_node is None:
        return "?"
    # Anything but the kernel's own word is marked: it is an inference, if a safe one.
    return f"{pci.numa_node}" + ("" if pci.numa_source == "kernel" else "*")


def _gpu_table(inventory: Inventory) -> Table:
    table = _table("GPU", "PCI address", "NUMA", "PCIe root", "Model", "Driver")
    for (_, label), gpu in zip(gpu_labels(inventory).items(), inventory.gpus, strict=True):
        driver = " ".join(filter(None, (gpu.pci.driver, gpu.driver_version)))
        cells = (label, gpu.pci.address, _numa(gpu.pci), gpu.pci.root or "?", gpu.model, driver or "none")
        table.add_row(*map(Text, cells))
    return table


def _nic_table(inventory: Inventory) -> Table:
    """Columns in which no NIC has anything to say are left out."""
    names = ("NIC", "PCI address", "NUMA", "PCIe root", "RDMA", "Rail", "Link", "Port", "Rate", "Pair", "Interface", "")
    gpus, labels = gpu_labels(inventory), nic_labels(inventory.rdma_nics)
    rows = [_nic_row(labels[nic.id], nic, gpus.get(nic.paired_gpu, "")) for nic in inventory.rdma_nics]
    filled = [column for column in range(len(names)) if any(row[column] for row in rows)]
    table = _table(*(names[column] for column in filled))
    for row in rows:
        table.add_row(*(row[column] for column in filled))  # as Text: a name in brackets is no markup
    return table


def _nic_row(label: str, nic: Nic, pair: str) -> list[Text]:
    port = nic.rdma[0].ports[0] if nic.rdma and nic.rdma[0].ports else None
    state = port.state if port else ""
    cells: list[str | Text] = [
        label,
        nic.pci.address if nic.pci else "-",
        _numa(nic.pci),
        (nic.pci.root if nic.pci else None) or "?",
        ",".join(device.name for device in nic.rdma),
        "-" if nic.rail is None else f"{nic.rail}",
        port.link_layer if port else "?",
        Text(state or "?", style="" if state == "ACTIVE" else "red"),
        f"{port.rate_gbps:g} Gb/s" if port and port.rate_gbps else "?",
        pair,
        ",".join(netdev.name for netdev in nic.netdevs),
        f"not offered: {nic.excluded}" if nic.excluded else "",
    ]
    return [cell if isinstance(cell, Text) else Text(cell) for cell in cells]


def _matrix(inventory: Inventory) -> Table:
    gpus, nics = gpu_labels(inventory), nic_labels(inventory.rdma_nics)
    table = _table("", *gpus.values(), *nics.values())
    for gpu in inventory.gpus:
        cells = [relate_gpus(inventory, gpu.pci.address, other) for other in gpus]
        cells += [relate_gpu_and_nic(gpu, nic) for nic in inventory.rdma_nics]
        table.add_row(gpus[gpu.pci.address], *map(_cell, cells))
    for nic in inventory.rdma_nics:
        cells = [relate_gpu_and_nic(gpu, nic) for gpu in inventory.gpus]
        cells += [relate_nics(nic, other) for other in inventory.rdma_nics]
        table.add_row(nics[nic.id], *map(_cell, cells))
    return table


def _cell(word: str) -> Text:
    return Text(word, style=_STYLES.get(word, "cyan"))


def _print_alignment(out: "Console", inventory: Inventory) -> None:
    if not inventory.gpus or not inventory.rdma_nics:
        return
    out.print("\n[bold]Lined up[/bold]")
    reasons: dict[str, None] = {}
    for alignment in align_all(inventory):
        direct = alignment.gpudirect
        if not alignment.nics:
            out.print(f"  {alignment.gpu}  no NIC on its side ({alignment.relation})", style="red")
            continue
        verdict = {"yes": "GPUDirect by default", "no": "", "cannot-tell": ""}[direct.by_default] if direct else ""
        need = f"GPUDirect with NCCL_NET_GDR_LEVEL={direct.level}" if direct and not verdict else ""
        nics = ", ".join(f"{nic} (its own)" if nic in alignment.paired else nic for nic in alignment.nics)
        out.print(f"  {alignment.gpu}  {alignment.relation} {nics}  [dim]{verdict or need}[/dim]")
        if direct:
            reasons[direct.why] = None
    for reason in reasons:
        out.print(f"  [dim]{reason}[/dim]")


def _print_interfaces(out: "Console", inventory: Inventory) -> None:
    """Functions without RDMA, in one line each: they are not the point, but a missing NIC may hide among them."""
    others = [nic for nic in inventory.nics if not nic.is_rdma and nic.pci]
    if not others:
        return
    out.print("\n[bold]Other network functions[/bold]")
    for nic in others:
        assert nic.pci is not None
        names = ",".join(netdev.name for netdev in nic.netdevs)
        facts = [nic.pci.address, names, nic.device_name or nic.vendor_name, nic.excluded and f"({nic.excluded})"]
        out.print("  " + escape("  ".join(filter(None, facts))))


def _print_problems(out: "Console", inventory: Inventory) -> None:
    if not inventory.problems:
        return
    out.print(f"\n[bold yellow]{len(inventory.problems)} problem(s) while looking[/bold yellow]")
    for problem in inventory.problems[:20]:
        evidence = f" ({problem.evidence})" if problem.evidence else ""
        out.print(f"  {escape(problem.place)}: {escape(problem.what)}{escape(evidence)}")
    if len(inventory.problems) > 20:
        out.print(f"  … and {len(inventory.problems) - 20} more; `-o json` has them all")
