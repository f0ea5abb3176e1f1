"""RDMA devices: ports, GUIDs, keys, and the device nodes a process needs to use them.

`/sys/class/infiniband` shows every RDMA device whatever namespace its netdev is in, so a NIC that a pod uses is still
seen here (in shared mode). Soft-RoCE devices live below devices/virtual and have no `device` link; their `parent` file
names the netdev they stand on.
"""

import re

import msgspec

from fishplate.hardware.pci_address import nearest_address, subfunction
from fishplate.node.tree import Tree, natural_key
from fishplate.topology.inventory import CharDevice, CharKind, Gid, LinkLayer, Port, RdmaDevice

_CLASS = "/sys/class/infiniband"
_VERBS = "/sys/class/infiniband_verbs"
_MAX_TABLE = 1024  # GID and P_Key tables have at most a few hundred slots
_EMPTY_GUID = {"", "0000:0000:0000:0000"}
_EMPTY_GID = "0000:0000:0000:0000:0000:0000:0000:0000"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An RDMA device and where it stands: on a PCI function, on a subfunction of one, or (Soft-RoCE) on a netdev."""

    device: RdmaDevice
    address: str = ""
    subfunction: str = ""
    parent: str = ""


def read_rdma_devices(tree: Tree) -> tuple[Found, ...]:
    nodes = _read_char_devices(tree)
    return tuple(
        found
        for name in sorted(tree.names(_CLASS), key=natural_key)
        if (found := _read_device(tree, name, nodes.get(name, ()))) is not None
    )


def read_rdma_cm(tree: Tree) -> CharDevice | None:
    """The connection manager's node, shared by all devices."""
    return _char_device(tree, "/sys/class/misc/rdma_cm", "rdma_cm", "rdma_cm")


def is_still_there(tree: Tree, device: RdmaDevice, address: str) -> bool:
    """Whether the verbs nodes of a device that was read before are still this device's, at this PCI address. Names and
    numbers are handed out anew when a driver is loaded again, so the old ones may be another device's by now."""
    if not device.soft and address and nearest_address(tree.resolve(f"{_CLASS}/{device.name}/device") or "") != address:
        return False
    nodes = [node for node in device.char_devices if node.kind == "uverbs"]
    return tree.is_dir(f"{_CLASS}/{device.name}") and all(
        tree.text(f"{_VERBS}/{name}/ibdev") == device.name
        and tree.text(f"{_VERBS}/{name}/dev") == f"{node.major}:{node.minor}"
        for node in nodes
        for name in [node.path.rpartition("/")[2]]
    )


def _read_device(tree: Tree, name: str, nodes: tuple[CharDevice, ...]) -> Found | None:
    path = f"{_CLASS}/{name}"
    real = tree.resolve(path)
    if real is None or not tree.is_dir(path):
        tree.report("vanished", path, "listed, but gone when it was read")
        return None
    # Not always the function itself: subfunctions and some drivers put a device of their own below it.
    above = tree.resolve(f"{path}/device") or real
    ports = _read_ports(tree, path)
    parent = tree.text(f"{path}/parent") or ""  # only Soft-RoCE has this file
    device = RdmaDevice(
        name=name,
        node_guid=_guid(tree, f"{path}/node_guid"),
        sys_image_guid=_guid(tree, f"{path}/sys_image_guid"),
        firmware=tree.text(f"{path}/fw_ver") or "",
        node_type=_after_number(tree.text(f"{path}/node_type") or ""),
        board_id=tree.text(f"{path}/board_id") or "",
        ports=ports,
        char_devices=nodes,
        netdevs=tuple(dict.fromkeys(gid.netdev for port in ports for gid in port.gids if gid.netdev)),
        soft=bool(parent) or real.startswith("/sys/devices/virtual/"),
    )
    address = "" if device.soft else nearest_address(above)
    return Found(device=device, address=address, subfunction=subfunction(above), parent=parent)


# -- ports -------------------------------------------------------------------------------------------------------


def _read_ports(tree: Tree, path: str) -> tuple[Port, ...]:
    numbers = sorted(int(name) for name in tree.names(f"{path}/ports") if name.isdecimal() and len(name) < 4)
    return tuple(_read_port(tree, f"{path}/ports/{number}", number) for number in numbers)


def _read_port(tree: Tree, path: str, number: int) -> Port:
    link_layer = _link_layer(tree, path)
    rate = tree.text(f"{path}/rate") or ""
    gids = _read_gids(tree, path)
    return Port(
        number=number,
        link_layer=link_layer,
        state=_after_number(tree.text(f"{path}/state") or ""),
        phys_state=_after_number(tree.text(f"{path}/phys_state") or ""),
        rate=rate,
        rate_gbps=parse_rate(rate),
        lid=tree.number(f"{path}/lid", radix=16, low=0, high=0xFFFFFFFF),
        sm_lid=tree.number(f"{path}/sm_lid", radix=16, low=0, high=0xFFFFFFFF),
        guid=_port_guid(link_layer, gids),
        pkeys=_read_pkeys(tree, path),
        gids=gids,
    )


