"""What claims must show: the published templates, one template for every GPU, and what is said where that is not so."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import msgspec
import pytest
import yaml

from fishplate.dra import Node, Scene, allocate, profile
from fishplate.hardware.catalog import Catalog
from fishplate.k8s.claim import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimTemplate,
    default_claim,
)
from fishplate.k8s.resource import Device
from fishplate.sim.fleet import PLACEMENT_GROUP, Fleet, make_fleet, placement_group

Program = Callable[..., CompletedProcess[str]]
GB300 = "Standard_ND128isr_GB300_v6"
MI300X = "Standard_ND96isr_MI300X_v5"
RULES = profile("1.36")


def documents(answer: CompletedProcess[str]) -> list[dict[str, Any]]:
    assert answer.returncode == 0, answer.stderr
    return list(yaml.safe_load_all(answer.stdout))


def templates(answer: CompletedProcess[str]) -> dict[str, ResourceClaim]:
    """The claims that pods would get from the printed templates."""
    read = [
        msgspec.convert(one, ResourceClaimTemplate)
        for one in documents(answer)
        if one["kind"] == "ResourceClaimTemplate"
    ]
    return {one.metadata.name: default_claim(one.as_claim(one.metadata.name)) for one in read}


class Got:
    """What a claim got on a node."""

    def __init__(self, fleet: Fleet, node: Node, identities: list[tuple[str, str]]) -> None:
        own = {
            (one.spec.driver, device.name): device
            for one in fleet.slices
            if one.spec.node_name == node.name
            for device in one.spec.devices
        }
        self.node = node.name
        self.gpus = [own[identity] for identity in identities if identity[0].startswith("gpu.")]
        self.nics = [own[identity] for identity in identities if identity[0] == "dra.net"]

    @property
    def rdma_devices(self) -> list[str]:
        return sorted(str(value(nic, "dra.net/rdmaDevice")) for nic in self.nics)


def value(device: Device, *keys: str) -> object:
    return next((device.attributes[key].value for key in keys if key in device.attributes), None)


def numa_nodes(devices: list[Device]) -> set[object]:
    return {value(device, "resource.kubernetes.io/numaNode", "numaNode", "dra.net/numaNode") for device in devices}


def ask(fleet: Fleet, claim: ResourceClaim) -> list[Got]:
    """What the claim gets on each node by itself, where it fits."""
    scene = Scene(fleet.world(), RULES)
    return [got for node in fleet.nodes if (got := _ask(fleet, scene, node, claim)) is not None]


def _ask(fleet: Fleet, scene: Scene, node: Node, claim: ResourceClaim) -> Got | None:
    found = allocate(scene, node, [claim], profile=RULES)
    if found is None:
        return None
    return Got(fleet, node, [(one.driver, one.device) for one in found.results[0].devices.results])


def fill(fleet: Fleet, claim: ResourceClaim, *, gone: tuple[str, ...] = ()) -> Iterator[Got]:
    """Pod after pod, each on the first node with room, until none is left; NICs that are `gone` others have."""
    scene = Scene(fleet.world(), RULES)
    taken = tuple(
        DeviceRequestAllocationResult(request="nic", driver="dra.net", pool=node.name, device=name)
        for node in fleet.nodes
        for name in gone
    )
    scene = scene.holding([AllocationResult(devices=DeviceAllocationResult(results=taken))], "others")
    for number in range(100):
        for node in fleet.nodes:
            found = allocate(scene, node, [claim], profile=RULES)
            if found is not None:
                yield Got(fleet, node, [(one.driver, one.device) for one in found.results[0].devices.results])
                scene = scene.holding(found.results, f"pod {number}")
                break
        else:
            return


# -- the published templates -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gb300(catalog: Catalog) -> Fleet:
    return make_fleet([(GB300, 20)], catalog)  # two placement groups


@pytest.fixture(scope="module")
def published(fishplate: Program, catalog: Catalog) -> dict[str, ResourceClaim]:
    group = placement_group(catalog.find(GB300), 18)
    return templates(fishplate("claim", "examples", "gb300", "--fabric", group))


def test_gb300_has_the_four_published_templates(published: dict[str, ResourceClaim]) -> None:
    assert list(published) == ["1nic-aligned", "1nic-unaligned", "2nic-aligned", "ib-same-fabric"]


@pytest.mark.parametrize(
    ("name", "devices", "numa"),
    [
        ("1nic-aligned", ["mlx5_0"], {0}),
        ("1nic-unaligned", ["mlx5_2"], {1}),
        ("2nic-aligned", ["mlx5_0", "mlx5_1"], {0}),
    ],
)
def test_gb300_templates_get_the_published_devices_on_every_node(
    gb300: Fleet, published: dict[str, ResourceClaim], name: str, devices: list[str], numa: set[int]
) -> None:
    got = ask(gb300, published[name])
    assert len(got) == 20
    for each in got:
        assert [value(gpu, "resource.kubernetes.io/pciBusID") for gpu in each.gpus] == ["0008:06:00.0"]
        assert (each.rdma_devices, numa_nodes(each.nics)) == (devices, numa)


def test_ib_same_fabric_fits_only_nodes_of_that_placement_group(
    gb300: Fleet, published: dict[str, ResourceClaim], catalog: Catalog
) -> None:
    got = ask(gb300, published["ib-same-fabric"])
    assert [each.node for each in got] == ["nd128isr-gb300-v6-18", "nd128isr-gb300-v6-19"]
    groups = {value(nic, PLACEMENT_GROUP) for each in got for nic in each.nics}
    assert groups == {placement_group(catalog.find(GB300), 18)}


def test_the_published_expressions_select_the_same_devices(gb300: Fleet, published: dict[str, ResourceClaim]) -> None:
    """The texts of DRANET's own files, beside ours."""
    gpu = 'device.attributes["resource.kubernetes.io"].pciBusID == "0008:06:00.0"'
    nics = {
        "1nic-aligned": (1, 'device.attributes["dra.net"]["rdmaDevice"] == "mlx5_0"'),
        "1nic-unaligned": (1, 'device.attributes["dra.net"]["rdmaDevice"] == "mlx5_2"'),
        "2nic-aligned": (
            2,
            'device.attributes["dra.net"]["rdma"] == true && device.attributes["dra.net"]["numaNode"] == 0',
        ),
    }
    for name, (number, expression) in nics.items():
        written = {
            "metadata": {"name": name},
            "spec": {
                "devices": {
                    "requests": [
                        _request("gpu", "gpu.nvidia.com", 1, gpu),
                        _request("nic", "dranet.net", number, expression),
                    ]
                }
            },
        }
        theirs = default_claim(msgspec.convert(written, ResourceClaim))
        mine = [(each.node, each.gpus, each.nics) for each in ask(gb300, published[name])]
        assert mine == [(each.node, each.gpus, each.nics) for each in ask(gb300, theirs)]


