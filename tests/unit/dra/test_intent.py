"""Which template an intent gets, by what is published, and why."""

import msgspec
import pytest

from fishplate.dra.intent import Align, Claims, Intent, write_claims
from fishplate.dra.intent_published import read_published
from fishplate.errors import InputError
from fishplate.hardware.catalog import Catalog
from fishplate.k8s.resource import DeviceAttribute, ResourceSlice
from fishplate.sim.fleet import make_fleet, placement_group
from fishplate.sim.variations import Variations

GB300 = "Standard_ND128isr_GB300_v6"
H100 = "Standard_ND96isr_H100_v5"
MI300X = "Standard_ND96isr_MI300X_v5"
NUMA = "resource.kubernetes.io/numaNode"
ROOT = "resource.kubernetes.io/pcieRoot"


def publish(catalog: Catalog, size: str, profile: str, **options: object) -> tuple[ResourceSlice, ...]:
    return make_fleet([(size, 2)], catalog, gpu_drivers=[profile], **options).slices  # type: ignore[arg-type]


def write(slices: tuple[ResourceSlice, ...], intent: Intent, catalog: Catalog, size: str = "") -> Claims:
    layout = catalog.find(size).layout if size else None
    places = {place.address: place.numa for place in layout.gpus if place.numa is not None} if layout else {}
    return write_claims(intent, read_published(slices), gpu_numa=places)


def change(
    slices: tuple[ResourceSlice, ...], driver: str, changes: dict[str, DeviceAttribute | None]
) -> tuple[ResourceSlice, ...]:
    """The same slices with attributes replaced or taken away on every device of a driver."""
    changed = []
    for one in slices:
        devices = one.spec.devices
        if one.spec.driver == driver:
            devices = tuple(
                msgspec.structs.replace(
                    device,
                    attributes={
                        key: value for key, value in (device.attributes | changes).items() if value is not None
                    },
                )
                for device in devices
            )
        changed.append(msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, devices=devices)))
    return tuple(changed)


def names(claims: Claims) -> list[str]:
    return [one.metadata.name for one in claims.templates]


def expressions(claims: Claims) -> list[str]:
    return [
        selector.cel.expression
        for one in claims.templates
        for request in one.spec.spec.devices.requests
        if request.exactly
        for selector in request.exactly.selectors
        if selector.cel
    ]


@pytest.mark.parametrize(
    ("size", "profile", "uuid", "attribute"),
    [
        (GB300, "nvidia-0.5", False, NUMA),
        (MI300X, "amd-1.0", False, "gpu.amd.com/numaNode"),
        (H100, "nvidia-0.4", True, "gpu.nvidia.com/uuid"),
        (H100, "nvidia-25.8", True, "gpu.nvidia.com/uuid"),
    ],
)
def test_one_template_where_both_drivers_publish_an_attribute(
    catalog: Catalog, size: str, profile: str, uuid: bool, attribute: str
) -> None:
    claims = write(publish(catalog, size, profile, publish_uuid=uuid), Intent(), catalog)
    assert (names(claims), claims.attribute) == (["1gpu-1nic"], attribute)
    (constraint,) = claims.templates[0].spec.spec.devices.constraints
    assert (constraint.match_attribute, constraint.requests) == (attribute, ("gpu", "nic"))
    assert "serves every GPU" in claims.reasons[0]


@pytest.mark.parametrize(
    ("size", "profile", "key"),
    [
        (GB300, "nvidia-25.8", "gpu.nvidia.com/pcieBusID"),
        (GB300, "nvidia-0.4", "resource.kubernetes.io/pciBusID"),
        (MI300X, "amd-2025.10", "gpu.amd.com/pciAddr"),
    ],
)
def test_a_driver_without_numa_nodes_gets_a_template_per_numa_node_and_the_reason(
    catalog: Catalog, size: str, profile: str, key: str
) -> None:
    claims = write(publish(catalog, size, profile), Intent(nics=2), catalog, size)
    assert names(claims) == ["1gpu-2nic-numa0", "1gpu-2nic-numa1"]
    assert any("of this release publishes no NUMA node" in reason for reason in claims.reasons)
    assert key in claims.reasons[0]
    domain, _, name = key.partition("/")
    assert any(f'device.attributes["{domain}"].{name} in [' in text for text in expressions(claims))


