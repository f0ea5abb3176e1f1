"""One scan of a host: every reader in turn, put together into an Inventory.

Each device is read by itself. One that is unreadable, garbled or gone becomes a problem in the report and leaves the
others as they are; what PCI, netlink and the RDMA class say of one function is joined by its PCI address.
"""

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence

import msgspec

from fishplate.hardware.catalog import Catalog, Size
from fishplate.hardware.pci_names import pci_names
from fishplate.node import cpus, gpu, host, netdev, pci, rdma
from fishplate.node.rtnetlink import LinkFacts, dump_link_facts
from fishplate.node.tree import Tree
from fishplate.topology.addresses import address_key, device_name
from fishplate.topology.inventory import Gpu, GpuLink, Inventory, Netdev, Nic, NumaNode, PciFunction
from fishplate.topology.machine import catalogue_links, catalogue_pairs, recognise
from fishplate.topology.names import interface_device_name
from fishplate.topology.pairs import pair_nics
from fishplate.topology.rails import number_rails

Run = Callable[[list[str]], str | None]

# Drivers that hand a function to user space or a VM: the host no longer runs a network device on it.
_FOREIGN_DRIVERS = frozenset({"vfio-pci", "uio_pci_generic", "igb_uio", "pci-stub"})
# Interfaces of the cluster's own network that look like plain ones.
_CLUSTER_INTERFACES = frozenset({"cilium_net", "cilium_host", "docker0", "kube-ipvs0", "nodelocaldns"})
# Interfaces without hardware that can go to a pod. Bridges, bonds and tunnels cannot be moved, or carry the cluster.
_MOVABLE_KINDS = frozenset({"dummy", "vlan", "macvlan", "ipvlan"})


def scan(tree: Tree, *, catalog: Catalog, size: Size | None = None, run: Run | None = None) -> Inventory:
    """Read everything below the tree's root. `size` names the machine where the caller knows it."""
    facts = dump_link_facts() if tree.live else {}
    nodes = cpus.read_numa_nodes(tree)
    functions, gpus = _read_pci(tree, nodes, catalog)
    nics = _read_nics(tree, nodes, functions, facts)
    inventory = Inventory(
        host=host.read_host(tree),
        numa_nodes=nodes,
        gpus=gpus,
        nics=nics,
        rdma_cm=rdma.read_rdma_cm(tree),
        problems=tuple(tree.problems),
    )
    fitting = (size,) if size else recognise(inventory, catalog)
    machine = fitting[0] if fitting else None
    names = tuple(one.name for one in fitting)
    return _name_machine(inventory, machine, names, _gpu_links(tree, inventory, machine, run))


def _name_machine(
    inventory: Inventory, machine: Size | None, names: tuple[str, ...], links: tuple[GpuLink, ...]
) -> Inventory:
    """`machine` stands for all of `names`: sizes that only their names tell apart."""
    layout = [place.address for place in machine.layout.nics] if machine and machine.layout else []
    nics = number_rails(inventory.nics, layout=layout, azure=inventory.host.cloud == "azure")
    return msgspec.structs.replace(
        inventory,
        host=msgspec.structs.replace(inventory.host, sizes=names),
        nics=pair_nics(nics, inventory.gpus, catalogue_pairs(machine)),
        gpu_links=links,
    )


# -- PCI ---------------------------------------------------------------------------------------------------------


def _read_pci(
    tree: Tree, nodes: Sequence[NumaNode], catalog: Catalog
) -> tuple[dict[str, PciFunction], tuple[Gpu, ...]]:
    """Network functions by address, and the GPUs. A function whose class is unreadable is told, not guessed."""
    functions: dict[str, PciFunction] = {}
    gpus: list[Gpu] = []
    addresses = pci.list_addresses(tree)
    if not addresses and not tree.is_dir(pci.DEVICES):
        tree.report("no-pci", pci.DEVICES, "this tree has no PCI bus", remedy="is it the root of a host's file system?")
    for address in addresses:
        class_code = pci.read_class(tree, address)
        if class_code is None:
            tree.report("no-class", f"{pci.DEVICES}/{address}", "its class cannot be told; is it a NIC or a GPU?")
        elif class_code.startswith("02") and (function := pci.read_function(tree, address, nodes)):
            functions[address] = function
        elif class_code.startswith(("03", "12")):
            function = pci.read_function(tree, address, nodes)
            if function and gpu.is_gpu(function.vendor, class_code):
                gpus.append(gpu.read_gpu(tree, function, pci_names(function.vendor, function.device)[1] or ""))
    return functions, tuple(gpus)


