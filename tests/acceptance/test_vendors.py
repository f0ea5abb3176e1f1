"""One template for NVIDIA and AMD nodes, where the NICs allow it; otherwise one for each, with the reason."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import msgspec
import pytest
import yaml

from fishplate.dra import Scene, allocate, profile
from fishplate.hardware.catalog import Catalog
from fishplate.k8s.claim import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaimTemplate,
    default_claim,
)
from fishplate.k8s.resource import Device
from fishplate.sim.fleet import Fleet, make_fleet

Program = Callable[..., CompletedProcess[str]]
GB300 = "Standard_ND128isr_GB300_v6"
MI300X = "Standard_ND96isr_MI300X_v5"
BOTH = ("--for", GB300, "--for", MI300X)
RULES = profile("1.36")


def templates(answer: CompletedProcess[str]) -> list[ResourceClaimTemplate]:
    assert answer.returncode == 0, answer.stderr
    read = yaml.safe_load_all(answer.stdout)
    return [msgspec.convert(one, ResourceClaimTemplate) for one in read if one["kind"] == "ResourceClaimTemplate"]


def fill(
    fleet: Fleet, template: ResourceClaimTemplate, node_index: int, *, gone: tuple[str, ...] = ()
) -> list[list[Device]]:
    """What pod after pod gets on one node, until it is full; the NICs that are `gone` belong to somebody else."""
    claim = default_claim(template.as_claim("c"))
    scene, node = Scene(fleet.world(), RULES), fleet.nodes[node_index]
    taken = tuple(
        DeviceRequestAllocationResult(request="nic", driver="dra.net", pool=node.name, device=name) for name in gone
    )
    scene = scene.holding([AllocationResult(devices=DeviceAllocationResult(results=taken))], "somebody else")
    known = {
        (one.spec.driver, device.name): device
        for one in fleet.slices
        if one.spec.node_name == node.name
        for device in one.spec.devices
    }
    pods: list[list[Device]] = []
    while (found := allocate(scene, node, [claim], profile=RULES)) is not None:
        scene = scene.holding(found.results, f"pod {len(pods)}")
        pods.append([known[one.driver, one.device] for one in found.results[0].devices.results])
    return pods


def numa(device: Device) -> object:
    keys = ("resource.kubernetes.io/numaNode", "numaNode", "gpu.amd.com/numaNode")
    return next(device.attributes[key].value for key in keys if key in device.attributes)


@pytest.mark.parametrize("argv", [BOTH, ("--fleet", f"{GB300}=1,{MI300X}=1")])
def test_one_template_hands_out_every_gpu_of_both_vendors_each_with_a_near_nic(
    fishplate: Program, catalog: Catalog, argv: tuple[str, ...]
) -> None:
    (template,) = templates(fishplate("claim", "new", *argv))
    fleet = make_fleet([(GB300, 1), (MI300X, 1)], catalog)
    for index, gpus in ((0, 4), (1, 8)):
        pods = fill(fleet, template, index)
        assert len(pods) == gpus
        assert len({pod[0].name for pod in pods}) == gpus
        assert all(len({numa(device) for device in pod}) == 1 for pod in pods)


def test_pods_stay_aligned_where_a_nic_is_gone_already(fishplate: Program, catalog: Catalog) -> None:
    """Then the order of devices does not line them up by itself."""
    (template,) = templates(fishplate("claim", "new", *BOTH))
    fleet = make_fleet([(GB300, 1), (MI300X, 1)], catalog)
    for index, gpus in ((0, 4), (1, 8)):
        pods = fill(fleet, template, index, gone=("pci-0101-00-00-0",))
        assert len(pods) == gpus - 1
        assert all(len({numa(device) for device in pod}) == 1 for pod in pods)


def test_several_nics_of_each_gpu_stay_on_its_numa_node(fishplate: Program, catalog: Catalog) -> None:
    (template,) = templates(fishplate("claim", "new", "--gpus", "2", "--nics", "2", *BOTH))
    fleet = make_fleet([(GB300, 1), (MI300X, 1)], catalog)
    for index, number in ((0, 2), (1, 4)):
        pods = fill(fleet, template, index)
        assert len(pods) == number
        assert all(len({numa(device) for device in pod}) == 1 for pod in pods)


def test_no_alignment_needs_no_constraint(fishplate: Program) -> None:
    (template,) = templates(fishplate("claim", "new", "--align", "none", *BOTH))
    assert template.spec.spec.devices.constraints == ()
    assert [one.name for one in template.spec.spec.devices.requests[0].first_available] == ["nvidia", "amd"]


def test_nics_without_the_other_vendors_attribute_get_a_template_for_each(
    fishplate: Program, catalog: Catalog, tmp_path: Path
) -> None:
    """The constraint of the alternative that is not taken still binds the NICs: without the key nothing would fit."""
    fleet = make_fleet([(GB300, 1), (MI300X, 1)], catalog)
    document = json.loads(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": fleet.slices}))
    for item in document["items"]:
        for device in item["spec"]["devices"]:
            if item["spec"]["nodeName"].startswith("nd128") and item["spec"]["driver"] == "dra.net":
                del device["attributes"]["gpu.amd.com/numaNode"]
    file = tmp_path / "slices.json"
    file.write_text(json.dumps(document))
    answer = fishplate("claim", "new", "--slices", str(file), "--vendor", "any")
    nvidia, amd = templates(answer)
    assert (nvidia.metadata.name, amd.metadata.name) == ("1gpu-1nic-nvidia", "1gpu-1nic-amd")
    assert "one cannot serve both: the constraint of amd binds the NICs of nvidia nodes too" in answer.stderr
    assert "# A template for each vendor" in answer.stdout
    assert (len(fill(fleet, nvidia, 0)), len(fill(fleet, amd, 1))) == (4, 8)
    assert (len(fill(fleet, nvidia, 1)), len(fill(fleet, amd, 0))) == (0, 0)


def test_a_driver_without_numa_nodes_gets_its_own_templates(fishplate: Program) -> None:
    answer = fishplate("claim", "new", *BOTH, "--gpu-driver", "nvidia-0.4")
    names = [one.metadata.name for one in templates(answer)]
    assert names == ["1gpu-1nic-nvidia-numa0", "1gpu-1nic-nvidia-numa1", "1gpu-1nic-amd"]
    assert "on nvidia nodes GPU and NIC are picked by place" in answer.stderr
    assert "nvidia: Not resource.kubernetes.io/numaNode" in answer.stderr


def test_slices_of_both_vendors_ask_whose_gpus_are_meant(fishplate: Program, catalog: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "slices.json"
    slices = make_fleet([(GB300, 1), (MI300X, 1)], catalog).slices
    file.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": slices}))
    refused = fishplate("claim", "new", "--slices", str(file))
    assert refused.returncode == 2
    assert "--vendor any" in refused.stderr
    (one,) = templates(fishplate("claim", "new", "--slices", str(file), "--vendor", "amd"))
    exactly = one.spec.spec.devices.requests[0].exactly
    assert exactly is not None
    assert exactly.device_class_name == "gpu.amd.com"
    assert len(templates(fishplate("claim", "new", "--slices", str(file), "--gpus", "0"))) == 1


def test_what_one_vendor_cannot_do_is_said_with_the_way_out(fishplate: Program) -> None:
    answer = fishplate("claim", "new", "--nics", "4", "--gpus", "4", *BOTH)
    assert answer.returncode == 2
    assert "nvidia: 4 GPUs and 4 NICs on one NUMA node" in answer.stderr
    assert "leave these nodes out: --vendor amd" in answer.stderr


def test_a_template_for_both_vendors_passes_the_linter(fishplate: Program, tmp_path: Path) -> None:
    file = tmp_path / "claims.yaml"
    file.write_text(fishplate("claim", "new", *BOTH).stdout)
    answer = fishplate("lint", str(file), "--fleet", f"{GB300}=1,{MI300X}=1")
    assert answer.returncode == 0, answer.stdout
    assert "nothing found" in answer.stdout


def test_a_job_of_both_vendors_is_pinned_to_one_fabric_and_so_to_one_vendor(fishplate: Program) -> None:
    argv = ("--fleet", f"{GB300}=2,{MI300X}=4", "--fabric", "auto", "--workers", "20", "-o", "json")
    document = json.loads(fishplate("claim", "new", *argv).stdout)
    (template,) = (one for one in document["items"] if one["kind"] == "ResourceClaimTemplate")
    requests = template["spec"]["spec"]["devices"]["requests"]
    assert requests[0]["exactly"]["deviceClassName"] == "gpu.amd.com"
    assert document["fishplate"]["fabric"]["how"] == "pinned-claim"
