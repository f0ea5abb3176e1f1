"""A derived node is what scanning that node would give."""

import pytest

from fishplate.errors import InputError, UnknownNameError, UsageError
from fishplate.hardware.catalog import Catalog
from fishplate.k8s.resource import ResourceSlice
from fishplate.sim.fleet import PLACEMENT_GROUP, VM_SIZE, make_fleet, parse_fleet, placement_group
from fishplate.sim.gpu_drivers import publish_gpu_slice
from fishplate.sim.host import host_name, synthesise
from fishplate.sim.variations import Variations
from fishplate.topology.slices import publish_slices

GB300 = "Standard_ND128isr_GB300_v6"
H100 = "Standard_ND96isr_H100_v5"
MI300X = "Standard_ND96isr_MI300X_v5"


def values(slices: list[ResourceSlice], key: str) -> list[object]:
    return [device.attributes[key].value for one in slices for device in one.spec.devices if key in device.attributes]


@pytest.mark.parametrize(("size", "profile"), [(GB300, "nvidia-0.5"), (MI300X, "amd-1.0"), (H100, "nvidia-0.4")])
@pytest.mark.parametrize("variations", [Variations(), Variations(roce=True)], ids=["infiniband", "roce"])
def test_a_derived_node_publishes_what_a_scanned_one_would(
    catalog: Catalog, size: str, profile: str, variations: Variations
) -> None:
    number = 299
    fleet = make_fleet([(size, number + 1)], catalog, gpu_drivers=[profile], publish_uuid=True, variations=variations)
    found = catalog.find(size)
    inventory = synthesise(found, catalog, number=number, variations=variations)
    name = host_name(found, number)
    azure: dict[str, bool | int | str] = {PLACEMENT_GROUP: placement_group(found, number), VM_SIZE: size}
    nics = publish_slices(inventory, node=name, node_attributes=azure, publish_uuid=True)
    gpus = publish_gpu_slice(inventory, profile, node=name, spec=found.gpu)
    assert [one for one in fleet.slices if one.spec.node_name == name] == [*nics, gpus]


def test_no_two_hosts_share_a_guid_even_of_different_sizes(catalog: Catalog) -> None:
    fleet = make_fleet([(GB300, 300), (MI300X, 300)], catalog)
    guids = values(list(fleet.slices), "dra.net/portGuid")
    assert len(guids) == len(set(guids)) == 300 * 4 + 300 * 8
    assert len({one.metadata.name for one in fleet.slices}) == len(fleet.slices)


def test_placement_groups_hold_18_grace_nodes_and_100_others(catalog: Catalog) -> None:
    fleet = make_fleet([(GB300, 37), (MI300X, 101)], catalog, fabric_label="example.com/fabric")
    groups = [node.labels["example.com/fabric"] for node in fleet.nodes]
    sizes = [groups.count(group) for group in dict.fromkeys(groups)]
    assert sizes == [18, 18, 1, 100, 1]
    published = {
        one.spec.node_name: values([one], PLACEMENT_GROUP)[0] for one in fleet.slices if "dra.net" in one.spec.driver
    }
    assert [published[node.name] for node in fleet.nodes] == groups


def test_one_size_twice_goes_on_counting(catalog: Catalog) -> None:
    fleet = make_fleet([(GB300, 1), (MI300X, 1), (GB300, 1)], catalog)
    names = [node.name for node in fleet.nodes]
    assert names == ["nd128isr-gb300-v6-0", "nd96isr-mi300x-v5-0", "nd128isr-gb300-v6-1"]


def test_the_seed_decides_and_nothing_else(catalog: Catalog) -> None:
    def make(seed: int) -> object:
        return make_fleet([(GB300, 3)], catalog, seed=seed).slices

    assert make(7) == make(7)
    assert make(7) != make(8)


def test_a_size_without_gpus_has_no_gpu_slice(catalog: Catalog) -> None:
    fleet = make_fleet([("Standard_HB120rs_v3", 2)], catalog)
    assert {one.spec.driver for one in fleet.slices} == {"dra.net"}


def test_labels_name_host_and_size(catalog: Catalog) -> None:
    (node,) = make_fleet([(GB300, 1)], catalog).nodes
    assert node.labels == {
        "kubernetes.io/hostname": "nd128isr-gb300-v6-0",
        "node.kubernetes.io/instance-type": GB300,
    }


def test_a_fleet_is_sizes_and_counts() -> None:
    assert parse_fleet(f"{GB300}=2, {MI300X}") == ((GB300, 2), (MI300X, 1))


@pytest.mark.parametrize("text", ["", "=3", "A=", "A=x", "A=-1", "A=0", "A=²", "A=99999999", "A=1,,B=1"])
def test_what_is_no_fleet_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_fleet(text)


def test_an_unknown_size_or_profile_is_refused(catalog: Catalog) -> None:
    with pytest.raises(UnknownNameError):
        make_fleet([("Standard_ND128isr_GB301_v6", 1)], catalog)
    with pytest.raises(UnknownNameError, match="nvidia-0"):
        make_fleet([(GB300, 1)], catalog, gpu_drivers=["nvidia-0.6"])
    with pytest.raises(InputError, match="other GPUs"):
        make_fleet([(GB300, 1)], catalog, gpu_drivers=["amd-1.0"])
