"""One scan of a host: every reader in turn, put together into an Inventory.

Each device is read by itself. One that is unreadable, garbled or gone becomes a problem in the report and leaves the
others as they are; what PCI, netlink and the RDMA class say of one function is joined by its PCI address.
"""

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence

import msgspec

from fishplate.hardware.catalog import Catalog, Size
from fishplate.hardware.pci_address import address_key, device_name
from fishplate.hardware.pci_names import pci_names
from fishplate.node import cpus, gpu, host, netdev, pci, rdma
from fishplate.node.rtnetlink import dump_default_interfaces, dump_link_facts
from fishplate.node.tree import Tree
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
    nodes = cpus.read_numa_nodes(tree)
    functions, gpus = _read_pci(tree, nodes, catalog)
    inventory = Inventory(
        host=host.read_host(tree),
        numa_nodes=nodes,
        gpus=gpus,
        nics=_read_nics(tree, nodes, functions),
        rdma_cm=rdma.read_rdma_cm(tree),
    )
    fitting = (size,) if size else recognise(inventory, catalog)
    machine = fitting[0] if fitting else None
    names = tuple(one.name for one in fitting)
    named = _name_machine(inventory, machine, names, _gpu_links(tree, inventory, machine, run))
    return msgspec.structs.replace(named, problems=tuple(tree.problems))


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
            # A GPU's own virtual functions are for VMs on this host; inside a VM there is no physfn to be seen.
            if function and gpu.is_gpu(function.vendor, class_code) and not function.physfn:
                name = pci_names(function.vendor, function.device)[1] or ""
                gpus.append(gpu.read_gpu(tree, function, name, coherent=_is_coherent(function, catalog)))
    return functions, tuple(gpus)


def _is_coherent(function: PciFunction, catalog: Catalog) -> bool:
    chips = (size.gpu for size in catalog.sizes if size.gpu and size.gpu.c2c)
    return any((chip.pci_vendor, chip.pci_device) == (function.vendor, function.device) for chip in chips)


# -- NICs --------------------------------------------------------------------------------------------------------


def _read_nics(tree: Tree, nodes: Sequence[NumaNode], functions: dict[str, PciFunction]) -> tuple[Nic, ...]:
    facts = dump_link_facts() if tree.live else {}
    netdevs = netdev.read_netdevs(tree, facts, dump_default_interfaces() if tree.live else None)
    devices = rdma.read_rdma_devices(tree)
    _check_namespace(tree)
    for address in _missed_addresses(tree, netdevs, devices, functions):
        if function := pci.read_function(tree, address, nodes):
            functions[address] = function
    stands_on = {found.netdev.name: (found.address, found.subfunction) for found in netdevs}
    owners = {
        found.device.name: stands_on.get(found.parent, ("", ""))
        if found.device.soft
        else (found.address, found.subfunction)
        for found in devices
    }
    in_use = netdev.explain_use([found.netdev for found in netdevs])
    places = {(address, "") for address in functions}
    places |= {(found.address, found.subfunction) for found in netdevs if found.address in functions}
    places |= {owner for owner in owners.values() if owner[0] in functions}
    nics = [
        _pci_nic(
            functions[address],
            subfunction,
            [found.netdev for found in netdevs if (found.address, found.subfunction) == (address, subfunction)],
            [found for found in devices if owners[found.device.name] == (address, subfunction)],
            in_use,
        )
        for address, subfunction in sorted(places, key=lambda place: (address_key(place[0]), place[1]))
    ]
    loose = [found for found in netdevs if found.address not in functions]
    nics += [_plain_nic(found, devices, in_use) for found in loose]
    _report_orphans(tree, devices, nics)
    return tuple(nics)


def _missed_addresses(
    tree: Tree, netdevs: Sequence[netdev.Found], devices: Sequence[rdma.Found], functions: Mapping[str, PciFunction]
) -> list[str]:
    """Functions that are NICs though their class does not say so: RDMA devices of other classes (Alibaba's eRDMA is
    00ff), and interfaces on functions whose class cannot be read."""
    missed = {found.address for found in devices if found.address and found.address not in functions}
    for found in netdevs:
        if found.address and found.address not in functions and pci.read_class(tree, found.address) is None:
            missed.add(found.address)
    return sorted(missed)