def test_memory_only_numa_nodes_of_grace_are_seen_and_explained(catalog: Catalog) -> None:
    claims = write(publish(catalog, GB300, "nvidia-0.5-memory-nodes"), Intent(), catalog, GB300)
    assert names(claims) == ["1gpu-1nic-numa0", "1gpu-1nic-numa1"]
    (said,) = [reason for reason in claims.reasons if reason.startswith(f"Not {NUMA}")]
    assert "2, 10, 18, 26 on the GPUs and 0, 1 on the NICs" in said
    assert "memory-only" in said


def test_minus_one_is_never_taken_for_a_numa_node(catalog: Catalog) -> None:
    slices = publish(catalog, MI300X, "amd-1.0")
    lost = change(slices, "gpu.amd.com", {"numaNode": DeviceAttribute(int_=-1)})
    with pytest.raises(InputError, match="neither a usable NUMA node nor a PCI address"):
        write(lost, Intent(), catalog, MI300X)


def test_some_gpus_at_minus_one_are_warned_about(catalog: Catalog) -> None:
    slices = list(publish(catalog, MI300X, "amd-1.0"))
    index = next(i for i, one in enumerate(slices) if one.spec.driver == "gpu.amd.com")
    first, *rest = slices[index].spec.devices
    first = msgspec.structs.replace(first, attributes=first.attributes | {"numaNode": DeviceAttribute(int_=-1)})
    spec = msgspec.structs.replace(slices[index].spec, devices=(first, *rest))
    slices[index] = msgspec.structs.replace(slices[index], spec=spec)
    claims = write(tuple(slices), Intent(), catalog)
    assert claims.attribute == "gpu.amd.com/numaNode"
    assert any("1 GPU of 16 say NUMA node -1" in warning for warning in claims.warnings)


def test_numbers_and_texts_never_match(catalog: Catalog) -> None:
    slices = change(publish(catalog, GB300, "nvidia-0.5"), "dra.net", {NUMA: DeviceAttribute(string="0")})
    claims = write(slices, Intent(), catalog, GB300)
    assert claims.attribute == ""
    assert any("different types: int and string" in reason for reason in claims.reasons)


def test_lists_are_not_relied_on(catalog: Catalog) -> None:
    slices = change(publish(catalog, GB300, "nvidia-0.5"), "gpu.nvidia.com", {NUMA: DeviceAttribute(ints=(0,))})
    claims = write(slices, Intent(), catalog, GB300)
    assert claims.attribute == ""
    assert any("is a list" in reason for reason in claims.reasons)


def test_an_attribute_that_one_device_lacks_is_not_relied_on(catalog: Catalog) -> None:
    slices = list(publish(catalog, GB300, "nvidia-0.5"))
    index = next(i for i, one in enumerate(slices) if one.spec.driver == "gpu.nvidia.com")
    slices[index] = change((slices[index],), "gpu.nvidia.com", {NUMA: None})[0]
    claims = write(tuple(slices), Intent(), catalog, GB300)
    assert claims.attribute == ""
    assert any("4 of 8 GPUs lack" in reason for reason in claims.reasons)


def test_nics_of_upstream_dranet_are_picked_by_their_own_numa_node(catalog: Catalog) -> None:
    upstream: dict[str, DeviceAttribute | None] = {NUMA: None, "gpu.amd.com/numaNode": None, ROOT: None}
    slices = change(publish(catalog, GB300, "nvidia-0.5"), "dra.net", upstream)
    claims = write(slices, Intent(), catalog)
    assert names(claims) == ["1gpu-1nic-numa0", "1gpu-1nic-numa1"]
    assert 'device.attributes["resource.kubernetes.io"].numaNode == 1' in expressions(claims)
    assert any('device.attributes["dra.net"].numaNode == 1' in text for text in expressions(claims))


def test_a_shared_pcie_root_serves_where_numa_nodes_are_not_published(catalog: Catalog) -> None:
    slices = publish(catalog, GB300, "nvidia-0.4")
    shared = change(slices, "dra.net", {ROOT: DeviceAttribute(string="pci0008:00")})
    assert write(shared, Intent(nics=2), catalog).attribute == ROOT
    assert write(shared, Intent(nics=2, align=Align.PCIE), catalog).attribute == ROOT


