"""Which machine of the catalogue an inventory is, and what the catalogue adds to it."""

from itertools import combinations

from fishplate.hardware.catalog import Catalog, Size
from fishplate.topology.inventory import GpuLink, Inventory
from fishplate.topology.relations import relate_functions


def recognise(inventory: Inventory, catalog: Catalog) -> tuple[Size, ...]:
    """The machines that fit what was found. Several only if they are built alike, as ND128isr and ND128isrG5 are;
    none if nothing fits, or if what fits is built in different ways."""
    named = catalog.match_dmi(inventory.host.product) if inventory.host.product else None
    if named is not None and _holds_its_gpus(inventory, named):
        return (named,)
    if inventory.host.cloud != "azure":
        return ()
    fitting = tuple(size for size in catalog.rdma_sizes() if size.provider == "azure" and _fits(inventory, size))
    return fitting if len({_build(size) for size in fitting}) == 1 else ()


def _build(size: Size) -> tuple[object, ...]:
    """What makes two sizes the same machine to us: where things sit and how GPUs are joined, not the prose about it."""
    assert size.layout is not None
    return size.layout.gpus, size.layout.nics, size.gpu and (size.gpu.pci_device, size.gpu.link)


def _fits(inventory: Inventory, size: Size) -> bool:
    """The same chips at the same places, most of them. Some may be missing: a GPU that fell off the bus must not change
    what we know of the others."""
    if size.layout is None or size.nic is None or inventory.host.architecture not in ("", size.architecture):
        return False
    fabric = [nic.pci for nic in inventory.rdma_nics if nic.pci and nic.link_layer == "InfiniBand"]
    nics = {(pci.address, pci.device) for pci in fabric}
    places = {(place.address, size.nic.pci_device) for place in size.layout.nics}
    return _mostly(nics, places) and _holds_its_gpus(inventory, size) and _has_cpus_of(inventory, size)


def _mostly(found: set[tuple[str, str]], wanted: set[tuple[str, str]]) -> bool:
    """One device whose id cannot be read, or that does not belong, must not make a stranger of the whole machine."""
    return len(found & wanted) > len(found - wanted)


def _holds_its_gpus(inventory: Inventory, size: Size) -> bool:
    """The GPUs found are this machine's. The same chassis with other cards is another machine."""
    if size.layout is None or not size.layout.gpus or size.gpu is None:
        return not inventory.gpus if size.gpu is None else True
    gpus = {(gpu.pci.address, gpu.pci.device) for gpu in inventory.gpus}
    return _mostly(gpus, {(place.address, size.gpu.pci_device) for place in size.layout.gpus})


def _has_cpus_of(inventory: Inventory, size: Size) -> bool:
    """Constrained sizes differ in nothing but their CPUs. Grace shows GPU memory as NUMA nodes; those do not count."""
    nodes = [node for node in inventory.numa_nodes if node.cpu_count]
    return len(nodes) == size.numa_nodes and sum(node.cpu_count for node in nodes) == size.vcpus


def catalogue_links(inventory: Inventory, size: Size | None) -> tuple[GpuLink, ...]:
    """Links between all GPUs of a machine whose catalogue entry says how they are joined."""
    if size is None or size.gpu is None or size.gpu.link in ("", "unknown"):
        return ()
    places = {place.address for place in size.layout.gpus} if size.layout else set()
    known = [gpu for gpu in inventory.gpus if gpu.pci.address in places and gpu.pci.device in ("", size.gpu.pci_device)]
    links = []
    for a, b in combinations(known, 2):
        word = relate_functions(a.pci, b.pci) if size.gpu.link == "none" else size.gpu.link
        links.append(GpuLink(a=a.pci.address, b=b.pci.address, word=word, source="catalogue"))
    return tuple(links)


def catalogue_pairs(size: Size | None) -> dict[str, str]:
    """NIC address → GPU address, where the machine's pairing is published."""
    if size is None or size.layout is None:
        return {}
    return {place.address: place.pair for place in size.layout.nics if place.pair}