def _request(name: str, class_name: str, count: int, expression: str) -> dict[str, object]:
    selectors = [{"cel": {"expression": expression}}]
    return {"name": name, "exactly": {"deviceClassName": class_name, "count": count, "selectors": selectors}}


def test_the_linter_calls_the_unaligned_template_sys(fishplate: Program, tmp_path: Path) -> None:
    file = tmp_path / "examples.yaml"
    file.write_text(fishplate("claim", "examples", "gb300").stdout)
    answer = fishplate("lint", str(file), "--fleet", f"{GB300}=2", "-o", "json")
    assert answer.returncode == 1
    findings = json.loads(answer.stdout)["findings"]
    misaligned = [one for one in findings if one["id"] == "claim-misaligned"]
    assert [one["place"].rpartition(": ")[2] for one in misaligned] == ["1nic-unaligned"]
    assert "gpu-0 – pci-0103-00-00-0 (mlx5_2): SYS" in misaligned[0]["evidence"]


def test_mi300x_templates_get_the_nics_of_their_numa_nodes(fishplate: Program, catalog: Catalog) -> None:
    fleet = make_fleet([(MI300X, 2)], catalog)
    printed = templates(fishplate("claim", "examples", "mi300x"))
    expected = {"4nic-same-numa": range(4), "4nic-cross-numa": range(4, 8), "8nic-all": range(8)}
    assert list(printed) == list(expected)
    for name, numbers in expected.items():
        got = ask(fleet, printed[name])
        assert [each.rdma_devices for each in got] == [[f"mlx5_{n}" for n in numbers]] * 2


