import pytest

from fishplate.topology.inventory import Gpu, GpuLink, Inventory, PciFunction
from fishplate.topology.relations import Pcie, relate_all, relate_functions, relate_gpus


def at(
    address: str, root: str | None = "pci0000:10", bridges: tuple[str, ...] = (), numa: int | None = 0
) -> PciFunction:
    return PciFunction(address=address, root=root, bridges=bridges, numa_node=numa, numa_source="kernel")


PORT, UP, DOWN_A, DOWN_B = "0000:10:00.0", "0000:11:00.0", "0000:12:00.0", "0000:12:01.0"


@pytest.mark.parametrize(
    ("a", "b", "word"),
    [
        (at("0000:13:00.0"), at("0000:13:00.0"), Pcie.SELF),
        # two functions of one card below a root port
        (at("0000:11:00.0", bridges=(PORT,)), at("0000:11:00.1", bridges=(PORT,)), Pcie.PIX),
        # one switch: an upstream port and a downstream port each
        (at("0000:13:00.0", bridges=(PORT, UP, DOWN_A)), at("0000:14:00.0", bridges=(PORT, UP, DOWN_B)), Pcie.PIX),
        # a second switch below the first
        (
            at("0000:13:00.0", bridges=(PORT, UP, DOWN_A)),
            at("0000:18:00.0", bridges=(PORT, UP, DOWN_B, "0000:15:00.0", "0000:16:00.0")),
            Pcie.PXB,
        ),
        # two root ports of one host bridge
        (at("0000:11:00.0", bridges=(PORT,)), at("0000:21:00.0", bridges=("0000:10:01.0",)), Pcie.PHB),
        # both directly on the root bus
        (at("0000:10:02.0"), at("0000:10:03.0"), Pcie.PHB),
        # Azure: every device in a domain of its own
        (at("0001:00:00.0", root="pci0001:00"), at("0101:00:00.0", root="pci0101:00"), Pcie.NODE),
        (at("0001:00:00.0", root="pci0001:00"), at("0105:00:00.0", root="pci0105:00", numa=1), Pcie.SYS),
        # a NUMA node that nobody knows is never called near or far
        (at("0001:00:00.0", root="pci0001:00", numa=None), at("0105:00:00.0", root="pci0105:00"), Pcie.UNKNOWN),
        # but a shared root needs no NUMA node
        (at("0000:10:02.0", numa=None), at("0000:10:03.0", numa=None), Pcie.PHB),
        # two roots that are both unknown are not the same root
        (at("0000:10:02.0", root=None), at("0000:10:03.0", root=None, numa=1), Pcie.SYS),
    ],
)
def test_words_follow_from_the_pcie_path_and_numa(a: PciFunction, b: PciFunction, word: Pcie) -> None:
    assert relate_functions(a, b) is word
    assert relate_functions(b, a) is word


def two_gpus(*links: GpuLink) -> Inventory:
    gpus = tuple(
        Gpu(pci=at(address, root=f"pci{address[:7]}", numa=numa), vendor="nvidia")
        for address, numa in (("0001:00:00.0", 0), ("0002:00:00.0", 1))
    )
    return Inventory(gpus=gpus, gpu_links=links)


def test_gpus_of_unknown_link_are_a_question_mark_not_sys() -> None:
    assert relate_gpus(two_gpus(), "0001:00:00.0", "0002:00:00.0") == "?"


def test_gpu_link_is_found_from_either_end() -> None:
    inventory = two_gpus(GpuLink(a="0002:00:00.0", b="0001:00:00.0", word="NV18", source="catalogue"))
    assert relate_gpus(inventory, "0001:00:00.0", "0002:00:00.0") == "NV18"
    assert [relation.relation for relation in relate_all(inventory)] == ["NV18"]
