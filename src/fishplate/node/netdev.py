"""Network interfaces: what they stand on, who is their master, and which of them the node itself needs."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from fishplate.hardware.pci_address import nearest_address, subfunction
from fishplate.node.rtnetlink import LinkFacts
from fishplate.node.tree import Tree, natural_key
from fishplate.topology.inventory import Netdev

_CLASS = "/sys/class/net"
_ENCAPSULATION = {1: "ether", 32: "infiniband", 772: "loopback", 512: "ppp", 768: "ipip", 776: "sit", 778: "gre"}
_ARPHRD_INFINIBAND = 32
_MAX_NAME = 15  # IFNAMSIZ, less its zero byte
_RTF_UP, _RTF_REJECT = 0x0001, 0x0200


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An interface and the PCI function (or subfunction of one) it stands on, if any."""

    netdev: Netdev
    address: str = ""
    subfunction: str = ""


def read_netdevs(
    tree: Tree, facts: Mapping[str, LinkFacts], defaults: frozenset[str] | None = None
) -> tuple[Found, ...]:
    """All interfaces of the host but its loopback. `facts` and `defaults` (interfaces with a default route) are what
    netlink says; without it the tree's own files are asked."""
    if defaults is None:
        defaults = default_route_interfaces(tree)
    found = []
    for name in sorted(tree.names(_CLASS), key=natural_key):
        if len(name.encode()) > _MAX_NAME:
            tree.report("garbled", f"{_CLASS}/{name[:40]}", "longer than any interface's name; left out")
            continue
        path = f"{_CLASS}/{name}"
        real = tree.resolve(path)
        if real is None:
            tree.report("vanished", path, "listed, but gone when it was read")
        elif tree.is_dir(path) and name != "lo":  # bonding_masters and its like are files
            found.append(_read_netdev(tree, name, real, facts.get(name, LinkFacts()), name in defaults))
    return tuple(found)


def _read_netdev(tree: Tree, name: str, real: str, facts: LinkFacts, default_route: bool) -> Found:
    path = f"{_CLASS}/{name}"
    arp_type = tree.number(f"{path}/type", low=0, high=65_535)
    virtual = real.startswith("/sys/devices/virtual/")
    netdev = Netdev(
        name=name,
        ifindex=tree.number(f"{path}/ifindex", low=0, high=2**31),
        mac=tree.text(f"{path}/address") or "",
        mtu=tree.number(f"{path}/mtu", low=0, high=2**31),
        encapsulation=_ENCAPSULATION.get(arp_type or 0, f"{arp_type}" if arp_type is not None else ""),
        kind=facts.kind or _kind(tree, path, arp_type, virtual),
        state=tree.text(f"{path}/operstate") or "",
        alias=tree.text(f"{path}/ifalias") or "",
        port_name=tree.text(f"{path}/phys_port_name") or "",
        master=(tree.resolve(f"{path}/master") or "").rpartition("/")[2],
        lowers=tuple(entry[6:] for entry in tree.names(path) if entry.startswith("lower_")),
        virtual=virtual,
        default_route=default_route,
        addresses=facts.addresses,
        tc_filters=facts.tc_filters,
        tcx_programs=facts.tcx_programs,
    )
    return Found(netdev=netdev, address=nearest_address(real), subfunction=subfunction(real))


def _kind(tree: Tree, path: str, arp_type: int | None, virtual: bool) -> str:
    """The kind as far as sysfs tells it; netlink knows better where it can be asked."""
    if arp_type == _ARPHRD_INFINIBAND:
        return "ipoib"
    match = re.search(r"^DEVTYPE=(\w+)$", tree.text(f"{path}/uevent") or "", re.MULTILINE)
    if match:
        return match[1]
    if not virtual:
        return "device"
    index, peer = tree.number(f"{path}/ifindex"), tree.number(f"{path}/iflink")
    # Of the kinds without a DEVTYPE only veth points at another interface.
    return "veth" if None not in (index, peer) and index != peer else "dummy"


# -- the node's own interfaces -----------------------------------------------------------------------------------


def default_route_interfaces(tree: Tree) -> frozenset[str]:
    """Interfaces that carry a default route of the lowest metric, as far as a tree's files tell.

    The kernel's list of IPv6 routes holds those of every table, policy routing included, so it counts only where IPv4
    has no default route at all.
    """
    return _best(_ipv4_defaults(tree)) or _best(_ipv6_defaults(tree))


def _best(routes: Sequence[tuple[int, str]]) -> frozenset[str]:
    lowest = min((metric for metric, _ in routes), default=0)
    return frozenset(name for metric, name in routes if metric == lowest)


def _ipv4_defaults(tree: Tree) -> list[tuple[int, str]]:
    routes = []
    for line in (tree.text("/proc/net/route", limit=1 << 20) or "").splitlines()[1:]:
        parts = line.split()
        if len(parts) >= 8 and parts[1] == "00000000" and parts[7] == "00000000":
            flags, metric = _hex(parts[3]), parts[6]
            if flags & _RTF_UP and not flags & _RTF_REJECT and metric.isdecimal() and len(metric) < 11:
                routes.append((int(metric), parts[0]))
    return routes


def _ipv6_defaults(tree: Tree) -> list[tuple[int, str]]:
    routes = []
    for line in (tree.text("/proc/net/ipv6_route", limit=1 << 20) or "").splitlines():
        parts = line.split()
        if len(parts) >= 10 and parts[0] == "0" * 32 and parts[1] == "00":
            flags = _hex(parts[8])
            if flags & _RTF_UP and not flags & _RTF_REJECT and parts[9] != "lo":
                routes.append((_hex(parts[5]), parts[9]))
    return routes


def _hex(text: str) -> int:
    return int(text, 16) if re.fullmatch(r"[0-9a-fA-F]{1,8}", text) else 0


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """Why an interface is not free; `uplink` if it is part of the node's own way out."""

    why: str
    uplink: bool = False


def explain_use(netdevs: Sequence[Netdev]) -> dict[str, Use]:
    """Interface → why the node itself needs it and no pod may have it. Interfaces that are free are not in it.

    The node's way out is needed with everything below it: members of a bond, the VF under Azure's synthetic NIC, the
    device under a VLAN. Any other interface with a master is that master's.
    """
    why = "carries the node's default route"
    reasons = {netdev.name: Use(why=why, uplink=True) for netdev in netdevs if netdev.default_route}
    by_name = {netdev.name: netdev for netdev in netdevs}
    pending = list(reasons)
    while pending:
        above = pending.pop()
        below = [netdev.name for netdev in netdevs if netdev.master == above]
        below += [name for name in by_name[above].lowers if name in by_name]
        for name in below:
            if name not in reasons:
                reasons[name] = Use(why=f"is part of {above}, which {why}", uplink=True)
                pending.append(name)
    for netdev in netdevs:
        if netdev.master:
            reasons.setdefault(netdev.name, Use(why=f"belongs to {netdev.master}"))
    return reasons