def _link_layer(tree: Tree, path: str) -> LinkLayer:
    text = tree.text(f"{path}/link_layer")
    if text == "InfiniBand":
        return "InfiniBand"
    if text == "Ethernet":
        return "Ethernet"
    if text and text != "Unknown":  # what the kernel itself says of EFA
        tree.garbled(f"{path}/link_layer", text, "InfiniBand or Ethernet")
    return "unknown"


def parse_rate(text: str) -> float | None:
    """`400 Gb/sec (4X NDR)` → 400.0"""
    match = re.match(r"(\d{1,5}(?:\.\d{1,3})?) Gb/sec", text)
    return float(match[1]) if match else None


def _after_number(text: str) -> str:
    """`4: ACTIVE` → `ACTIVE`; the kernel puts its own number first."""
    return re.sub(r"^\d+:\s*", "", text)


def _port_guid(link_layer: LinkLayer, gids: tuple[Gid, ...]) -> str:
    """On InfiniBand the lower half of GID 0 is the port's GUID; no file of its own holds it."""
    if link_layer != "InfiniBand" or not gids or gids[0].index != 0:
        return ""
    guid = ":".join(gids[0].value.split(":")[4:])
    return "" if guid in _EMPTY_GUID else guid


def _read_gids(tree: Tree, path: str) -> tuple[Gid, ...]:
    gids = []
    for index in _indexes(tree, f"{path}/gids"):
        value = tree.text(f"{path}/gids/{index}") or ""
        if not re.fullmatch(r"[0-9a-f]{4}(:[0-9a-f]{4}){7}", value):
            if value:
                tree.garbled(f"{path}/gids/{index}", value, "a GID")
            continue
        if value == _EMPTY_GID:
            continue
        attrs = f"{path}/gid_attrs"
        kind, netdev = tree.text(f"{attrs}/types/{index}"), tree.text(f"{attrs}/ndevs/{index}")
        gids.append(Gid(index=index, value=value, type=kind or "", netdev=netdev or ""))
    return tuple(gids)


def _read_pkeys(tree: Tree, path: str) -> tuple[str, ...]:
    """A key's place in the table is its index, so gaps stay; the empty rest of the table is cut off."""
    keys = [
        tree.number(f"{path}/pkeys/{index}", radix=16, low=0, high=0xFFFF) or 0
        for index in _indexes(tree, f"{path}/pkeys")
    ]
    while keys and not keys[-1]:
        keys.pop()
    return tuple(f"0x{key:04x}" for key in keys)


def _indexes(tree: Tree, path: str) -> list[int]:
    return sorted(int(name) for name in tree.names(path) if name.isdecimal() and len(name) < 6)[:_MAX_TABLE]


def _guid(tree: Tree, path: str) -> str:
    text = tree.text(path) or ""
    if text and not re.fullmatch(r"[0-9a-f]{4}(:[0-9a-f]{4}){3}", text):
        tree.garbled(path, text, "a GUID")
        return ""
    return "" if text in _EMPTY_GUID else text


# -- device nodes ------------------------------------------------------------------------------------------------


def _read_char_devices(tree: Tree) -> dict[str, tuple[CharDevice, ...]]:
    """RDMA device name → its nodes. A device with several ports has one umad and one issm for each."""
    kinds: tuple[tuple[str, CharKind], ...] = (
        (_VERBS, "uverbs"),
        ("/sys/class/infiniband_mad", "umad"),
        ("/sys/class/infiniband_mad", "issm"),
        ("/sys/class/infiniband_cm", "ucm"),
    )
    found: dict[str, list[CharDevice]] = {}
    for directory, kind in kinds:
        for name in sorted(tree.names(directory), key=natural_key):
            if not re.fullmatch(kind + r"\d{1,6}", name):
                continue
            owner = tree.text(f"{directory}/{name}/ibdev")
            node = _char_device(tree, f"{directory}/{name}", name, kind)
            if owner and node:
                found.setdefault(owner, []).append(node)
    return {owner: tuple(nodes) for owner, nodes in found.items()}


def _char_device(tree: Tree, path: str, name: str, kind: CharKind) -> CharDevice | None:
    numbers = tree.value(f"{path}/dev", _parse_dev, "major:minor")
    if numbers is None:
        return None
    node = f"/dev/infiniband/{name}"
    port = tree.number(f"{path}/port", low=0, high=255) if kind in ("umad", "issm") else None
    mode = tree.mode(node)
    if mode is None:
        mode = _kernel_mode(tree, path)
    return CharDevice(path=node, kind=kind, major=numbers[0], minor=numbers[1], mode=mode, port=port)


def _kernel_mode(tree: Tree, path: str) -> int | None:
    """The mode the kernel gives the node, for those who cannot see it; None where the kernel makes none.

    A container sees the directory of device nodes that was there when it started. Reloading the modules makes another
    one, and sysfs, which is never old, is all that is left to ask. What udev's rules changed is not in it.
    """
    text = tree.text(f"{path}/uevent") or ""
    if not re.search(r"^DEVNAME=", text, re.MULTILINE):
        return None
    stated = re.search(r"^DEVMODE=0([0-7]{3})$", text, re.MULTILINE)
    return int(stated[1], 8) if stated else 0o600


def _parse_dev(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,4}):(\d{1,7})", text)
    if match is None:
        raise ValueError(text)
    return int(match[1]), int(match[2])
