"""Which machine of the catalogue an inventory is, and what the catalogue adds to it."""

from itertools import combinations

from fishplate.hardware.catalog import Catalog, Size
from fishplate.topology.inventory import GpuLink, Inventory
from fishplate.topology.relations import relate_functions


def recognise(inventory: Inventory, catalog: Catalog) -> tuple[Size, ...]:
    """The machines that fit what was found. Several only if they are built alike, as ND128isr and ND128isrG5 are;
    none if nothing fits, or if what fits is built in different ways."""
    named = catalog.match_dmi(inventory.host.product) if inventory.host.product else None
    if named is not None:
        return (named,)
    if inventory.host.cloud != "azure":
        return ()
    fitting = tuple(size for size in catalog.rdma_sizes() if size.provider == "azure" and _fits(inventory, size))
    alike = all((size.layout, size.gpu) == (fitting[0].layout, fitting[0].gpu) for size in fitting)
    return fitting if alike else ()


def _fits(inventory: Inventory, size: Size) -> bool:
    """Same chips at the same places. A NIC may be missing (that is a finding), a GPU may not."""
    if size.layout is None or (inventory.host.architecture not in ("", size.architecture)):
        return False
    gpus = {(gpu.pci.address, gpu.pci.device) for gpu in inventory.gpus}
    wanted = {(place.address, size.gpu.pci_device) for place in size.layout.gpus} if size.gpu else set()
    nics = {nic.pci.address for nic in inventory.rdma_nics if nic.pci and nic.link_layer == "InfiniBand"}
    places = {place.address for place in size.layout.nics}
    return gpus == wanted and bool(nics) and nics <= places and _has_cpus_of(inventory, size)


def _has_cpus_of(inventory: Inventory, size: Size) -> bool:
    """Constrained sizes differ in nothing but their CPUs. Grace shows GPU memory as NUMA nodes; those do not count."""
    nodes = [node for node in inventory.numa_nodes if node.cpu_count]
    return len(nodes) == size.numa_nodes and sum(node.cpu_count for node in nodes) == size.vcpus


def catalogue_links(inventory: Inventory, size: Size | None) -> tuple[GpuLink, ...]:
    """Links between all GPUs of a machine whose catalogue entry says how they are joined."""
    if size is None or size.gpu is None or size.gpu.link in ("", "unknown"):
        return ()
    links = []
    for a, b in combinations(inventory.gpus, 2):
        word = relate_functions(a.pci, b.pci) if size.gpu.link == "none" else size.gpu.link
        links.append(GpuLink(a=a.pci.address, b=b.pci.address, word=word, source="catalogue"))
    return tuple(links)


def catalogue_pairs(size: Size | None) -> dict[str, str]:
    """NIC address → GPU address, where the machine's pairing is published."""
    if size is None or size.layout is None:
        return {}
    return {place.address: place.pair for place in size.layout.nics if place.pair}
