"""What discovery makes of hosts as they are."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fishplate.sim.variations import Variations
from fishplate.topology.inventory import Inventory, Nic

Host = Callable[..., Path]
Scan = Callable[[Path], Inventory]
H100 = "Standard_ND96isr_H100_v5"


def nic(inventory: Inventory, address: str) -> Nic:
    found = inventory.nic(address)
    assert found is not None
    return found


def test_a_textbook_host_has_no_problems(make_host: Host, scan_host: Scan) -> None:
    inventory = scan_host(make_host())
    assert inventory.problems == ()
    assert inventory.host.cloud == "azure"
    assert inventory.host.rdma_netns == "shared"
    assert [node.cpus for node in inventory.numa_nodes] == ["0-63", "64-127"]


def test_everything_about_an_infiniband_port_is_read(make_host: Host, scan_host: Scan) -> None:
    found = nic(scan_host(make_host()), "0101:00:00.0")
    (device,) = found.rdma
    (port,) = device.ports
    assert (device.name, device.node_guid, device.firmware) == ("mlx5_0", "0015:5dff:fe00:0001", "28.44.1036")
    assert (port.link_layer, port.state, port.phys_state, port.rate_gbps) == ("InfiniBand", "ACTIVE", "LinkUp", 800.0)
    assert (port.lid, port.sm_lid, port.guid) == (1, 1, "0015:5dff:fe00:0001")
    assert port.pkeys == ("0x8001", "0x7fff")
    assert [gid.index for gid in port.gids] == [0]
    nodes = {node.kind: (node.path, node.major, node.minor, node.mode) for node in device.char_devices}
    assert nodes == {
        "uverbs": ("/dev/infiniband/uverbs0", 231, 192, 0o666),
        "umad": ("/dev/infiniband/umad0", 231, 0, 0o600),
        "issm": ("/dev/infiniband/issm0", 231, 64, 0o600),
    }


def test_the_connection_managers_node_is_found(make_host: Host, scan_host: Scan) -> None:
    node = scan_host(make_host()).rdma_cm
    assert node is not None
    assert (node.path, node.major, node.minor, node.mode) == ("/dev/infiniband/rdma_cm", 10, 58, 0o666)


def test_nodes_out_of_sight_have_the_mode_that_the_kernel_gives_them(make_host: Host, scan_host: Scan) -> None:
    """What a container sees after the modules were reloaded: the old directory, empty, and a sysfs of today."""
    root = make_host()
    shutil.rmtree(root / "dev/infiniband")
    verbs, management = (root / "sys/class/infiniband_verbs/uverbs0", root / "sys/class/infiniband_mad/umad0")
    (verbs / "uevent").write_text("MAJOR=231\nMINOR=192\nDEVNAME=infiniband/uverbs0\nDEVMODE=0666\n")
    (management / "uevent").write_text("MAJOR=231\nMINOR=0\nDEVNAME=infiniband/umad0\n")
    (device,) = nic(scan_host(root), "0101:00:00.0").rdma
    assert {node.kind: node.mode for node in device.char_devices} == {"uverbs": 0o666, "umad": 0o600, "issm": None}


def test_the_root_is_found_through_vmbus(make_host: Host, scan_host: Scan) -> None:
    inventory = scan_host(make_host(H100))
    pci = nic(inventory, "0101:00:00.0").pci
    assert pci is not None
    assert (pci.root, pci.bridges) == ("pci0101:00", ())
    assert len(pci.vmbus) == 36
    assert inventory.gpus[0].pci.root == "pci0001:00"


def test_bridges_are_listed_from_the_root_down(make_host: Host, scan_host: Scan) -> None:
    inventory = scan_host(make_host(variations=Variations(extra_bridges=2)))
    pci = nic(inventory, "0101:00:00.0").pci
    assert pci is not None
    assert pci.bridges == ("0101:e0:00.0", "0101:e1:00.0")
    assert pci.root == "pci0101:00"


def test_unknown_numa_stays_unknown_with_two_nodes(make_host: Host, scan_host: Scan) -> None:
    inventory = scan_host(make_host(variations=Variations(numa_unknown=True)))
    assert {one.numa_node for one in inventory.rdma_nics} == {None}
    assert {one.numa_node for one in inventory.gpus} == {None}


def test_a_single_numa_node_leaves_no_choice(make_host: Host, scan_host: Scan) -> None:
    inventory = scan_host(make_host(variations=Variations(single_numa=True)))
    facts = {(one.pci.numa_node, one.pci.numa_source) for one in inventory.rdma_nics if one.pci}
    assert facts == {(0, "single-node")}


def test_numa_is_taken_from_the_bridge_above(make_host: Host, scan_host: Scan) -> None:
    root = make_host(variations=Variations(extra_bridges=1))
    device = root / "sys/bus/pci/devices/0103:00:00.0"
    (device / "numa_node").write_text("-1\n")
    pci = nic(scan_host(root), "0103:00:00.0").pci
    assert pci is not None
    assert (pci.numa_node, pci.numa_source) == (1, "bridge")


def test_numa_is_taken_from_the_local_cpus(make_host: Host, scan_host: Scan) -> None:
    root = make_host()
    device = root / "sys/bus/pci/devices/0103:00:00.0"
    (device / "numa_node").write_text("-1\n")
    (device / "local_cpulist").write_text("64-127\n")
    pci = nic(scan_host(root), "0103:00:00.0").pci
    assert pci is not None
    assert (pci.numa_node, pci.numa_source) == (1, "cpus")


def test_all_cpus_being_local_tells_nothing(make_host: Host, scan_host: Scan) -> None:
    root = make_host()
    device = root / "sys/bus/pci/devices/0103:00:00.0"
    (device / "numa_node").write_text("-1\n")
    (device / "local_cpulist").write_text("0-127\n")
    assert nic(scan_host(root), "0103:00:00.0").numa_node is None


def test_accelerated_networking_is_excluded_and_moves_no_rail(make_host: Host, scan_host: Scan) -> None:
    inventory = scan_host(make_host(variations=Variations(accelerated_networking=True)))
    ethernet = nic(inventory, "9a3f:00:02.0")
    assert ethernet.rdma[0].name == "mlx5_0"
    assert "part of eth0" in ethernet.excluded
    offered = [(one.rdma[0].name, one.rail) for one in inventory.rdma_nics if not one.excluded]
    assert offered == [("mlx5_1", 0), ("mlx5_2", 1), ("mlx5_3", 2), ("mlx5_4", 3)]


def test_a_vf_below_a_second_synthetic_nic_is_excluded_too(make_host: Host, scan_host: Scan) -> None:
    """Its master carries no default route, and it is still not free."""
    root = make_host(variations=Variations(accelerated_networking=True))
    (root / "proc/net/route").write_text("Iface\n")
    assert "belongs to eth0" in nic(scan_host(root), "9a3f:00:02.0").excluded


def test_the_device_below_a_vlan_with_the_default_route_is_excluded(make_host: Host, scan_host: Scan) -> None:
    root = make_host(variations=Variations(roce=True))
    vlan = root / "sys/devices/virtual/net/rail0.100"
    vlan.mkdir(parents=True)
    (vlan / "uevent").write_text("DEVTYPE=vlan\n")
    (vlan / "lower_rail0").symlink_to("../../../../class/net/rail0")
    (root / "sys/class/net/rail0.100").symlink_to("../../devices/virtual/net/rail0.100")
    route = root / "proc/net/route"
    route.write_text(route.read_text().replace("eth0", "rail0.100"))
    inventory = scan_host(root)
    assert "part of rail0.100" in nic(inventory, "0101:00:00.0").excluded
    assert nic(inventory, "0102:00:00.0").excluded == ""


def test_members_of_a_bond_are_excluded(make_host: Host, scan_host: Scan) -> None:
    root = make_host(variations=Variations(roce=True))
    bond = root / "sys/devices/virtual/net/bond0"
    bond.mkdir(parents=True)
    (bond / "uevent").write_text("DEVTYPE=bond\n")
    (root / "sys/class/net/bond0").symlink_to("../../devices/virtual/net/bond0")
    rail = (root / "sys/class/net/rail1").resolve()
    (rail / "master").symlink_to(os.path.relpath(bond, rail))
    inventory = scan_host(root)
    assert nic(inventory, "0102:00:00.0").excluded == "rail1 belongs to bond0"
    assert "stays with the node" in next(one.excluded for one in inventory.nics if one.id == "bond0")


def test_an_ipv6_default_route_makes_an_uplink_where_ipv4_has_none(make_host: Host, scan_host: Scan) -> None:
    root = make_host(variations=Variations(roce=True))
    zeros = "0" * 32
    route = f"{zeros} 00 {zeros} 00 fe80{'0' * 27}1 00000400 00000001 00000000 00000003 rail2"
    reject = f"{zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 00200200 rail3"
    (root / "proc/net/ipv6_route").write_text(f"{route}\n{reject}\n")
    assert nic(scan_host(root), "0103:00:00.0").excluded == ""  # a table of policy routing, as far as files tell
    (root / "proc/net/route").write_text("Iface\n")
    inventory = scan_host(root)
    assert "default route" in nic(inventory, "0103:00:00.0").excluded
    assert nic(inventory, "0104:00:00.0").excluded == ""


def test_only_the_best_default_route_makes_an_uplink(make_host: Host, scan_host: Scan) -> None:
    root = make_host(variations=Variations(roce=True))
    route = root / "proc/net/route"
    route.write_text(route.read_text() + "rail0\t00000000\t0100320A\t0003\t0\t0\t500\t00000000\t0\t0\t0\n")
    assert nic(scan_host(root), "0101:00:00.0").excluded == ""


def test_ipoib_interfaces_are_seen_and_left_alone(make_host: Host, scan_host: Scan) -> None:
    found = nic(scan_host(make_host(variations=Variations(ofed=True))), "0101:00:00.0")
    (ipoib,) = found.netdevs
    assert (ipoib.name, ipoib.kind, ipoib.encapsulation, len(ipoib.mac)) == ("ib0", "ipoib", "infiniband", 59)
    assert found.interface is None
    assert found.rdma[0].name == "mlx5_0"


def test_roce_interfaces_and_gids_are_joined_by_pci_address(make_host: Host, scan_host: Scan) -> None:
    found = nic(scan_host(make_host(variations=Variations(roce=True))), "0102:00:00.0")
    assert found.interface is not None
    assert found.interface.name == "rail1"
    assert found.rdma[0].netdevs == ("rail1",)
    assert [(gid.index, gid.type) for gid in found.rdma[0].ports[0].gids] == [(0, "IB/RoCE v1"), (3, "RoCE v2")]
    assert found.rdma[0].ports[0].guid == ""


def test_a_netdev_in_a_pod_leaves_the_rdma_device_in_sight(make_host: Host, scan_host: Scan) -> None:
    inventory = scan_host(make_host(variations=Variations(roce=True, netdevs_away=(1,))))
    away = nic(inventory, "0102:00:00.0")
    assert (away.netdevs, away.rdma[0].name, away.excluded) == ((), "mlx5_1", "")


def test_a_port_that_is_down_is_still_offered_and_says_so(make_host: Host, scan_host: Scan) -> None:
    found = nic(scan_host(make_host(variations=Variations(links_down=(2,)))), "0103:00:00.0")
    assert (found.rdma[0].ports[0].state, found.rail, found.excluded) == ("DOWN", 2, "")


@pytest.mark.parametrize(("driver", "reason"), [("vfio-pci", "bound to vfio-pci"), ("", "no driver is bound")])
def test_functions_the_host_does_not_run_are_excluded(
    make_host: Host, scan_host: Scan, driver: str, reason: str
) -> None:
    root = make_host()
    device = (root / "sys/bus/pci/devices/0101:00:00.0").resolve()
    (device / "driver").unlink()
    if driver:
        (root / "sys/bus/pci/drivers" / driver).mkdir()
        (device / "driver").symlink_to(os.path.relpath(root / "sys/bus/pci/drivers" / driver, device))
    assert nic(scan_host(root), "0101:00:00.0").excluded == reason


def test_soft_roce_stands_on_the_function_of_its_interface(make_host: Host, scan_host: Scan) -> None:
    root = make_host("Standard_HB120rs_v3", variations=Variations(roce=True))
    ib = root / "sys/class/infiniband"
    (ib / "mlx5_0").unlink()
    soft = root / "sys/devices/virtual/infiniband/rxe0"
    (soft / "ports/1").mkdir(parents=True)
    (soft / "parent").write_text("rail0\n")
    (soft / "ports/1/link_layer").write_text("Ethernet\n")
    (ib / "rxe0").symlink_to("../../devices/virtual/infiniband/rxe0")
    found = nic(scan_host(root), "0101:00:00.0")
    assert [(device.name, device.soft) for device in found.rdma] == [("rxe0", True)]


def test_an_rdma_device_of_an_odd_pci_class_is_found(make_host: Host, scan_host: Scan) -> None:
    root = make_host()
    (root / "sys/bus/pci/devices/0102:00:00.0/class").write_text("0x00ff00\n")
    assert nic(scan_host(root), "0102:00:00.0").rdma[0].name == "mlx5_1"


def test_several_ports_have_several_management_nodes(make_host: Host, scan_host: Scan) -> None:
    root = make_host("Standard_HB120rs_v3")
    device = (root / "sys/bus/pci/devices/0101:00:00.0").resolve()
    port = device / "infiniband/mlx5_0/ports/2"
    port.mkdir()
    (port / "link_layer").write_text("Ethernet\n")
    umad = device / "infiniband_mad/umad1"
    umad.mkdir()
    for name, text in (("dev", "231:1"), ("ibdev", "mlx5_0"), ("port", "2")):
        (umad / name).write_text(f"{text}\n")
    (root / "sys/class/infiniband_mad/umad1").symlink_to(os.path.relpath(umad, root / "sys/class/infiniband_mad"))
    (found,) = nic(scan_host(root), "0101:00:00.0").rdma
    assert [(one.number, one.link_layer) for one in found.ports] == [(1, "InfiniBand"), (2, "Ethernet")]
    assert [(node.path, node.port) for node in found.char_devices if node.kind == "umad"] == [
        ("/dev/infiniband/umad0", 1),
        ("/dev/infiniband/umad1", 2),
    ]


def test_physical_and_virtual_functions_know_each_other(make_host: Host, scan_host: Scan) -> None:
    root = make_host()
    pf, vf = ((root / f"sys/bus/pci/devices/010{n}:00:00.0").resolve() for n in (1, 2))
    (pf / "virtfn0").symlink_to(os.path.relpath(vf, pf))
    (vf / "physfn").symlink_to(os.path.relpath(pf, vf))
    (pf / "sriov_totalvfs").write_text("16\n")
    (pf / "sriov_numvfs").write_text("1\n")
    inventory = scan_host(root)
    first, second = (nic(inventory, f"010{n}:00:00.0").pci for n in (1, 2))
    assert first is not None
    assert second is not None
    assert (first.virtfns, first.sriov_totalvfs, first.sriov_numvfs) == (("0102:00:00.0",), 16, 1)
    assert second.physfn == "0101:00:00.0"


def test_a_function_that_vanishes_is_reported(make_host: Host, scan_host: Scan) -> None:
    root = make_host()
    (root / "sys/bus/pci/devices/0102:00:00.0").unlink()
    (root / "sys/bus/pci/devices/0102:00:00.0").symlink_to("../../../devices/gone")
    inventory = scan_host(root)
    assert [one.pci.address for one in inventory.rdma_nics if one.pci] == [
        "0101:00:00.0",
        "0103:00:00.0",
        "0104:00:00.0",
    ]
    assert inventory.problems


def test_memory_only_numa_nodes_do_not_hide_the_machine(make_host: Host, scan_host: Scan) -> None:
    inventory = scan_host(make_host(variations=Variations(gpu_memory_nodes=4)))
    assert len(inventory.numa_nodes) == 6
    assert "Standard_ND128isr_GB300_v6" in inventory.host.sizes


@pytest.mark.parametrize(
    "size", [H100, "Standard_ND96isr_MI300X_v5", "Standard_ND96asr_v4", "Standard_HB368rs_v5", "Standard_HB176-48rs_v4"]
)
def test_sizes_are_recognised_by_what_they_hold(make_host: Host, scan_host: Scan, size: str) -> None:
    assert size in scan_host(make_host(size)).host.sizes


def test_constrained_sizes_are_told_apart_by_their_cpus(make_host: Host, scan_host: Scan) -> None:
    assert scan_host(make_host("Standard_HB368-96rs_v5")).host.sizes == ("Standard_HB368-96rs_v5",)


def test_hosts_of_one_size_differ_in_what_differs_in_reality(make_host: Host, scan_host: Scan) -> None:
    first, second = (scan_host(make_host(number=number)) for number in (0, 1))
    assert first.host.name != second.host.name
    guids = [{one.rdma[0].node_guid for one in inventory.rdma_nics} for inventory in (first, second)]
    assert not guids[0] & guids[1]
    assert {gpu.uuid for gpu in first.gpus}.isdisjoint({gpu.uuid for gpu in second.gpus})
