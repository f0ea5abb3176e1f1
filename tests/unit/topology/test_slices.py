import msgspec

from fishplate.topology.attributes import cap, device_attributes, join_whole
from fishplate.topology.inventory import Gpu, Inventory, Netdev, Nic, PciFunction, Port, RdmaDevice
from fishplate.topology.memory import remember
from fishplate.topology.names import interface_device_name, is_dns_label
from fishplate.topology.slices import publish_slices

PORT = Port(number=1, link_layer="Ethernet", state="ACTIVE", rate_gbps=400.0, lid=1, guid="a:b:c:d", pkeys=("0xffff",))
RDMA = RdmaDevice(name="mlx5_0", node_guid="0015:5dff:fe00:0001", firmware="28.44.1036", ports=(PORT, PORT))
NETDEV = Netdev(
    name="rail0",
    mac="b8:3f:d2:00:00:01",
    mtu=9000,
    encapsulation="ether",
    kind="device",
    state="up",
    alias="storage",
    addresses=("10.50.0.1/24", "fd00::1/64"),
)
PCI = PciFunction(
    address="0000:0c:00.0",
    vendor="15b3",
    device="1021",
    subsystem_device="0023",
    driver="mlx5_core",
    root="pci0000:0a",
    numa_node=0,
    numa_source="kernel",
    sriov_totalvfs=16,
    sriov_numvfs=8,
)
FULL = Nic(id="pci-0000-0c-00-0", pci=PCI, rdma=(RDMA,), netdevs=(NETDEV,), rail=3, paired_gpu="0000:0f:00.0")


def values(nic: Nic, **more: object) -> dict[str, object]:
    return {name: attribute.value for name, attribute in device_attributes(nic, **more).items()}  # type: ignore[arg-type]


def test_a_nic_with_an_interface_says_all_that_dranet_says() -> None:
    found = values(FULL)
    assert found["dra.net/ifName"] == "rail0"
    assert found["dra.net/mtu"] == 9000
    assert (found["dra.net/sriov"], found["dra.net/sriovVfs"]) == (True, 8)
    assert (found["dra.net/ipv4"], found["dra.net/ipv6"]) == ("10.50.0.1/24", "fd00::1/64")
    assert (found["dra.net/state"], found["dra.net/type"]) == ("up", "device")
    assert (found["dra.net/linkLayer"], found["dra.net/rateGbps"]) == ("Ethernet", 400)
    assert found["dra.net/ports"] == 2
    assert found["dra.net/pairedGpu"] == "0000:0f:00.0"
    assert found["dra.net/pciDevice"] == "unknown"
    assert "dra.net/pkey" not in found  # a RoCE port's key says nothing


def test_unknown_numa_is_left_out_and_never_zero() -> None:
    pci = msgspec.structs.replace(PCI, numa_node=None)
    found = values(msgspec.structs.replace(FULL, pci=pci))
    assert not [name for name in found if name.endswith("numaNode")]


def test_too_many_attributes_drop_the_least_important_and_never_the_standard_ones() -> None:
    cloud = {f"azure.dra.net/extra{i}": "x" for i in range(12)}
    found = values(FULL, node=cloud, gpu_uuid="GPU-1")
    assert len(found) == 32
    assert not {"dra.net/alias", "dra.net/firmware", "dra.net/mac"} & set(found)
    for name in ("pciBusID", "pcieRoot", "numaNode"):
        assert f"resource.kubernetes.io/{name}" in found
    assert {"dra.net/rdma", "dra.net/rdmaDevice", "dra.net/numaNode", "dra.net/ifName"} <= set(found)


def test_more_cloud_attributes_than_fit_are_cut_too() -> None:
    cloud = {f"webhook.example/key{i}": "x" for i in range(60)}
    found = values(FULL, node=cloud)
    assert len(found) == 32
    assert {"dra.net/rdma", "resource.kubernetes.io/pciBusID"} <= set(found)


def test_uuid_of_the_paired_gpu_is_published_only_on_request() -> None:
    gpu = Gpu(pci=PciFunction(address="0000:0f:00.0"), vendor="nvidia", uuid="GPU-1")
    inventory = Inventory(gpus=(gpu,), nics=(FULL,))
    plain, asked = (publish_slices(inventory, node="n", publish_uuid=flag)[0] for flag in (False, True))
    assert "gpu.nvidia.com/uuid" not in plain.spec.devices[0].attributes
    assert asked.spec.devices[0].attributes["gpu.nvidia.com/uuid"].string == "GPU-1"


