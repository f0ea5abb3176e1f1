"""PCI functions: identity, the bridges above them, NUMA node, SR-IOV relations.

The path of a function in sysfs shows every bridge up to the root complex. On Hyper-V the root does not hang below
/sys/devices/pci… but below the VMBUS device that the host passed through:

    /sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/<guid>/pci0101:00/0101:00:00.0

so the root is looked for by its name anywhere in the path; a fixed prefix finds none on Azure.
"""

from collections.abc import Sequence

from fishplate.hardware.pci_address import ROOT, address_key, is_address
from fishplate.node.cpus import parse_cpu_list
from fishplate.node.tree import Tree
from fishplate.topology.inventory import NumaNode, NumaSource, PciFunction

DEVICES = "/sys/bus/pci/devices"


def list_addresses(tree: Tree) -> list[str]:
    """Every PCI function of the host, in order. Names that are no addresses are reported."""
    found = []
    for name in tree.names(DEVICES):
        if is_address(name):
            found.append(name)
        else:
            tree.report("garbled", f"{DEVICES}/{ascii(name)[1:-1]}", "expected a PCI address as name")
    return sorted(found, key=address_key)


def read_class(tree: Tree, address: str) -> str | None:
    """The class code as six hex digits (`020700`), or None when it cannot be told."""
    code = tree.number(f"{DEVICES}/{address}/class", radix=16, low=0, high=0xFFFFFF)
    return None if code is None else f"{code:06x}"


def read_function(tree: Tree, address: str, nodes: Sequence[NumaNode]) -> PciFunction | None:
    """Everything about one function, or None (and a report) when it is gone."""
    path = f"{DEVICES}/{address}"
    real = tree.resolve(path)
    if real is None or not tree.is_dir(path):
        tree.report("vanished", path, "listed, but gone when it was read")
        return None
    root, bridges, vmbus = parse_path(real)
    if root is None:
        tree.report("no-root", path, "no PCI root in its path", evidence=real)
    numa_node, numa_source = find_numa_node(tree, address, bridges, nodes)
    return PciFunction(
        address=address,
        vendor=_id(tree, f"{path}/vendor"),
        device=_id(tree, f"{path}/device"),
        subsystem_vendor=_id(tree, f"{path}/subsystem_vendor"),
        subsystem_device=_id(tree, f"{path}/subsystem_device"),
        class_code=read_class(tree, address) or "",
        driver=_link_name(tree, f"{path}/driver"),
        root=root,
        bridges=bridges,
        numa_node=numa_node,
        numa_source=numa_source,
        vmbus=vmbus,
        link_speed=tree.text(f"{path}/current_link_speed") or "",
        link_width=tree.number(f"{path}/current_link_width", low=0, high=64),
        physfn=_address_link(tree, f"{path}/physfn"),
        virtfns=_virtual_functions(tree, path),
        sriov_totalvfs=tree.number(f"{path}/sriov_totalvfs", low=0, high=65_535),
        sriov_numvfs=tree.number(f"{path}/sriov_numvfs", low=0, high=65_535),
    )


def parse_path(real: str) -> tuple[str | None, tuple[str, ...], str]:
    """Root, bridges from the root down, and the GUID below VMBUS, from a function's path in sysfs."""
    parts = real.split("/")
    roots = [i for i, part in enumerate(parts) if ROOT.match(part)]
    if not roots:
        return None, (), ""
    top = roots[-1]
    bridges = tuple(part for part in parts[top + 1 : -1] if is_address(part))
    below_vmbus = any(part.startswith("VMBUS:") for part in parts[:top])
    return parts[top], bridges, parts[top - 1] if below_vmbus else ""


def find_numa_node(
    tree: Tree, address: str, bridges: Sequence[str], nodes: Sequence[NumaNode]
) -> tuple[int | None, NumaSource]:
    """The NUMA node of a function, and who says so.

    The kernel writes -1 when firmware gave no proximity. Then the bridges above may know; then the list of local CPUs
    may be exactly one node's; then a machine with a single node leaves no choice. Otherwise nobody knows: never 0.
    """
    own = _numa_file(tree, address)
    if own is not None:
        return own, "kernel"
    for bridge in reversed(bridges):
        above = _numa_file(tree, bridge)
        if above is not None:
            return above, "bridge"
    if len(nodes) == 1:
        return nodes[0].id, "single-node"
    if not nodes and tree.is_dir(
        "/sys/devices/system/cpu"
    ):  # a kernel built without NUMA: one node, and no name for it
        return 0, "single-node"
    return _numa_by_cpus(tree, address, nodes)


def _numa_by_cpus(tree: Tree, address: str, nodes: Sequence[NumaNode]) -> tuple[int | None, NumaSource]:
    local = tree.value(f"{DEVICES}/{address}/local_cpulist", parse_cpu_list, "a list of CPUs")
    if local:
        owners = [node.id for node in nodes if node.cpus and parse_cpu_list(node.cpus) == local]
        if len(owners) == 1:
            return owners[0], "cpus"
    return None, "unknown"


def _numa_file(tree: Tree, address: str) -> int | None:
    number = tree.number(f"{DEVICES}/{address}/numa_node", low=-1, high=4095)
    return None if number is None or number < 0 else number


def _id(tree: Tree, path: str) -> str:
    """A 16-bit id as four hex digits without prefix, "" when it cannot be told."""
    number = tree.number(path, radix=16, low=0, high=0xFFFF)
    return "" if number is None else f"{number:04x}"


def _link_name(tree: Tree, path: str) -> str:
    real = tree.resolve(path)
    return real.rpartition("/")[2] if real else ""


def _address_link(tree: Tree, path: str) -> str:
    name = _link_name(tree, path)
    return name if is_address(name) else ""


def _virtual_functions(tree: Tree, path: str) -> tuple[str, ...]:
    if tree.resolve(f"{path}/virtfn0") is None:  # spares listing the directory of every function that has none
        return ()
    numbered = sorted(int(name[6:]) for name in tree.names(path) if name.startswith("virtfn") and name[6:].isdecimal())
    return tuple(filter(None, (_address_link(tree, f"{path}/virtfn{number}") for number in numbered)))
