import re
from collections.abc import Iterator
from importlib import resources

import msgspec
import pytest

from fishplate.errors import UnknownNameError
from fishplate.hardware.catalog import Catalog, Size, expand_entry, load_catalog
from fishplate.hardware.consistency import check_entry
from fishplate.hardware.document import parse_document
from fishplate.hardware.pci_names import pci_names
from fishplate.hardware.size import Entry
from fishplate.hardware.size_name import parse_size_name

CATALOG = load_catalog()
SIZES = CATALOG.sizes
each_size = pytest.mark.parametrize("size", SIZES, ids=lambda size: size.name)
each_layout = pytest.mark.parametrize("size", [size for size in SIZES if size.layout], ids=lambda size: size.name)

# The RDMA-capable sizes of Azure's documentation, without the constrained ones.
RDMA = [
    *("ND40rs_v2", "ND96asr_v4", "ND96amsr_A100_v4", "ND96isr_H100_v5", "ND96isr_H200_v5", "ND96isrf_H200_v5"),
    *("ND96isr_MI300X_v5", "ND128isr_NDR_GB200_v6", "ND128isr_GB300_v6", "ND128isrG5_GB300_v6"),
    *("HB120rs_v2", "HB120rs_v3", "HB176rs_v4", "HX176rs", "HB368rs_v5", "HC44rs"),
    *("NC24rs_v3", "ND24rs", "NC24rs_v2", "NC24r", "NC24r_Promo", "H16r", "H16mr"),
]
NOT_RDMA = [
    *("ND96is_H100_v5", "ND96is_H200_v5", "NC24ads_A100_v4", "NC48ads_A100_v4", "NC96ads_A100_v4"),
    *("NC40ads_H100_v5", "NC80adis_H100_v5"),
]


def numa_of(size: Size) -> dict[str, int | None]:
    assert size.layout
    return {place.address[:4]: place.numa for place in (*size.layout.gpus, *size.layout.nics)}


def test_the_catalogue_holds_the_known_sizes_and_no_others() -> None:
    full = {size.name.removeprefix("Standard_"): size.rdma for size in SIZES if not size.constrained_from}
    assert full == dict.fromkeys(RDMA, True) | dict.fromkeys(NOT_RDMA, False)


@each_size
def test_the_name_parses_and_agrees_with_the_data(size: Size) -> None:
    parsed = parse_size_name(size.name)
    assert parsed.name == size.name
    assert parsed.usable_vcpus == size.vcpus
    assert parsed.rdma_by_name == size.rdma
    assert bool(size.constrained_from) == (parsed.constrained_vcpus is not None)
    if parsed.accelerator:
        assert size.gpu
        assert size.gpu.model.split()[0] == parsed.accelerator
    assert any("Arm" in warning for warning in parsed.warnings) == (size.architecture == "aarch64")


@each_size
def test_pci_names_in_the_data_agree_with_the_name_table(size: Size) -> None:
    if size.gpu:
        assert all(pci_names(size.gpu.pci_vendor, size.gpu.pci_device))
    if size.nic and size.nic.pci_name:
        assert pci_names(size.nic.pci_vendor, size.nic.pci_device)[1] == size.nic.pci_name


@each_size
def test_current_rdma_sizes_have_all_that_others_build_on(size: Size) -> None:
    if size.rdma and size.status in ("current", "retiring"):
        assert size.layout
        assert size.aks
        assert size.numa_nodes
        assert size.sriov
    assert size.sources


@each_layout
def test_azure_nics_are_numbered_domains_below_vmbus(size: Size) -> None:
    assert size.layout
    addresses = [nic.address for nic in size.layout.nics]
    assert addresses == [f"{0x100 + index:04x}:00:00.0" for index in range(1, len(addresses) + 1)]
    assert size.layout.hyperv
    assert all(nic.vmbus and nic.root == f"pci{nic.address[:7]}" for nic in size.layout.nics)


@each_layout
def test_pairs_are_mutual_and_of_one_numa_node(size: Size) -> None:
    assert size.layout
    gpus = {gpu.address: gpu for gpu in size.layout.gpus}
    for nic in size.layout.nics:
        if nic.pair:
            assert gpus[nic.pair].pair == nic.address
            assert gpus[nic.pair].numa == nic.numa


@each_size
def test_an_expectation_has_a_number_and_a_positive_limit(size: Size) -> None:
    for expectation in size.expected:
        numbers = (expectation.expect, expectation.fail_below, expectation.fail_above)
        assert any(number is not None for number in numbers)
        if expectation.expect is not None and expectation.fail_below is not None:
            assert expectation.fail_below <= expectation.expect
        if expectation.expect is not None and expectation.fail_above is not None:
            assert expectation.fail_above >= expectation.expect


@each_size
def test_every_source_key_is_explained_with_a_date(size: Size) -> None:
    explained = CATALOG.sources_of(size)
    keys = [*size.sources, *(expectation.source for expectation in size.expected)]
    keys += [key for part in (size.layout, size.aks) if part for key in part.sources]
    assert all(re.search(r"20\d\d", explained[key]) for key in keys)