def test_strings_are_cut_at_64_bytes_between_characters() -> None:
    assert cap("ü" * 40) == "ü" * 32
    assert cap("a" + "ü" * 40) == "a" + "ü" * 31
    assert len(cap("x" * 65)) == 64


def test_lists_are_cut_at_whole_entries() -> None:
    addresses = [f"10.0.0.{i}/24" for i in range(20)]
    joined = join_whole(addresses)
    assert len(joined) <= 64
    assert all(part in addresses for part in joined.split(","))


def many(count: int) -> Inventory:
    return Inventory(nics=tuple(Nic(id=f"if{i:04}", rdma=(RDMA,)) for i in reversed(range(count))))


def test_only_rdma_devices_are_offered() -> None:
    (one,) = publish_slices(
        Inventory(nics=(Nic(id="plain", netdevs=(NETDEV,)), Nic(id="fast", rdma=(RDMA,)))), node="n"
    )
    assert [device.name for device in one.spec.devices] == ["fast"]


def test_devices_are_sorted_and_split_where_one_slice_is_too_small() -> None:
    slices = publish_slices(many(300), node="n", generation=7)
    assert [len(one.spec.devices) for one in slices] == [128, 128, 44]
    names = [device.name for one in slices for device in one.spec.devices]
    assert names == sorted(names)
    assert {(one.spec.pool.generation, one.spec.pool.resource_slice_count) for one in slices} == {(7, 3)}
    assert len({one.metadata.name for one in slices}) == 3


def test_a_host_without_devices_publishes_an_empty_slice() -> None:
    (one,) = publish_slices(Inventory(), node="n")
    assert one.spec.devices == ()


def test_excluded_nics_are_not_offered() -> None:
    nics = (FULL, msgspec.structs.replace(FULL, id="uplink", excluded="carries the default route"))
    (one,) = publish_slices(Inventory(nics=nics), node="n")
    assert [device.name for device in one.spec.devices] == [FULL.id]


def test_attributes_stay_while_a_pod_holds_the_interface() -> None:
    before = Inventory(nics=(FULL,))
    away = msgspec.structs.replace(FULL, netdevs=())
    assert publish_slices(remember(before, Inventory(nics=(away,))), node="n") == publish_slices(before, node="n")


def test_attributes_stay_while_a_pod_holds_the_rdma_device() -> None:
    before = Inventory(nics=(FULL,))
    away = msgspec.structs.replace(FULL, netdevs=(), rdma=(), rail=None, paired_gpu="")
    assert publish_slices(remember(before, Inventory(nics=(away,))), node="n") == publish_slices(before, node="n")


def test_one_of_two_interfaces_in_a_pod_stays_in_the_picture() -> None:
    second = msgspec.structs.replace(NETDEV, name="rail1", ifindex=8)
    both = msgspec.structs.replace(FULL, netdevs=(msgspec.structs.replace(NETDEV, ifindex=7), second))
    before, now = Inventory(nics=(both,)), Inventory(nics=(msgspec.structs.replace(both, netdevs=(second,)),))
    assert publish_slices(remember(before, now), node="n") == publish_slices(before, node="n")


def test_a_renamed_interface_is_not_two() -> None:
    old = msgspec.structs.replace(FULL, netdevs=(msgspec.structs.replace(NETDEV, ifindex=7),))
    new = msgspec.structs.replace(FULL, netdevs=(msgspec.structs.replace(NETDEV, ifindex=7, name="ens1"),))
    assert remember(Inventory(nics=(old,)), Inventory(nics=(new,))).nics == (new,)


def test_long_node_names_stay_apart() -> None:
    names = [publish_slices(Inventory(), node="n" * 250 + end, driver="d" * 60)[0].metadata.name for end in ("a", "b")]
    assert len(set(names)) == 2
    assert all(len(name) <= 253 for name in names)


def test_an_unbound_driver_is_told_and_not_hidden() -> None:
    pci = msgspec.structs.replace(PCI, driver="")
    now = Inventory(nics=(msgspec.structs.replace(FULL, pci=pci, netdevs=(), rdma=(), excluded="no driver is bound"),))
    assert remember(Inventory(nics=(FULL,)), now) == now


def test_interfaces_without_pci_are_named_as_dranet_names_them() -> None:
    assert interface_device_name("dummy0") == "dummy0"
    assert interface_device_name("eth0.100") == "net-mv2gqmbogeyda"
    for odd in ("UPPER", "a_b", "x" * 15, "é"):
        assert is_dns_label(interface_device_name(odd))