# -- NICs --------------------------------------------------------------------------------------------------------


def _read_nics(
    tree: Tree, nodes: Sequence[NumaNode], functions: dict[str, PciFunction], facts: Mapping[str, LinkFacts]
) -> tuple[Nic, ...]:
    netdevs = netdev.read_netdevs(tree, facts)
    devices = rdma.read_rdma_devices(tree)
    in_use = netdev.explain_use([found.netdev for found in netdevs])
    stands_on = {found.netdev.name: found.address for found in netdevs}
    for found in devices:  # an RDMA device on a function of another class, such as Alibaba's eRDMA (00ff)
        if found.address and found.address not in functions:
            function = pci.read_function(tree, found.address, nodes)
            if function:
                functions[found.address] = function
    owners = {found.device.name: found.address or stands_on.get(found.parent, "") for found in devices}
    nics = [
        _pci_nic(
            function,
            [found.netdev for found in netdevs if found.address == address],
            [found for found in devices if owners[found.device.name] == address],
            in_use,
        )
        for address, function in functions.items()
    ]
    nics.sort(key=lambda nic: address_key(nic.pci.address) if nic.pci else (0, 0, 0, 0))
    loose = [found.netdev for found in netdevs if found.address not in functions]
    return tuple(nics) + tuple(_plain_nic(one, devices, in_use) for one in loose)


def _pci_nic(function: PciFunction, netdevs: list[Netdev], devices: list[rdma.Found], in_use: Mapping[str, str]) -> Nic:
    vendor, device = pci_names(function.vendor, function.device)
    return Nic(
        id=device_name(function.address),
        pci=function,
        vendor_name=vendor or "",
        device_name=device or "",
        rdma=tuple(found.device for found in devices),
        netdevs=tuple(netdevs),
        excluded=_exclusion(function, netdevs, in_use),
    )


def _plain_nic(one: Netdev, devices: Sequence[rdma.Found], in_use: Mapping[str, str]) -> Nic:
    own = tuple(found.device for found in devices if found.parent == one.name)
    return Nic(id=interface_device_name(one.name), rdma=own, netdevs=(one,), excluded=_exclusion(None, [one], in_use))


def _exclusion(function: PciFunction | None, netdevs: list[Netdev], in_use: Mapping[str, str]) -> str:
    """Why a function is not offered to pods, "" when it is."""
    if function and not function.driver:
        return "no driver is bound"
    if function and function.driver in _FOREIGN_DRIVERS:
        return f"bound to {function.driver}"
    for one in netdevs:
        if one.name in in_use:
            return f"{one.name} {in_use[one.name]}"
        if one.name in _CLUSTER_INTERFACES:
            return f"{one.name} belongs to the cluster's own network"
        if one.virtual and one.kind not in _MOVABLE_KINDS:
            return f"{one.name} ({one.kind}) stays with the node"
    return ""


# -- GPU links ---------------------------------------------------------------------------------------------------


def _gpu_links(tree: Tree, inventory: Inventory, machine: Size | None, run: Run | None) -> tuple[GpuLink, ...]:
    """Who knows how GPUs are joined: the kernel (AMD), the vendor's tool on a live host, the catalogue."""
    links = gpu.read_xgmi_links(tree)
    addresses = [one.pci.address for one in inventory.gpus if one.vendor == "nvidia"]
    if not links and tree.live and len(addresses) > 1:
        text = (run or run_tool)(["nvidia-smi", "topo", "-m"])
        links = gpu.parse_nvidia_topology(text or "", addresses)
    return links or catalogue_links(inventory, machine)


def run_tool(argv: list[str]) -> str | None:
    """The output of a vendor's tool, or None if it is not installed or does not answer."""
    program = shutil.which(argv[0])
    if program is None:
        return None
    try:
        answer = subprocess.run([program, *argv[1:]], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout if answer.returncode == 0 else None