# -- one template for every GPU ----------------------------------------------------------------------------------


def one_template(answer: CompletedProcess[str]) -> ResourceClaim:
    (claim,) = templates(answer).values()
    return claim


def test_one_template_hands_out_all_gpus_of_two_nodes_each_with_a_near_nic(
    fishplate: Program, catalog: Catalog
) -> None:
    claim = one_template(fishplate("claim", "new", "--gpus", "1", "--nics", "1", "--align", "numa", "--for", GB300))
    pods = list(fill(make_fleet([(GB300, 2)], catalog), claim))
    assert len(pods) == 8
    assert len({(pod.node, pod.gpus[0].name) for pod in pods}) == 8
    assert len({(pod.node, pod.nics[0].name) for pod in pods}) == 8
    assert all(len(numa_nodes(pod.gpus) | numa_nodes(pod.nics)) == 1 for pod in pods)


@pytest.mark.parametrize(("size", "pods"), [(GB300, 6), (MI300X, 14)])
def test_pods_stay_aligned_where_a_nic_is_gone_already(
    fishplate: Program, catalog: Catalog, size: str, pods: int
) -> None:
    """Then the order of devices does not line them up by itself."""
    claim = one_template(fishplate("claim", "new", "--for", size))
    got = list(fill(make_fleet([(size, 2)], catalog), claim, gone=("pci-0101-00-00-0",)))
    assert len(got) == pods
    assert all(len(numa_nodes(pod.gpus) | numa_nodes(pod.nics)) == 1 for pod in got)


@pytest.mark.parametrize(
    ("size", "gpus", "nics", "pods"), [(GB300, 1, 2, 2), (GB300, 2, 2, 2), (MI300X, 1, 1, 8), (MI300X, 4, 4, 2)]
)
def test_one_template_fills_a_node_without_crossing_numa_nodes(
    fishplate: Program, catalog: Catalog, size: str, gpus: int, nics: int, pods: int
) -> None:
    claim = one_template(fishplate("claim", "new", "--gpus", str(gpus), "--nics", str(nics), "--for", size))
    got = list(fill(make_fleet([(size, 1)], catalog), claim))
    assert len(got) == pods
    assert all(len(numa_nodes(pod.gpus) | numa_nodes(pod.nics)) == 1 for pod in got)


# -- where one template cannot be --------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "release"), [(GB300, "nvidia-25.8"), (GB300, "nvidia-0.4"), (MI300X, "amd-2025.10")])
def test_a_gpu_driver_without_numa_nodes_is_named_as_the_reason(
    fishplate: Program, catalog: Catalog, size: str, release: str
) -> None:
    answer = fishplate("claim", "new", "--for", size, "--gpu-driver", release)
    printed = templates(answer)
    assert list(printed) == ["1gpu-1nic-numa0", "1gpu-1nic-numa1"]
    driver = "gpu.nvidia.com" if release.startswith("nvidia") else "gpu.amd.com"
    said = f"{driver} of this release publishes no NUMA node"
    assert said in answer.stderr
    assert f"# Not resource.kubernetes.io/numaNode: {said}" in answer.stdout
    fleet = make_fleet([(size, 1)], catalog, gpu_drivers=[release])
    layout = catalog.find(size).layout
    assert layout is not None
    places = {place.address: place.numa for place in layout.gpus}
    for numa, claim in enumerate(printed.values()):
        pods = list(fill(fleet, claim))
        assert len(pods) == len(layout.gpus) // 2
        addresses = [value(pod.gpus[0], "resource.kubernetes.io/pciBusID", "pcieBusID", "pciAddr") for pod in pods]
        assert {places[str(address)] for address in addresses} == {numa}
        assert all(numa_nodes(pod.nics) == {numa} for pod in pods)


