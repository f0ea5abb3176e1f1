import msgspec

from fishplate.topology.inventory import Nic, PciFunction, Port, RdmaDevice
from fishplate.topology.rails import number_rails


def nic(
    address: str,
    *,
    layer: str = "InfiniBand",
    physfn: str = "",
    excluded: str = "",
    uplink: bool = False,
    rdma: bool = True,
) -> Nic:
    port = msgspec.convert({"number": 1, "linkLayer": layer}, Port)
    devices = (RdmaDevice(name="mlx5_9", ports=(port,)),) if rdma else ()
    return Nic(
        id=address, pci=PciFunction(address=address, physfn=physfn), rdma=devices, excluded=excluded, uplink=uplink
    )


def rails(*nics: Nic, layout: tuple[str, ...] = (), azure: bool = False) -> list[int | None]:
    return [one.rail for one in number_rails(nics, layout=layout, azure=azure)]


def test_a_missing_nic_leaves_a_gap_where_the_layout_is_known() -> None:
    layout = ("0101:00:00.0", "0102:00:00.0", "0103:00:00.0")
    assert rails(nic("0101:00:00.0"), nic("0103:00:00.0"), layout=layout) == [0, 2]


def test_on_azure_the_domain_is_the_rail() -> None:
    assert rails(nic("0102:00:00.0"), nic("0108:00:00.0"), azure=True) == [1, 7]


def test_azure_ethernet_has_no_rail() -> None:
    assert rails(nic("0101:00:00.0"), nic("9a3f:00:02.0", layer="Ethernet"), azure=True) == [0, None]


def test_elsewhere_the_rank_by_address_counts() -> None:
    assert rails(nic("0000:9a:00.0"), nic("0000:0c:00.0"), nic("0000:5d:00.0")) == [2, 0, 1]


def test_domains_are_ordered_as_numbers() -> None:
    assert rails(nic("10000:01:00.0"), nic("ffff:01:00.0")) == [1, 0]


def test_virtual_functions_share_the_rail_of_their_pf() -> None:
    pf_a, pf_b = "0000:0c:00.0", "0000:5d:00.0"
    assert rails(
        nic("0000:0c:00.2", physfn=pf_a), nic("0000:5d:00.2", physfn=pf_b), nic("0000:0c:00.3", physfn=pf_a)
    ) == [
        0,
        1,
        0,
    ]


def test_the_uplink_and_plain_functions_take_no_number() -> None:
    uplink = nic("0000:01:00.0", excluded="carries the default route", uplink=True)
    assert rails(uplink, nic("0000:02:00.0", rdma=False), nic("0000:03:00.0")) == [None, None, 0]


def test_a_nic_that_is_excluded_for_now_keeps_its_number_free() -> None:
    assert rails(nic("0000:01:00.0", excluded="bound to vfio-pci"), nic("0000:03:00.0")) == [None, 1]


def test_a_layout_that_fits_no_nic_is_not_used() -> None:
    assert rails(nic("0000:01:00.0"), nic("0000:03:00.0"), layout=("0101:00:00.0",)) == [0, 1]
