"""The fields of DRANET's NetworkConfig (sigs.k8s.io/dranet, pkg/apis/types.go, up to the subinterfaces of 2026-09), and
our section `rdma`."""

import msgspec


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What the sections have in common: an unknown field is refused."""


class Rdma(Section, frozen=True, kw_only=True):
    """Ours. `managementNodes` asks for umad and issm, which speak to the whole fabric; `ncclEnvironment` for
    NCCL_IB_HCA in the container's environment."""

    management_nodes: bool | None = None
    nccl_environment: bool | None = None


class Vrf(Section, frozen=True, kw_only=True):
    name: str | None = None
    table: int | None = None


class IpVlan(Section, frozen=True, kw_only=True):
    mode: str | None = None
    flag: str | None = None


class IpRange(Section, frozen=True, kw_only=True):
    start_ip: str | None = msgspec.field(default=None, name="startIP")
    end_ip: str | None = msgspec.field(default=None, name="endIP")
    cidr: str | None = None


class SubInterface(Section, frozen=True, kw_only=True):
    type: str | None = None
    addresses: list[str] | None = None
    ip_ranges: list[IpRange] | None = msgspec.field(default=None, name="ipRanges")
    ipvlan: IpVlan | None = None


class Interface(Section, frozen=True, kw_only=True):
    name: str | None = None
    addresses: list[str] | None = None
    dhcp: bool | None = None
    mtu: int | None = None
    hardware_addr: str | None = None
    gso_max_size: int | None = None
    gro_max_size: int | None = None
    gso_ipv4_max_size: int | None = msgspec.field(default=None, name="gsoIPv4MaxSize")
    gro_ipv4_max_size: int | None = msgspec.field(default=None, name="groIPv4MaxSize")
    disable_ebpf_programs: bool | None = None
    forwarding: bool | None = None
    arp_ignore: int | None = None
    arp_announce: int | None = None
    vrf: Vrf | None = None
    # Named while the subinterfaces were under discussion, in templates that are about.
    type: str | None = None
    addressing: str | None = None
    unnumbered: bool | None = None
    ipvlan: IpVlan | None = None
    accept_ra: int | None = msgspec.field(default=None, name="acceptRA")


class Route(Section, frozen=True, kw_only=True):
    destination: str | None = None
    gateway: str | None = None
    source: str | None = None
    scope: int | None = None
    table: int | None = None


class Rule(Section, frozen=True, kw_only=True):
    priority: int | None = None
    source: str | None = None
    destination: str | None = None
    table: int | None = None


class Neighbor(Section, frozen=True, kw_only=True):
    destination: str | None = None
    hardware_addr: str | None = None


class Ethtool(Section, frozen=True, kw_only=True):
    features: dict[str, bool] | None = None
    private_flags: dict[str, bool] | None = None


class NetworkConfig(Section, frozen=True, kw_only=True):
    profile: str | None = None
    interface: Interface | None = None
    sub_interface: SubInterface | None = None
    routes: list[Route] | None = None
    rules: list[Rule] | None = None
    neighbors: list[Neighbor] | None = None
    ethtool: Ethtool | None = None
    rdma: Rdma | None = None


# What this release refuses: all but our own section. Shrinks as interfaces are handed out.
_SECTIONS = ("profile", "subInterface", "routes", "rules", "neighbors", "ethtool")
UNSUPPORTED: frozenset[tuple[str | int, ...]] = frozenset((name,) for name in _SECTIONS) | frozenset(
    ("interface", field.encode_name) for field in msgspec.structs.fields(Interface)
)