def test_numa_nodes_of_gpu_memory_are_seen_and_explained(fishplate: Program) -> None:
    answer = fishplate("claim", "new", "--for", GB300, "--gpu-driver", "nvidia-0.5-memory-nodes")
    assert list(templates(answer)) == ["1gpu-1nic-numa0", "1gpu-1nic-numa1"]
    assert "is 2, 10, 18, 26 on the GPUs and 0, 1 on the NICs" in answer.stderr
    assert "memory-only node without CPUs" in answer.stderr


def test_what_no_numa_node_has_is_bad_input_with_what_could_be(fishplate: Program) -> None:
    answer = fishplate("claim", "new", "--nics", "3", "--for", GB300)
    assert answer.returncode == 2
    assert "one has at most 2 GPUs and 2 NICs" in answer.stderr
    assert answer.stdout == ""


# -- input and output --------------------------------------------------------------------------------------------


def test_claims_are_written_for_slices_of_a_live_cluster(fishplate: Program, catalog: Catalog, tmp_path: Path) -> None:
    """No size is given: the slices tell it where the GPUs' places are needed."""
    slices = make_fleet([(GB300, 2)], catalog, gpu_drivers=["nvidia-0.4"]).slices
    file = tmp_path / "slices.json"
    file.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": slices}))
    answer = fishplate("claim", "new", "--slices", str(file))
    assert list(templates(answer)) == ["1gpu-1nic-numa0", "1gpu-1nic-numa1"]


def test_json_is_a_list_that_holds_the_same(fishplate: Program) -> None:
    as_yaml = documents(fishplate("claim", "new", "--for", MI300X))
    answer = fishplate("claim", "new", "--for", MI300X, "-o", "json")
    document = json.loads(answer.stdout)
    about = document.pop("fishplate")
    assert document == {"apiVersion": "v1", "kind": "List", "items": as_yaml}
    assert about["attribute"] == "gpu.amd.com/numaNode"
    assert "\n".join(about["reasons"]) + "\n" == answer.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("new",), "--for SIZE"),
        (("new", "--for", "Standard_ND128isr_GB301_v6"), "Nearest: Standard_ND128isr_GB300_v6"),
        (("new", "--for", GB300, "--gpu-driver", "nvidia-9"), "known profiles"),
        (("new", "--for", GB300, "--gpu-driver", "amd-1.0"), "other GPUs"),
        (("new", "--fleet", GB300, "--fabric", "nowhere"), "published: "),
        (("new", "--for", GB300, "--fleet", GB300), "--fleet excludes --for"),
        (("new", "--slices", "-", "--gpu-uuid"), "with --for or --fleet"),
        (("new", "--for", GB300, "--name", "Capital"), "lower-case"),
        (("new", "--for", "Standard_HB120rs_v3"), "no node publishes GPUs"),
        (("new", "--slices", "/nonexistent"), "cannot be read"),
        (("examples", "gb301"), "known examples: gb300, mi300x"),
    ],
)
def test_bad_input_says_what_to_write(fishplate: Program, arguments: tuple[str, ...], said: str) -> None:
    answer = fishplate("claim", *arguments)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize("driver", ["nvidia-25.8", "nvidia-0.4", "nvidia-0.5", "amd-2025.10", "amd-1.0"])
def test_what_claim_new_writes_passes_the_linter(fishplate: Program, tmp_path: Path, driver: str) -> None:
    file = tmp_path / "claims.yaml"
    size = GB300 if driver.startswith("nvidia") else MI300X
    file.write_text(fishplate("claim", "new", "--for", size, "--gpu-driver", driver).stdout)
    answer = fishplate("lint", str(file), "--fleet", f"{size}=2", "--gpu-driver", driver)
    assert answer.returncode == 0, answer.stdout
    assert "nothing found" in answer.stdout


def test_the_reasons_tell_how_many_such_pods_an_empty_node_takes(fishplate: Program) -> None:
    assert "An empty node takes 4 such pods." in fishplate("claim", "new", "--for", GB300).stderr
    assert "An empty node takes 2 such pods." in fishplate("claim", "new", "--nics", "2", "--for", GB300).stderr


