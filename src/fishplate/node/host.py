"""The machine as a whole: name, architecture, firmware's word on where it runs."""

import platform
from typing import Literal

from fishplate.node.tree import Tree
from fishplate.topology.inventory import Host

# Azure's own mark in the firmware tables of every VM; other Hyper-V hosts do not carry it.
AZURE_ASSET_TAG = "7783-7084-3265-9085-8269-3286-77"
_DMI = "/sys/class/dmi/id"


def read_host(tree: Tree) -> Host:
    vendor = tree.text(f"{_DMI}/sys_vendor") or ""
    asset_tag = tree.text(f"{_DMI}/chassis_asset_tag") or ""
    kernel = tree.text("/proc/sys/kernel/osrelease") or ""
    return Host(
        name=tree.text("/proc/sys/kernel/hostname") or tree.text("/etc/hostname") or "",
        architecture=_architecture(tree, kernel),
        kernel=kernel,
        vendor=vendor,
        product=tree.text(f"{_DMI}/product_name") or "",
        cloud="azure" if vendor == "Microsoft Corporation" and asset_tag == AZURE_ASSET_TAG else "",
        rdma_netns=_rdma_netns(tree),
    )


def _architecture(tree: Tree, kernel: str) -> str:
    stated = tree.text("/proc/sys/kernel/arch")  # since Linux 6.1
    if stated:
        return stated
    if tree.live:
        return platform.machine()
    return next((name for name in ("x86_64", "aarch64") if kernel.endswith(name)), "")


def _rdma_netns(tree: Tree) -> Literal["shared", "exclusive", ""]:
    """ib_core's parameter shows the mode in force, however it was set."""
    match tree.text("/sys/module/ib_core/parameters/netns_mode"):
        case "Y":
            return "shared"
        case "N":
            return "exclusive"
    return ""
