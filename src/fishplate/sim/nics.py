"""NICs of a synthetic host: PCI functions, RDMA devices with their ports, device nodes, interfaces."""

import msgspec

from fishplate.hardware.catalog import NicSpec, Place, Size
from fishplate.hardware.pci_address import address_key
from fishplate.sim.files import FileTree
from fishplate.sim.places import write_function
from fishplate.sim.variations import Variations

_UVERBS_MAJOR, _MAD_MAJOR, _MISC_MAJOR = 231, 231, 10
_UVERBS_FIRST, _UMAD_FIRST, _ISSM_FIRST = 192, 0, 64
_PKEY_FIRST = 0x8001
_ACCELERATED = Place(address="9a3f:00:02.0", numa=0, root="pci9a3f:00", vmbus=True)


class _Rdma(msgspec.Struct, frozen=True, kw_only=True):
    """One RDMA device to write: its number gives it its name and its device nodes."""

    path: str
    number: int
    host: int
    rail: int
    infiniband: bool
    rate: str
    up: bool
    netdev: str

    @property
    def name(self) -> str:
        return f"mlx5_{self.number}"

    @property
    def guid(self) -> str:
        return port_guid(self.host, self.rail)


def port_guid(host: int, rail: int) -> str:
    """Unique per host and rail, with the vendor prefix that Azure's ports carry."""
    return f"0015:5dff:fe{host >> 8 & 0xFF:02x}:{host & 0xFF:02x}{rail + 1:02x}"


def port_lid(host: int, rail: int) -> int:
    return (host * 64 + rail + 1) & 0xBFFF


def port_mac(host: int, rail: int) -> str:
    return f"b8:3f:d2:{host >> 8 & 0xFF:02x}:{host & 0xFF:02x}:{rail:02x}"


def write_nics(tree: FileTree, size: Size, host: int, variations: Variations) -> None:
    if size.nic is None or size.layout is None:
        return
    tree.file("/sys/devices/virtual/misc/rdma_cm/dev", f"{_MISC_MAJOR}:58")
    tree.link("/sys/class/misc/rdma_cm", "/sys/devices/virtual/misc/rdma_cm")
    tree.node("rdma_cm", 0o666)
    number = 0
    if variations.accelerated_networking:
        _write_accelerated(tree, host)
        number = 1
    places = sorted(size.layout.nics, key=lambda place: address_key(place.address))
    for rail, place in enumerate(places):
        if rail not in variations.missing:
            _write_nic(tree, size.nic, place, number, host, rail, variations)
        number += 1


def _write_nic(
    tree: FileTree, nic: NicSpec, place: Place, number: int, host: int, rail: int, variations: Variations
) -> None:
    infiniband = nic.link_layer == "InfiniBand" and not variations.roce
    ids: dict[str, str | int] = {
        "vendor": f"0x{nic.pci_vendor}",
        "device": f"0x{nic.pci_device}",
        "subsystem_vendor": f"0x{nic.pci_vendor}",
        "subsystem_device": f"0x{nic.pci_subsystem or '0000'}",
        "class": "0x020700" if infiniband else "0x020000",
    }
    path = write_function(tree, place, host, "mlx5_core", ids, variations)
    netdev = "" if infiniband else f"rail{rail}"
    rdma = _Rdma(
        path=path,
        number=number,
        host=host,
        rail=rail,
        infiniband=infiniband,
        rate=f"{nic.rate_gbps:g} Gb/sec (4X {nic.generation})",
        up=rail not in variations.links_down,
        netdev=netdev,
    )
    _write_rdma(tree, rdma)
    if netdev and rail not in variations.netdevs_away:
        _write_netdev(tree, path, netdev, port_mac(host, rail), index=10 + rail, kind=1)
    if infiniband and variations.ofed:
        _write_netdev(tree, path, f"ib{rail}", _ipoib_mac(rdma.guid), index=10 + rail, kind=32)


def _write_accelerated(tree: FileTree, host: int) -> None:
    """Azure's accelerated networking: an Ethernet VF that serves eth0 and belongs to it."""
    ids: dict[str, str | int] = {
        "vendor": "0x15b3",
        "device": "0x101a",
        "subsystem_vendor": "0x15b3",
        "subsystem_device": "0x0127",
        "class": "0x020000",
    }
    path = write_function(tree, _ACCELERATED, host, "mlx5_core", ids, Variations())
    netdev = "enP39487s1"
    rdma = _Rdma(
        path=path, number=0, host=host, rail=99, infiniband=False, rate="100 Gb/sec (4X EDR)", up=True, netdev=netdev
    )
    _write_rdma(tree, rdma)
    _write_netdev(tree, path, netdev, "00:0d:3a:00:00:01", index=3, kind=1)
    tree.link(f"{path}/net/{netdev}/master", "/sys/class/net/eth0")