def test_lint_names_file_and_line(fishplate: Program, tmp_path: Path) -> None:
    file = tmp_path / "claim.yaml"
    text = fishplate("claim", "new", "--for", GB300, "--no-classes").stdout.replace("rdma == true", 'numaNode == "0"')
    file.write_text(text)
    answer = fishplate("lint", str(file), "--fleet", f"{GB300}=1")
    line = next(i for i, each in enumerate(text.splitlines(), 1) if "numaNode ==" in each)
    assert answer.returncode == 1
    assert f"claim-wrong-type  {file}:{line}: 1gpu-1nic" in answer.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "not YAML"),
        ("just text", "not a Kubernetes object"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: a}", "no claim and no pod"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {hostNetwork: often}", "claim.yaml:4"),
        (
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: a}\nspec: {devices: {requests: 3}}",
            "claim.yaml:4",
        ),
    ],
)
def test_lint_refuses_what_is_no_claim(fishplate: Program, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "claim.yaml"
    file.write_text(text)
    answer = fishplate("lint", str(file))
    assert answer.returncode == 2
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr


# -- pods --------------------------------------------------------------------------------------------------------


def test_lint_reads_the_pods_of_every_kind_that_makes_some(fishplate: Program, tmp_path: Path) -> None:
    spec = {"hostNetwork": True, "resourceClaims": [{"name": "nic", "resourceClaimTemplateName": "1nic"}]}
    spec["containers"] = [{"name": "main", "resources": {"claims": [{"name": "nic"}]}}]
    template = {"template": {"spec": spec}}
    bodies = {
        ("v1", "Pod"): spec,
        ("apps/v1", "Deployment"): template,
        ("apps/v1", "StatefulSet"): template,
        ("apps/v1", "DaemonSet"): template,
        ("batch/v1", "Job"): template,
        ("batch/v1", "CronJob"): {"jobTemplate": {"spec": template}},
        ("kubeflow.org/v2beta1", "MPIJob"): {"mpiReplicaSpecs": {"Worker": {"replicas": 2, **template}}},
    }
    claims = fishplate("claim", "new", "--gpus", "0", "--for", GB300).stdout
    objects = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": "p"}, "spec": body}
        for (version, kind), body in bodies.items()
    ]
    file = tmp_path / "all.yaml"
    text = "---\n".join([claims, *(yaml.safe_dump(one) for one in objects)])
    file.write_text(text)
    answer = fishplate("lint", str(file), "-o", "json")
    assert answer.returncode == 1, answer.stderr
    document = json.loads(answer.stdout)
    assert (document["claims"], document["pods"]) == (1, 7)
    places = [one["place"] for one in document["findings"] if one["id"] == "pod-host-network"]
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "hostNetwork" in line]
    assert [place.rpartition(": ")[0] for place in places] == [f"{file}:{line}" for line in lines]
    named = [place.rpartition(": ")[2] for place in places]
    assert named == [f"{kind} p" + (" Worker" if kind == "MPIJob" else "") for _, kind in bodies]


def test_lint_sees_a_device_plugin_on_the_nodes_of_the_claim(
    fishplate: Program, catalog: Catalog, tmp_path: Path
) -> None:
    fleet = make_fleet([(GB300, 1)], catalog)
    status = {"allocatable": {"nvidia.com/gpu": "4", "cpu": "128"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": fleet.nodes[0].name}, "status": status}
    (tmp_path / "claim.yaml").write_text(fishplate("claim", "new", "--for", GB300).stdout)
    argv = ("lint", str(tmp_path / "claim.yaml"), "--slices", str(tmp_path / "all.json"), "-o", "json")
    for amount, code in (("4", 1), ("0", 0)):
        status["allocatable"]["nvidia.com/gpu"] = amount
        items = [*fleet.slices, node]
        (tmp_path / "all.json").write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
        answer = fishplate(*argv)
        assert answer.returncode == code, answer.stdout + answer.stderr
        assert [one["id"] for one in json.loads(answer.stdout)["findings"]] == ["claim-device-plugin"][:code]
