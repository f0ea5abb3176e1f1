"""Each profile publishes what its release does, and leaves out what it leaves out."""

import pytest

from fishplate.errors import InputError
from fishplate.hardware.catalog import Catalog
from fishplate.sim.gpu_drivers import default_profile, load_profile, profile_names, publish_gpu_slice
from fishplate.sim.host import synthesise
from fishplate.sim.variations import Variations

GB300 = "Standard_ND128isr_GB300_v6"
H100 = "Standard_ND96isr_H100_v5"
MI300X = "Standard_ND96isr_MI300X_v5"
NUMA = "resource.kubernetes.io/numaNode"


def publish(catalog: Catalog, name: str, profile: str, variations: Variations | None = None) -> list[dict[str, object]]:
    size = catalog.find(name)
    inventory = synthesise(size, catalog, variations=variations or Variations())
    published = publish_gpu_slice(inventory, profile, node="a", spec=size.gpu)
    return [
        {"name": device.name} | {key: attribute.value for key, attribute in device.attributes.items()}
        for device in published.spec.devices
    ]


@pytest.mark.parametrize(
    ("name", "profile", "numa", "bus"),
    [
        (GB300, "nvidia-25.8", None, "pcieBusID"),
        (GB300, "nvidia-0.4", None, "resource.kubernetes.io/pciBusID"),
        (GB300, "nvidia-0.5", NUMA, "resource.kubernetes.io/pciBusID"),
        (MI300X, "amd-2025.10", None, "pciAddr"),
        (MI300X, "amd-1.0", "numaNode", None),
    ],
)
def test_the_release_decides_the_names_of_numa_node_and_bus_id(
    catalog: Catalog, name: str, profile: str, numa: str | None, bus: str | None
) -> None:
    layout = catalog.find(name).layout
    assert layout is not None
    for device, place in zip(publish(catalog, name, profile), layout.gpus, strict=True):
        numas = {key: value for key, value in device.items() if key.lower().endswith("numanode")}
        assert numas == ({numa: place.numa} if numa else {})
        buses = {key: value for key, value in device.items() if value == place.address}
        assert buses == ({bus: place.address} if bus else {})


def test_gb300_reads_as_published(catalog: Catalog) -> None:
    (first, *_) = publish(catalog, GB300, "nvidia-0.4")
    assert (first["name"], first["resource.kubernetes.io/pcieRoot"]) == ("gpu-0", "pci0008:00")
    assert (first["productName"], first["architecture"]) == ("NVIDIA GB300", "Blackwell")


def test_a_gpu_below_vmbus_has_no_root(catalog: Catalog) -> None:
    assert all("resource.kubernetes.io/pcieRoot" not in device for device in publish(catalog, H100, "nvidia-0.5"))
    assert all("resource.kubernetes.io/pcieRoot" not in device for device in publish(catalog, MI300X, "amd-1.0"))


def test_the_model_is_the_catalogues_not_the_profiles(catalog: Catalog) -> None:
    (first, *_) = publish(catalog, H100, "nvidia-0.5")
    assert first["productName"] == "NVIDIA H100 80GB HBM3"
    assert (first["architecture"], first["cudaComputeCapability"]) == ("Hopper", "9.0.0")


def test_an_unknown_numa_node_is_left_out_by_nvidia_and_minus_one_by_amd(catalog: Catalog) -> None:
    unknown = Variations(numa_unknown=True)
    assert all(NUMA not in device for device in publish(catalog, GB300, "nvidia-0.5", unknown))
    assert {device["numaNode"] for device in publish(catalog, MI300X, "amd-1.0", unknown)} == {-1}


def test_grace_may_report_the_nodes_of_gpu_memory(catalog: Catalog) -> None:
    devices = publish(catalog, GB300, "nvidia-0.5-memory-nodes")
    assert [device[NUMA] for device in devices] == [2, 10, 18, 26]


def test_the_default_is_the_newest_of_the_vendor_and_no_oddity(catalog: Catalog) -> None:
    assert default_profile(catalog.find(GB300)) == "nvidia-0.5"
    assert default_profile(catalog.find(MI300X)) == "amd-1.0"
    with pytest.raises(InputError, match="no GPUs"):
        default_profile(catalog.find("Standard_HB120rs_v3"))


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_names_its_source_and_can_be_published(catalog: Catalog, name: str) -> None:
    profile = load_profile(name)
    assert profile.source
    size = GB300 if profile.driver == "gpu.nvidia.com" else MI300X
    devices = publish(catalog, size, name)
    assert len({device["name"] for device in devices}) == len(devices) > 0