def test_pcie_alignment_is_refused_on_azure(catalog: Catalog) -> None:
    with pytest.raises(InputError, match="no GPU shares a PCIe root"):
        write(publish(catalog, GB300, "nvidia-0.5"), Intent(align=Align.PCIE), catalog)


@pytest.mark.parametrize("profile", ["nvidia-0.5", "nvidia-0.4"])
def test_more_than_a_numa_node_has_is_refused_with_what_it_has(catalog: Catalog, profile: str) -> None:
    with pytest.raises(InputError, match="at most 2 GPUs and 2 NICs"):
        write(publish(catalog, GB300, profile), Intent(nics=3), catalog, GB300)


def test_more_than_a_node_has_is_refused_with_what_it_has(catalog: Catalog) -> None:
    with pytest.raises(InputError) as refused:
        write(publish(catalog, GB300, "nvidia-0.5"), Intent(gpus=5, align=Align.NONE), catalog)
    assert "at most 4 GPUs and 4 RDMA NICs" in refused.value.remedy


def test_pairs_are_as_many_requests_and_constraints(catalog: Catalog) -> None:
    slices = publish(catalog, H100, "nvidia-0.4", publish_uuid=True)
    claims = write(slices, Intent(gpus=3, nics=3, align=Align.PAIR), catalog)
    devices = claims.templates[0].spec.spec.devices
    assert [one.name for one in devices.requests] == ["gpu-0", "nic-0", "gpu-1", "nic-1", "gpu-2", "nic-2"]
    assert [one.requests for one in devices.constraints] == [(f"gpu-{i}", f"nic-{i}") for i in range(3)]


def test_pairs_need_nics_that_know_their_gpu(catalog: Catalog) -> None:
    with pytest.raises(InputError, match=r"publishes no gpu\.nvidia\.com/uuid"):
        write(publish(catalog, H100, "nvidia-0.5"), Intent(align=Align.PAIR), catalog)


def test_a_fabric_is_a_selector_on_the_nics(catalog: Catalog) -> None:
    group = placement_group(catalog.find(GB300), 0)
    claims = write(publish(catalog, GB300, "nvidia-0.5"), Intent(fabric=group), catalog)
    assert f'device.attributes["azure.dra.net"].placementGroupId == "{group}"' in expressions(claims)
    with pytest.raises(InputError) as unknown:
        write(publish(catalog, GB300, "nvidia-0.5"), Intent(fabric="elsewhere"), catalog)
    assert group in unknown.value.remedy


def test_classes_are_those_the_claim_refers_to(catalog: Catalog) -> None:
    slices = publish(catalog, MI300X, "amd-1.0")
    assert [one.metadata.name for one in write(slices, Intent(), catalog).classes] == ["dranet.net", "gpu.amd.com"]
    assert [one.metadata.name for one in write(slices, Intent(gpus=0, nics=2), catalog).classes] == ["dranet.net"]


def test_nics_alone_come_from_one_numa_node(catalog: Catalog) -> None:
    claims = write(publish(catalog, GB300, "nvidia-0.4"), Intent(gpus=0, nics=2), catalog)
    assert (names(claims), claims.attribute) == (["2nic"], NUMA)


def test_two_vendors_at_once_are_refused(catalog: Catalog) -> None:
    slices = make_fleet([(GB300, 1), (MI300X, 1)], catalog).slices
    with pytest.raises(InputError, match="two vendors"):
        read_published(slices)
    assert read_published(slices, vendor="amd").gpu_driver == "gpu.amd.com"


@pytest.mark.parametrize(
    "intent",
    [
        Intent(gpus=0, nics=0),
        Intent(gpus=30, nics=4),
        Intent(name="No Name"),
        Intent(gpus=1, nics=0, fabric="x"),
        Intent(gpus=2, nics=3, align=Align.PAIR),
        Intent(gpus=0, nics=2, align=Align.PAIR),
    ],
)
def test_an_intent_that_makes_no_sense_is_refused(catalog: Catalog, intent: Intent) -> None:
    with pytest.raises(InputError):
        write(publish(catalog, H100, "nvidia-0.5", publish_uuid=True), intent, catalog)


def test_unknown_numa_nodes_of_nics_are_refused(catalog: Catalog) -> None:
    slices = publish(catalog, GB300, "nvidia-0.5", variations=Variations(numa_unknown=True))
    with pytest.raises(InputError, match="without a NUMA node"):
        write(slices, Intent(), catalog, GB300)
