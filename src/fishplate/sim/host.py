"""A synthetic host: the files of /sys, /proc and /dev that a machine of the catalogue would show.

Only what the layout says is taken as true; the rest (GUIDs, LIDs, keys, firmware) is made up, the same for the same
host number, so that two synthetic hosts differ exactly as two real ones do.
"""

import os
import tempfile
from pathlib import Path

from fishplate.errors import InputError
from fishplate.hardware.catalog import Catalog, Size
from fishplate.node.host import AZURE_ASSET_TAG
from fishplate.node.scan import scan
from fishplate.node.tree import Tree
from fishplate.sim.files import FileTree
from fishplate.sim.gpus import write_gpus
from fishplate.sim.nics import write_nics
from fishplate.sim.variations import TEXTBOOK, Variations
from fishplate.topology.inventory import Inventory


def write_host(root: Path, size: Size, *, number: int = 0, variations: Variations = TEXTBOOK) -> None:
    """Write the tree of host `number` of this size below `root`."""
    if size.layout is None:
        raise InputError(
            f"where the devices of {size.name} sit is not known",
            remedy="`fishplate catalog` shows the sizes with a layout; a catalogue file of your own can add one",
        )
    tree = FileTree(root)
    _write_machine(tree, size, number, variations)
    _write_numa(tree, size, variations)
    _write_uplink(tree)
    write_gpus(tree, size, number, variations)
    write_nics(tree, size, number, variations)


def synthesise(size: Size, catalog: Catalog, *, number: int = 0, variations: Variations = TEXTBOOK) -> Inventory:
    """The inventory of a synthetic host: its tree is written and then read by the same readers as a real one."""
    # A few hundred small files: in memory they take a tenth of the time.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fishplate-host-", dir=memory) as directory:
        write_host(Path(directory), size, number=number, variations=variations)
        return scan(Tree(directory), catalog=catalog, size=size)


def host_name(size: Size, number: int) -> str:
    stem = size.name.removeprefix("Standard_").lower().replace("_", "-")
    return f"{stem}-{number}"


def _write_machine(tree: FileTree, size: Size, number: int, variations: Variations) -> None:
    tree.files(
        "/proc/sys/kernel",
        {"hostname": host_name(size, number), "osrelease": "6.8.0-1030-azure", "arch": size.architecture},
    )
    azure = size.provider == "azure"
    tree.files(
        "/sys/class/dmi/id",
        {
            "sys_vendor": "Microsoft Corporation" if azure else "Fishplate",
            "product_name": "Virtual Machine" if azure else (size.dmi_products or (size.name,))[0],
            "chassis_asset_tag": AZURE_ASSET_TAG if azure else "",
        },
    )
    tree.file("/sys/module/ib_core/parameters/netns_mode", "Y")
    if variations.ofed:
        tree.file("/sys/module/mlx5_core/version", "25.10-1.2.8")


def _write_numa(tree: FileTree, size: Size, variations: Variations) -> None:
    count = 1 if variations.single_numa else size.numa_nodes or 1
    total = count + variations.gpu_memory_nodes
    vcpus, memory_kib = size.vcpus or count, int((size.memory_gib or count) * 1024 * 1024)
    tree.file("/sys/devices/system/node/online", f"0-{total - 1}" if total > 1 else "0")
    for node in range(total):
        has_cpus = node < count
        low, high = node * vcpus // count, (node + 1) * vcpus // count - 1
        tree.files(
            f"/sys/devices/system/node/node{node}",
            {
                "cpulist": f"{low}-{high}" if has_cpus else "",
                "meminfo": f"Node {node} MemTotal:       {memory_kib // count if has_cpus else 0} kB",
                "distance": " ".join("10" if other == node else "40" for other in range(total)),
            },
        )


def _write_uplink(tree: FileTree) -> None:
    """eth0, Hyper-V's synthetic NIC: below VMBUS and on no PCI device."""
    path = "/sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/000d3a00-0000-4000-8000-000d3a000001/net/eth0"
    tree.files(
        path,
        {"address": "00:0d:3a:00:00:01", "mtu": 1500, "type": 1, "ifindex": 2, "iflink": 2, "operstate": "up"},
    )
    tree.link("/sys/class/net/eth0", path)
    tree.file(
        "/proc/net/route",
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
        "eth0\t00000000\t0100E00A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
        "eth0\t0000E00A\t00000000\t0001\t0\t0\t100\t0000FFFF\t0\t0\t0",
    )
