"""Hosts as they are met in the field, laid out as the kernel lays them out. Each once gave a wrong answer."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fishplate.hardware.catalog import Catalog, load_catalog
from fishplate.node.scan import scan
from fishplate.node.tree import Tree
from fishplate.sim.files import FileTree
from fishplate.sim.host import write_host
from fishplate.topology.inventory import Inventory, Nic
from fishplate.topology.relations import relate_gpus
from fishplate.topology.slices import publish_slices

Host = Callable[..., Path]
Scan = Callable[[Path], Inventory]


class Field:
    """A bare-metal host put together by hand."""

    def __init__(self, root: Path, *, numa_nodes: int = 2) -> None:
        self.root, self.tree, self.index = root, FileTree(root), 2
        for node in range(numa_nodes):
            cpus = {"cpulist": f"{node * 8}-{node * 8 + 7}", "distance": "10 20"}
            self.tree.files(f"/sys/devices/system/node/node{node}", dict(cpus))
        self.tree.file("/proc/sys/kernel/arch", "x86_64")
        self.tree.directory("/sys/class/net")
        self.tree.directory("/sys/bus/pci/devices")

    def pci(self, path: str, *, driver: str = "mlx5_core", **files: str | int) -> str:
        full, address = f"/sys/devices/{path}", path.rpartition("/")[2]
        ids: dict[str, str | int] = {"class": "0x020000", "vendor": "0x15b3", "device": "0x101d", "numa_node": 0}
        self.tree.files(full, ids | files)
        self.tree.link(f"/sys/bus/pci/devices/{address}", full)
        if driver:
            self.tree.directory(f"/sys/bus/pci/drivers/{driver}")
            self.tree.link(f"{full}/driver", f"/sys/bus/pci/drivers/{driver}")
        return full

    def net(self, full: str, name: str, **files: str | int) -> None:
        self.index += 1
        facts: dict[str, str | int] = {"type": 1, "ifindex": self.index, "iflink": self.index, "operstate": "up"}
        self.tree.files(f"{full}/net/{name}", facts | files)
        self.tree.link(f"/sys/class/net/{name}", f"{full}/net/{name}")

    def rdma(self, full: str, name: str, *, layer: str = "Ethernet", parent: str = "", link: str | None = None) -> None:
        path = f"{full}/infiniband/{name}"
        self.tree.files(f"{path}/ports/1", {"link_layer": layer, "state": "4: ACTIVE"})
        if parent:
            self.tree.file(f"{path}/parent", parent)
        if link != "":
            self.tree.link(f"{path}/device", link or full)
        self.tree.link(f"/sys/class/infiniband/{name}", path)

    def look(self) -> Inventory:
        return scan(Tree(self.root), catalog=load_catalog())


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field(tmp_path)


def nic(inventory: Inventory, id_or_address: str) -> Nic:
    found = inventory.nic(id_or_address)
    assert found is not None, [one.id for one in inventory.nics]
    return found


def rules(inventory: Inventory) -> set[str]:
    return {problem.id.removeprefix("discovery.") for problem in inventory.problems}


def test_a_subfunction_is_a_device_of_its_own_and_not_offered(field: Field) -> None:
    pf = field.pci("pci0000:80/0000:80:01.0/0000:81:00.0")
    field.net(pf, "eth4")
    field.rdma(pf, "mlx5_0")
    field.net(f"{pf}/mlx5_core.sf.2", "eth5")
    field.rdma(f"{pf}/mlx5_core.sf.2", "mlx5_2")
    inventory = field.look()
    physical, sub = nic(inventory, "pci-0000-81-00-0"), nic(inventory, "pci-0000-81-00-0-sf-2")
    assert ([one.name for one in physical.rdma], [one.name for one in physical.netdevs]) == (["mlx5_0"], ["eth4"])
    assert ([one.name for one in sub.rdma], [one.name for one in sub.netdevs]) == (["mlx5_2"], ["eth5"])
    assert (physical.excluded, bool(sub.excluded)) == ("", True)


def test_a_device_below_the_function_still_belongs_to_it(field: Field) -> None:
    pf = field.pci("pci0000:80/0000:81:00.0", driver="ice", vendor="0x8086", device="0x1592")
    field.tree.directory(f"{pf}/ice.roce.0")
    field.rdma(pf, "irdma0", link=f"{pf}/ice.roce.0")
    assert nic(field.look(), "0000:81:00.0").rdma[0].name == "irdma0"


def test_an_rdma_device_that_stands_nowhere_is_reported(field: Field) -> None:
    field.rdma("/sys/devices/virtual", "siw0", link="")
    inventory = field.look()
    assert inventory.rdma_nics == ()
    assert "orphan-rdma" in rules(inventory)


def test_soft_roce_below_a_virtio_device_is_soft_and_second(field: Field) -> None:
    pf = field.pci("pci0000:80/0000:81:00.0")
    field.net(f"{pf}/virtio0", "eth1")
    field.rdma(pf, "mlx5_0")
    field.rdma(f"{pf}/virtio0", "a_rxe0", parent="eth1")
    found = nic(field.look(), "0000:81:00.0")
    assert [(one.name, one.soft) for one in found.rdma] == [("mlx5_0", False), ("a_rxe0", True)]
    (slice_,) = publish_slices(field.look(), node="n")
    assert slice_.spec.devices[0].attributes["dra.net/rdmaDevice"].string == "mlx5_0"


def test_a_representor_is_never_the_interface(field: Field) -> None:
    pf = field.pci("pci0000:80/0000:81:00.0")
    field.net(pf, "eth4", phys_port_name="p0")
    field.net(pf, "eth3", phys_port_name="pf0vf0")
    found = nic(field.look(), "0000:81:00.0")
    assert [one.name for one in found.netdevs] == ["eth3", "eth4"]
    assert found.interface is not None
    assert found.interface.name == "eth4"


def four_rails(field: Field, *, broken: str = "") -> list[int | None]:
    for bus in ("0c", "2a", "5d", "9a"):
        unbound = bus == broken
        pf = field.pci(f"pci0000:{bus}/0000:{bus}:00.0", driver="" if unbound else "mlx5_core")
        if not unbound:
            field.rdma(pf, f"mlx5_{bus}")
    return [one.rail for one in field.look().nics]


def test_rails_stay_when_a_neighbour_loses_its_driver(field: Field) -> None:
    assert four_rails(field, broken="2a") == [0, None, 2, 3]


def test_the_nodes_own_mlx5_nic_takes_no_rail(field: Field) -> None:
    uplink = field.pci("pci0000:00/0000:01:00.0")
    field.net(uplink, "eth0")
    field.rdma(uplink, "mlx5_0")
    field.tree.file("/proc/net/route", "Iface\neth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0")
    assert four_rails(field) == [None, 0, 1, 2, 3]


def test_a_storage_bond_of_ipoib_leaves_the_nic_free(field: Field) -> None:
    pf = field.pci("pci0000:80/0000:81:00.0", **{"class": "0x020700"})
    field.net(pf, "ib0", type=32)
    field.rdma(pf, "mlx5_0", layer="InfiniBand")
    field.tree.files("/sys/devices/virtual/net/bond0", {"uevent": "DEVTYPE=bond"})
    field.tree.link("/sys/class/net/bond0", "/sys/devices/virtual/net/bond0")
    field.tree.link(f"{pf}/net/ib0/master", "/sys/devices/virtual/net/bond0")
    assert nic(field.look(), "0000:81:00.0").excluded == ""


def test_virtual_functions_of_gpus_are_no_gpus(field: Field) -> None:
    gpu: dict[str, str | int] = {"class": "0x030200", "vendor": "0x10de", "device": "0x2330"}
    pf = field.pci("pci0000:10/0000:11:00.0", driver="nvidia", **gpu)
    vf = field.pci("pci0000:10/0000:11:00.4", driver="nvidia", **gpu)
    field.tree.link(f"{vf}/physfn", pf)
    assert [one.pci.address for one in field.look().gpus] == ["0000:11:00.0"]


def test_the_uuid_of_a_gpu_that_is_not_initialised_is_unknown(field: Field) -> None:
    gpu: dict[str, str | int] = {"class": "0x030200", "vendor": "0x10de", "device": "0x2330"}
    field.pci("pci0000:10/0000:11:00.0", driver="nvidia", **gpu)
    information = "Model: \t H100\nGPU UUID: \t GPU-????????-????-????-????-????????????"
    field.tree.file("/proc/driver/nvidia/gpus/0000:11:00.0/information", information)
    assert (field.look().gpus[0].uuid, field.look().gpus[0].model) == ("", "H100")


def test_an_arm_host_is_not_a_grace_board(field: Field) -> None:
    field.tree.file("/proc/sys/kernel/arch", "aarch64")
    gpu: dict[str, str | int] = {"class": "0x030200", "vendor": "0x10de", "device": "0x2236"}
    field.pci("pci0000:10/0000:11:00.0", driver="nvidia", **gpu)
    assert not field.look().gpus[0].coherent


def test_a_grace_board_is_known_by_its_gpu(make_host: Host, scan_host: Scan) -> None:
    assert all(gpu.coherent for gpu in scan_host(make_host()).gpus)


def test_a_link_layer_the_kernel_calls_unknown_is_no_problem(field: Field) -> None:
    field.rdma(field.pci("pci0000:80/0000:81:00.0", driver="efa", vendor="0x1d0f"), "efa_0", layer="Unknown")
    inventory = field.look()
    assert nic(inventory, "0000:81:00.0").link_layer == "unknown"
    assert inventory.problems == ()


def test_a_kernel_without_numa_has_one_node(tmp_path: Path) -> None:
    field = Field(tmp_path, numa_nodes=0)
    field.tree.directory("/sys/devices/system/cpu")
    field.pci("pci0000:80/0000:81:00.0", numa_node=-1)
    assert nic(field.look(), "0000:81:00.0").numa_node == 0


def test_a_nic_of_unreadable_class_keeps_its_name(field: Field) -> None:
    field.net(field.pci("pci0000:80/0000:81:00.0", **{"class": "garbage"}), "ens2")
    inventory = field.look()
    assert [one.id for one in inventory.nics] == ["pci-0000-81-00-0"]
    assert "garbled" in rules(inventory)


def test_a_usb_nic_is_not_offered(field: Field) -> None:
    usb = field.pci("pci0000:00/0000:00:14.0", driver="xhci_hcd", **{"class": "0x0c0330", "vendor": "0x8086"})
    field.net(f"{usb}/usb1/1-1/1-1:1.0", "enx00e04c")
    assert "no network function" in nic(field.look(), "enx00e04c").excluded


def test_two_interfaces_never_share_a_device_name(field: Field) -> None:
    for name in ("A", "net-ie"):
        field.tree.files(f"/sys/devices/virtual/net/{name}", {"ifindex": 9, "iflink": 9})
        field.tree.link(f"/sys/class/net/{name}", f"/sys/devices/virtual/net/{name}")
    ids = [one.id for one in field.look().nics]
    assert len(set(ids)) == 2


def test_problems_of_the_gpu_topology_are_told(field: Field) -> None:
    field.tree.directory("/sys/class/kfd/kfd/topology/nodes")
    (field.root / "sys/class/kfd/kfd/topology/nodes/0").symlink_to("0")
    assert "link-loop" in rules(field.look())


def test_a_thousand_problems_of_a_kind_are_not_all_kept(field: Field) -> None:
    for number in range(300):
        (field.root / f"sys/class/net/gone{number}").symlink_to("../nowhere")
    assert len(field.look().problems) == 100


# -- machines of the catalogue -----------------------------------------------------------------------------------


def laid_out() -> list[str]:
    return [size.name for size in load_catalog().rdma_sizes() if size.layout]


@pytest.mark.parametrize("size", laid_out())
def test_every_size_recognises_itself(size: str, make_host: Host, scan_host: Scan) -> None:
    assert size in scan_host(make_host(size)).host.sizes


def test_a_lost_gpu_takes_nothing_from_the_others(make_host: Host, scan_host: Scan) -> None:
    root = make_host("Standard_ND96isr_H100_v5")
    before = scan_host(root)
    (root / "sys/bus/pci/devices/0003:00:00.0").unlink()
    after = scan_host(root)
    assert after.host.sizes == before.host.sizes
    assert relate_gpus(after, "0001:00:00.0", "0002:00:00.0") == "NV18"
    pairs = {one.id: one.paired_gpu for one in after.rdma_nics}
    assert pairs == {one.id: one.paired_gpu for one in before.rdma_nics} | {"pci-0103-00-00-0": ""}


def test_other_cards_in_a_known_chassis_are_another_machine(tmp_path: Path) -> None:
    server = Path(__file__).parents[3] / "docs" / "catalogue.md"
    file = tmp_path / "servers.yaml"
    file.write_text(server.read_text().split("```yaml\n")[1].split("```")[0])
    catalog = load_catalog([file])
    size = next(size for size in catalog.sizes if size.provider == "bare-metal")
    write_host(tmp_path / "host", size)
    for vendor in (tmp_path / "host/sys/devices").rglob("vendor"):
        if vendor.read_text() == "0x10de\n":
            vendor.with_name("device").write_text("0x26b9\n")  # an L40S where an H100 should be
    assert scan(Tree(tmp_path / "host"), catalog=catalog).host.sizes == ()


def test_the_documented_server_has_its_pairs_on_one_switch(tmp_path: Path, catalog: Catalog) -> None:
    text = (Path(__file__).parents[3] / "docs" / "catalogue.md").read_text()
    file = tmp_path / "servers.yaml"
    file.write_text(text.split("```yaml\n")[1].split("```")[0])
    extended = load_catalog([file])
    size = next(size for size in extended.sizes if size.provider == "bare-metal")
    write_host(tmp_path / "host", size)
    inventory = scan(Tree(tmp_path / "host"), catalog=extended)
    assert inventory.host.sizes == (size.name,)
    assert inventory.problems == ()
    assert size.layout is not None
    wanted = {place.address: place.pair for place in size.layout.nics}
    assert {one.pci.address: one.paired_gpu for one in inventory.rdma_nics if one.pci} == wanted
