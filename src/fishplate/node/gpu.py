"""GPUs as the kernel and its drivers show them: PCI, /proc/driver/nvidia, amdgpu's files, the KFD's links."""

import re

from fishplate.hardware.pci_address import ADDRESS
from fishplate.node.pci import DEVICES
from fishplate.node.tree import Tree
from fishplate.topology.inventory import Gpu, GpuLink, GpuVendor, PciFunction

_VENDORS: dict[str, GpuVendor] = {"10de": "nvidia", "1002": "amd"}
# Display controllers (03) and processing accelerators (12); an NVSwitch is a bridge (0680) and no GPU.
_CLASSES = ("0300", "0302", "0380", "1200")

_KFD = "/sys/class/kfd/kfd/topology/nodes"
_KFD_LINK_XGMI = 11


def is_gpu(vendor: str, class_code: str) -> bool:
    return vendor in _VENDORS and class_code.startswith(_CLASSES)


def read_gpu(tree: Tree, pci: PciFunction, name: str, *, coherent: bool = False) -> Gpu:
    """`name` is the catalogue's name of the chip, used where the driver gives none."""
    card, render = _drm_minors(tree, pci.address)
    if _VENDORS[pci.vendor] == "amd":
        return Gpu(
            pci=pci,
            vendor="amd",
            model=tree.text(f"{DEVICES}/{pci.address}/product_name") or name,
            uuid=tree.text(f"{DEVICES}/{pci.address}/unique_id") or "",
            driver_version=tree.text("/sys/module/amdgpu/version") or "",
            card=card,
            render=render,
        )
    facts = _nvidia_information(tree, pci.address)
    return Gpu(
        pci=pci,
        vendor="nvidia",
        model=facts.get("Model") or name,
        uuid="" if "?" in facts.get("GPU UUID", "?") else facts["GPU UUID"],  # question marks until it is initialised
        driver_version=tree.text("/sys/module/nvidia/version") or "",
        card=card,
        render=render,
        coherent=coherent,
    )


def _nvidia_information(tree: Tree, address: str) -> dict[str, str]:
    """`Model: \t\t NVIDIA H200` and so on, one fact a line."""
    text = tree.text(f"/proc/driver/nvidia/gpus/{address}/information") or ""
    pairs = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _drm_minors(tree: Tree, address: str) -> tuple[int | None, int | None]:
    names = tree.names(f"{DEVICES}/{address}/drm")
    cards = [int(m[1]) for name in names if (m := re.fullmatch(r"card(\d{1,4})", name))]
    renders = [int(m[1]) for name in names if (m := re.fullmatch(r"renderD(\d{1,4})", name))]
    return (cards[0] if cards else None), (renders[0] if renders else None)


# -- links between GPUs ------------------------------------------------------------------------------------------


def read_xgmi_links(tree: Tree) -> tuple[GpuLink, ...]:
    """Infinity Fabric links, from the kernel's compute topology. Each link is listed by both of its ends."""
    addresses: dict[int, str] = {}
    for name in tree.names(_KFD):
        address = _kfd_address(_properties(tree, f"{_KFD}/{name}/properties"))
        if name.isdecimal() and address:
            addresses[int(name)] = address
    pairs = set()
    for node, address in addresses.items():
        for link in tree.names(f"{_KFD}/{node}/io_links"):
            facts = _properties(tree, f"{_KFD}/{node}/io_links/{link}/properties")
            peer = addresses.get(facts.get("node_to", -1))
            if facts.get("type") == _KFD_LINK_XGMI and peer and peer != address:
                pairs.add((min(address, peer), max(address, peer)))
    return tuple(GpuLink(a=a, b=b, word="XGMI", source="kernel") for a, b in sorted(pairs))


def _properties(tree: Tree, path: str) -> dict[str, int]:
    pairs = (line.split() for line in (tree.text(path) or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal() and len(pair[1]) < 21}


def _kfd_address(facts: dict[str, int]) -> str:
    """A node that is a GPU has SIMD units; `location_id` packs bus, device and function."""
    if not facts.get("simd_count") or "location_id" not in facts:
        return ""
    location = facts["location_id"]
    address = f"{facts.get('domain', 0):04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7}"
    return address if ADDRESS.match(address) else ""


def parse_nvidia_topology(text: str, addresses: list[str]) -> tuple[GpuLink, ...]:
    """`nvidia-smi topo -m`: a header row of device names, then one row for each. GPUs are listed in bus order.

    The tool underlines its header on a terminal and separates cells by tabs; its legend below is not part of the table.
    """
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    rows = [line.split() for line in plain.splitlines() if re.match(r"\s*GPU\d+\s", line)]
    header = next((row for row in rows if len(row) > 1 and not _is_cell(row[1])), None)
    columns = [name for name in header or ["GPU0"] if re.fullmatch(r"GPU\d+", name)]
    if len(columns) != len(addresses):
        return ()
    links = []
    for row in rows:
        if row is header or row[0] not in columns:
            continue
        a = columns.index(row[0])
        cells = list(zip(addresses, row[1:], strict=False))[a + 1 :]
        links += [GpuLink(a=addresses[a], b=b, word=word, source="nvidia-smi") for b, word in cells if _is_cell(word)]
    return tuple(links)


def _is_cell(text: str) -> bool:
    return re.fullmatch(r"X|NV\d+|PIX|PXB|PHB|NODE|SYS", text) is not None