def test_h100_pairs_follow_the_published_topology() -> None:
    layout = CATALOG.find("Standard_ND96isr_H100_v5").layout
    assert layout
    assert [(gpu.address[:4], (gpu.pair or "")[:4], gpu.numa) for gpu in layout.gpus] == [
        ("0001", "0101", 0),
        ("0002", "0102", 0),
        ("0003", "0103", 0),
        ("0008", "0104", 0),
        ("0009", "0105", 1),
        ("000a", "0106", 1),
        ("000b", "0107", 1),
        ("000c", "0108", 1),
    ]


def test_a100_numa_nodes_follow_the_published_topology() -> None:
    numa = numa_of(CATALOG.find("Standard_ND96asr_v4"))
    by_node = {node: {domain for domain in numa if numa[domain] == node} for node in range(4)}
    assert by_node == {
        0: {"0003", "0004", "0103", "0104"},
        1: {"0001", "0002", "0101", "0102"},
        2: {"000d", "000e", "0107", "0108"},
        3: {"000b", "000c", "0105", "0106"},
    }


def test_gb300_gpus_keep_their_pci_root_while_nics_are_below_vmbus() -> None:
    size = CATALOG.find("ND128isr_GB300_v6")
    assert size.layout
    assert [gpu.root for gpu in size.layout.gpus] == ["pci0008:00", "pci0009:00", "pci0018:00", "pci0019:00"]
    assert not any(gpu.vmbus for gpu in size.layout.gpus)
    assert numa_of(size) == {
        "0008": 0,
        "0009": 0,
        "0018": 1,
        "0019": 1,
        "0101": 0,
        "0102": 0,
        "0103": 1,
        "0104": 1,
    }


def test_grace_blackwell_wants_the_infiniband_feature_off_and_hopper_wants_it_on() -> None:
    states = {name: CATALOG.find(name).aks for name in ("ND128isr_GB300_v6", "ND96isr_H100_v5")}
    assert {name: aks and aks.infiniband_feature for name, aks in states.items()} == {
        "ND128isr_GB300_v6": "unregistered",
        "ND96isr_H100_v5": "registered",
    }


def test_hbv5_nics_lie_on_every_fourth_numa_node() -> None:
    assert numa_of(CATALOG.find("HB368rs_v5")) == {"0101": 0, "0102": 4, "0103": 8, "0104": 12}


def test_inferred_layouts_are_exactly_these() -> None:
    inferred = {size.name for size in SIZES if size.layout and size.layout.basis == "inferred"}
    full = {name for name in inferred if not CATALOG.find(name).constrained_from}
    assert full == {
        "Standard_HB120rs_v2",
        "Standard_HB120rs_v3",
        "Standard_HB176rs_v4",
        "Standard_HC44rs",
        "Standard_HX176rs",
        "Standard_ND128isr_NDR_GB200_v6",
        "Standard_ND96isr_MI300X_v5",
    }


def test_a_constrained_size_differs_from_the_full_one_in_vcpus_only() -> None:
    full, cut = CATALOG.find("Standard_HB120rs_v3"), CATALOG.find("hb120-96rs_v3")
    assert cut == msgspec.structs.replace(
        full, name="Standard_HB120-96rs_v3", vcpus=96, constrained_from="Standard_HB120rs_v3"
    )


@pytest.mark.parametrize("spelling", ["Standard_HX176rs", "standard_hx176RS", "HX176rs", " hx176rs\n"])
def test_a_name_is_found_in_any_spelling(spelling: str) -> None:
    assert CATALOG.find(spelling).name == "Standard_HX176rs"


@pytest.mark.parametrize(
    ("name", "near"),
    [("ND96isr_H1000_v5", "Standard_ND96isr_H100_v5"), ("Standard_HB120-95rs_v3", "Standard_HB120-96rs_v3")],
)
def test_an_unknown_name_is_answered_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        CATALOG.find(name)
    assert near in caught.value.nearest
    assert near in caught.value.remedy


@pytest.mark.parametrize("name", ["", "   ", "zzz", "Standard_"])
def test_a_name_like_nothing_known_has_no_nearest(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        CATALOG.find(name)
    assert caught.value.nearest == ()
    assert caught.value.remedy


def test_sizes_sort_by_number_not_by_digit() -> None:
    names = [size.name for size in SIZES]
    assert names.index("Standard_ND96asr_v4") < names.index("Standard_ND128isr_GB300_v6")
    assert names.index("Standard_HB120-16rs_v3") < names.index("Standard_HB120-96rs_v3")


def test_rdma_sizes_leaves_out_the_others() -> None:
    assert {size.name for size in SIZES} - {size.name for size in CATALOG.rdma_sizes()} == {
        f"Standard_{name}" for name in NOT_RDMA
    }


def builtin_entries() -> Iterator[Entry]:
    folder = resources.files("fishplate.hardware").joinpath("data", "sizes")
    for file in folder.iterdir():
        yield from parse_document(file.read_text(encoding="utf-8"), file.name).sizes


def test_built_in_entries_break_no_rule_and_the_name_index_misses_none() -> None:
    fresh = Catalog(load_catalog()._shelves)
    for entry in builtin_entries():
        assert check_entry(entry) == []
        for size in expand_entry(entry):
            assert fresh.find(size.name) == size
