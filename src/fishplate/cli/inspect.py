"""`fishplate inspect`: one host, real, captured or synthetic."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fishplate.cli.output import emit, output_option
from fishplate.cli.sizes import catalog_option, complete_size, find_rdma_size
from fishplate.errors import UsageError
from fishplate.hardware.catalog import Catalog, Size, load_catalog
from fishplate.topology.inventory import Inventory

if TYPE_CHECKING:
    from fishplate.topology.attributes import Value


@click.command()
@click.option("--root", type=click.Path(path_type=Path), metavar="DIR", help="Read below DIR instead of this host.")
@click.option("--size", metavar="SIZE", shell_complete=complete_size, help="A synthetic host of this VM size.")
@click.option("--node", metavar="NAME", help="Node name in the slice (default: the host's name).")
@click.option("--driver-name", metavar="NAME", default="dra.net", show_default=True, help="Driver name in the slice.")
@catalog_option
@output_option("table", "json", "yaml", "slice")
def command(
    root: Path | None,
    size: str | None,
    node: str | None,
    driver_name: str,
    catalog_files: tuple[Path, ...],
    output: str,
) -> None:
    """Show GPUs, RDMA NICs, NUMA nodes and PCIe roots, and how each GPU relates to each NIC.

    Without options it looks at this host. `-o slice` prints the ResourceSlice that the driver would publish.

    \b
    fishplate inspect
    fishplate inspect --size Standard_ND128isr_GB300_v6
    fishplate inspect --root /mnt/captured-host -o json
    """
    if root is not None and size is not None:
        raise UsageError("--root and --size exclude each other", remedy="give one of them, or none for this host")
    catalog = load_catalog(catalog_files)
    machine = find_rdma_size(catalog, size) if size is not None else None
    inventory = _look(root, machine, catalog)
    if output == "slice":
        _print_slices(inventory, machine, node, driver_name)
    elif output == "table":
        from fishplate.cli.matrix import print_inventory

        print_inventory(inventory)
    else:
        from fishplate.topology.picture import draw

        emit(draw(inventory), output)


def _look(root: Path | None, machine: Size | None, catalog: Catalog) -> Inventory:
    if machine is not None:
        from fishplate.sim.host import synthesise

        return synthesise(machine, catalog)
    from fishplate.node.scan import scan
    from fishplate.node.tree import Tree

    return scan(Tree(root or "/"), catalog=catalog)


def _print_slices(inventory: Inventory, machine: Size | None, node: str | None, driver: str) -> None:
    import msgspec

    from fishplate.k8s.yaml import dump_yaml_documents
    from fishplate.topology.slices import publish_slices

    # What the metadata service of such a VM would say; on a live host the driver asks it, inspect does not.
    azure: dict[str, Value] = {}
    if machine is not None and machine.provider == "azure":
        azure["azure.dra.net/vmSize"] = machine.name
    # The kubelet registers a node under its host name in lower case.
    name = node if node is not None else inventory.host.name.lower() or "localhost"
    _check_name("node", name, limit=253)
    _check_name("driver", driver, limit=63)
    slices = publish_slices(
        inventory,
        node=name,
        driver=driver,
        node_attributes=azure,
    )
    click.echo(dump_yaml_documents(msgspec.to_builtins(one) for one in slices), nl=False)


def _check_name(what: str, name: str, *, limit: int) -> None:
    from fishplate.topology.names import is_dns_subdomain

    if not is_dns_subdomain(name, limit=limit):
        raise UsageError(
            f"{name[:80]!r} is no name for a {what}",
            remedy=f"Kubernetes takes lower-case letters, digits, dashes and dots, at most {limit}; give --{what}"
            + ("-name" if what == "driver" else ""),
        )