# -- RDMA --------------------------------------------------------------------------------------------------------


def _write_rdma(tree: FileTree, rdma: _Rdma) -> None:
    path = f"{rdma.path}/infiniband/{rdma.name}"
    tree.files(
        path,
        {
            "node_guid": rdma.guid,
            "sys_image_guid": f"b83f:d203:00{rdma.host & 0xFF:02x}:{rdma.rail:04x}",
            "fw_ver": "28.44.1036",
            "node_type": "1: CA",
            "board_id": "MT_0000000001",
        },
    )
    tree.link(f"{path}/device", rdma.path)
    tree.link(f"/sys/class/infiniband/{rdma.name}", path)
    _write_port(tree, f"{path}/ports/1", rdma)
    _write_char_devices(tree, rdma)


def _write_port(tree: FileTree, path: str, rdma: _Rdma) -> None:
    has_lid = rdma.infiniband and rdma.up
    tree.files(
        path,
        {
            "link_layer": "InfiniBand" if rdma.infiniband else "Ethernet",
            "state": "4: ACTIVE" if rdma.up else "1: DOWN",
            "phys_state": "5: LinkUp" if rdma.up else "3: Disabled",
            "rate": rdma.rate,
            "lid": f"0x{port_lid(rdma.host, rdma.rail) if has_lid else 0:x}",
            "sm_lid": "0x1" if has_lid else "0x0",
        },
    )
    if rdma.infiniband:
        tree.files(f"{path}/pkeys", {"0": f"0x{_PKEY_FIRST:04x}", "1": "0x7fff", "2": "0x0000"})
        gids = {0: (f"fe80:0000:0000:0000:{rdma.guid}", "IB/RoCE v1")}
    else:
        tree.files(f"{path}/pkeys", {"0": "0xffff"})
        ipv4 = f"0000:0000:0000:0000:0000:ffff:0a32:{rdma.rail:02x}{rdma.host + 1 & 0xFF:02x}"
        gids = {0: (f"fe80:0000:0000:0000:{rdma.guid}", "IB/RoCE v1"), 3: (ipv4, "RoCE v2")}
    for index in range(4):
        value, kind = gids.get(index, ("0000:" * 7 + "0000", ""))
        tree.file(f"{path}/gids/{index}", value)
        if kind:
            tree.file(f"{path}/gid_attrs/types/{index}", kind)
            tree.file(f"{path}/gid_attrs/ndevs/{index}", rdma.netdev)


def _write_char_devices(tree: FileTree, rdma: _Rdma) -> None:
    nodes = (
        ("infiniband_verbs", f"uverbs{rdma.number}", _UVERBS_MAJOR, _UVERBS_FIRST, 0o666),
        ("infiniband_mad", f"umad{rdma.number}", _MAD_MAJOR, _UMAD_FIRST, 0o600),
        ("infiniband_mad", f"issm{rdma.number}", _MAD_MAJOR, _ISSM_FIRST, 0o600),
    )
    for directory, name, major, first, mode in nodes:
        path = f"{rdma.path}/{directory}/{name}"
        tree.files(path, {"dev": f"{major}:{first + rdma.number}", "ibdev": rdma.name})
        if directory == "infiniband_mad":
            tree.file(f"{path}/port", 1)
        tree.link(f"/sys/class/{directory}/{name}", path)
        tree.node(name, mode)


# -- interfaces --------------------------------------------------------------------------------------------------


def _write_netdev(tree: FileTree, path: str, name: str, mac: str, *, index: int, kind: int) -> None:
    tree.files(
        f"{path}/net/{name}",
        {
            "address": mac,
            "mtu": 4092 if kind == 32 else 9000,
            "type": kind,
            "ifindex": index,
            "iflink": index,
            "operstate": "up",
            "ifalias": "",
        },
    )
    tree.link(f"/sys/class/net/{name}", f"{path}/net/{name}")


def _ipoib_mac(guid: str) -> str:
    digits = guid.replace(":", "")
    return "00:00:01:49:fe:80:00:00:00:00:00:00:" + ":".join(digits[i : i + 2] for i in range(0, 16, 2))
