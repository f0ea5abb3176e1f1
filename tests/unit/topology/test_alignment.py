import pytest

from fishplate.topology.alignment import align, judge_gpudirect
from fishplate.topology.inventory import Gpu, Inventory, Nic, PciFunction, RdmaDevice
from fishplate.topology.pairs import pair_nics
from fishplate.topology.relations import Pcie

SWITCH = ("0000:10:00.0", "0000:11:00.0")


def gpu(address: str, bridges: tuple[str, ...] = (), numa: int | None = 0) -> Gpu:
    return Gpu(pci=PciFunction(address=address, root="pci0000:10", bridges=bridges, numa_node=numa), vendor="nvidia")


def nic(address: str, bridges: tuple[str, ...] = (), numa: int | None = 0, root: str = "pci0000:10") -> Nic:
    pci = PciFunction(address=address, root=root, bridges=bridges, numa_node=numa)
    return Nic(id=address, pci=pci, rdma=(RdmaDevice(name="mlx5_0"),))


@pytest.mark.parametrize(
    ("relation", "coherent", "by_default", "level"),
    [
        (Pcie.PIX, False, "yes", "PIX"),
        (Pcie.PXB, False, "yes", "PXB"),
        (Pcie.PHB, False, "no", "PHB"),
        (Pcie.NODE, False, "no", "PHB"),
        (Pcie.NODE, True, "cannot-tell", "PHB"),
        (Pcie.SYS, False, "no", "SYS"),
        (Pcie.SYS, True, "no", "SYS"),
    ],
)
def test_gpudirect_follows_nccls_rule_and_not_the_word(
    relation: Pcie, coherent: bool, by_default: str, level: str
) -> None:
    verdict = judge_gpudirect(relation, coherent=coherent)
    assert verdict is not None
    assert (verdict.by_default, verdict.level) == (by_default, level)


def test_gpudirect_of_an_unknown_place_is_not_judged() -> None:
    assert judge_gpudirect(Pcie.UNKNOWN, coherent=False) is None


def test_only_the_nearest_nics_line_up() -> None:
    near, far = nic("0000:13:00.0", (*SWITCH, "0000:12:00.0")), nic("0000:21:00.0", ("0000:10:01.0",))
    inventory = Inventory(gpus=(gpu("0000:14:00.0", (*SWITCH, "0000:12:01.0")),), nics=(near, far))
    assert align(inventory, inventory.gpus[0]) == (Pcie.PIX, (near,))


def test_across_numa_nodes_nothing_lines_up() -> None:
    inventory = Inventory(gpus=(gpu("0001:00:00.0"),), nics=(nic("0105:00:00.0", numa=1, root="pci0105:00"),))
    assert align(inventory, inventory.gpus[0]) == (Pcie.SYS, ())


def test_a_shared_switch_makes_a_pair() -> None:
    gpus = (gpu("0000:14:00.0", (*SWITCH, "0000:12:01.0")), gpu("0000:31:00.0", ("0000:10:02.0",)))
    (paired,) = pair_nics((nic("0000:13:00.0", (*SWITCH, "0000:12:00.0")),), gpus, {})
    assert paired.paired_gpu == "0000:14:00.0"


def test_two_equally_near_gpus_make_no_pair() -> None:
    gpus = tuple(gpu(f"0000:{bus}:00.0", (*SWITCH, f"0000:12:0{i}.0")) for i, bus in enumerate(("14", "15"), start=1))
    (unpaired,) = pair_nics((nic("0000:13:00.0", (*SWITCH, "0000:12:00.0")),), gpus, {})
    assert unpaired.paired_gpu == ""


def test_a_published_pair_wins_and_needs_its_gpu_to_be_there() -> None:
    gpus = (gpu("0001:00:00.0"),)
    nics = (nic("0101:00:00.0", root="pci0101:00"), nic("0102:00:00.0", root="pci0102:00"))
    known = {"0101:00:00.0": "0001:00:00.0", "0102:00:00.0": "0002:00:00.0"}
    assert [one.paired_gpu for one in pair_nics(nics, gpus, known)] == ["0001:00:00.0", ""]