def _check_namespace(tree: Tree) -> None:
    """In another network namespace the node's own interfaces are out of sight, and would be taken for free."""
    if tree.live:
        own, init = (tree.link_text(f"/proc/{process}/ns/net") for process in ("self", "1"))
        if own and init and own != init:
            what = "this is not the host's network namespace: which NICs the node itself needs cannot be seen"
            tree.report("other-namespace", "/proc/self/ns/net", what, remedy="run it in the host's network namespace")


def _report_orphans(tree: Tree, devices: Sequence[rdma.Found], nics: Sequence[Nic]) -> None:
    owned = {device.name for nic in nics for device in nic.rdma}
    for found in devices:
        if found.device.name not in owned:
            place = f"/sys/class/infiniband/{found.device.name}"
            tree.report("orphan-rdma", place, "an RDMA device that stands on no PCI function and no interface we see")


def _pci_nic(
    function: PciFunction,
    subfunction: str,
    netdevs: list[Netdev],
    devices: list[rdma.Found],
    in_use: Mapping[str, netdev.Use],
) -> Nic:
    vendor, device = pci_names(function.vendor, function.device)
    hardware_first = sorted((found.device for found in devices), key=lambda one: one.soft)
    return Nic(
        id=device_name(function.address) + (f"-sf-{subfunction}" if subfunction else ""),
        pci=function,
        vendor_name=vendor or "",
        device_name=device or "",
        rdma=tuple(hardware_first),
        netdevs=tuple(netdevs),
        uplink=any(in_use[one.name].uplink for one in netdevs if one.name in in_use),
        excluded=_exclusion(function, netdevs, in_use) or ("subfunctions are not offered yet" if subfunction else ""),
    )


def _plain_nic(found: netdev.Found, devices: Sequence[rdma.Found], in_use: Mapping[str, netdev.Use]) -> Nic:
    one = found.netdev
    own = tuple(other.device for other in devices if other.device.soft and other.parent == one.name)
    # A USB NIC of the server's own management controller, for one.
    foreign = f"{one.name} hangs on {found.address}, which is no network function" if found.address else ""
    return Nic(
        id=interface_device_name(one.name),
        rdma=own,
        netdevs=(one,),
        uplink=one.name in in_use and in_use[one.name].uplink,
        excluded=_exclusion(None, [one], in_use) or foreign,
    )


def _exclusion(function: PciFunction | None, netdevs: list[Netdev], in_use: Mapping[str, netdev.Use]) -> str:
    """Why a function is not offered to pods, "" when it is."""
    if function and not function.driver:
        return "no driver is bound"
    if function and function.driver in _FOREIGN_DRIVERS:
        return f"bound to {function.driver}"
    for one in netdevs:
        use = in_use.get(one.name)
        # An IPoIB interface may belong to a bond or a bridge: its NIC is offered without it. As uplink it counts.
        if use and (use.uplink or one.kind != "ipoib"):
            return f"{one.name} {use.why}"
        if one.name in _CLUSTER_INTERFACES:
            return f"{one.name} belongs to the cluster's own network"
        if one.virtual and one.kind not in _MOVABLE_KINDS:
            return f"{one.name} ({one.kind}) stays with the node"
    return ""


# -- GPU links ---------------------------------------------------------------------------------------------------


def _gpu_links(tree: Tree, inventory: Inventory, machine: Size | None, run: Run | None) -> tuple[GpuLink, ...]:
    """Who knows how GPUs are joined: the kernel (AMD), the vendor's tool on a live host, the catalogue."""
    links = gpu.read_xgmi_links(tree)
    addresses = [one.pci.address for one in inventory.gpus if one.vendor == "nvidia" and one.pci.driver == "nvidia"]
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
        answer = subprocess.run([program, *argv[1:]], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.decode("utf-8", "replace") if answer.returncode == 0 else None
