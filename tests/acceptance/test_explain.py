"""What `cel`, `explain` and `capacity` must show."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

Program = Callable[..., CompletedProcess[str]]
GB300 = "Standard_ND128isr_GB300_v6"
MI300X = "Standard_ND96isr_MI300X_v5"
DRANET = 'device.attributes["dra.net"]'


def template(
    name: str, requests: list[dict[str, Any]], constraints: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    devices: dict[str, Any] = {"requests": requests} | ({"constraints": constraints} if constraints else {})
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": devices}},
    }


def request(name: str, device_class: str, *expressions: str, count: int = 1) -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": device_class, "count": count}
    if expressions:
        exactly["selectors"] = [{"cel": {"expression": expression}} for expression in expressions]
    return {"name": name, "exactly": exactly}


def write(path: Path, *objects: dict[str, Any]) -> str:
    path.write_text("---\n".join(yaml.safe_dump(one) for one in objects))
    return str(path)


def explain(fishplate: Program, *args: str) -> dict[str, Any]:
    answer = fishplate("explain", *args, "-o", "json")
    assert answer.stdout, answer.stderr
    document: dict[str, Any] = json.loads(answer.stdout)
    return document


# -- cel ---------------------------------------------------------------------------------------------------------


def test_a_selector_is_run_on_every_device(fishplate: Program) -> None:
    answer = fishplate("cel", f"{DRANET}.numaNode == 0", "--fleet", f"{GB300}=1", "-o", "json")
    devices = json.loads(answer.stdout)["devices"]
    results = {one["device"]: one["result"] for one in devices if one["driver"] == "dra.net"}
    assert results == {f"pci-010{n}-00-00-0": n <= 2 for n in (1, 2, 3, 4)}
    # On GPUs the domain is unknown: an empty map, and so a missing key.
    gpus = [one for one in devices if one["driver"] == "gpu.nvidia.com"]
    assert {one["error"] for one in gpus} == {"no such key: numaNode"}
    assert {one["result"] for one in gpus} == {None}
    assert answer.returncode == 1


def test_a_compile_error_has_its_place_and_exit_2(fishplate: Program) -> None:
    answer = fishplate("cel", "device.driver ==", "-o", "json")
    assert answer.returncode == 2
    error = json.loads(answer.stdout)["error"]
    assert error["stage"] == "compile"
    assert error["message"].startswith("compilation failed: ERROR: <input>:1:17:")
    plain = fishplate("cel", "device.driver ==")
    assert plain.returncode == 2
    assert "^" in plain.stderr


def test_list_attributes_need_their_gate(fishplate: Program, tmp_path: Path) -> None:
    """The scheduler compiles the expression either way; without the gate it cannot read such a device."""
    one = yaml.safe_load(fishplate("inspect", "--size", "Standard_HB120rs_v3", "-o", "slice").stdout)
    one["spec"]["devices"][0]["attributes"]["dra.net/rails"] = {"ints": [1, 3]}
    file = write(tmp_path / "slices.yaml", one)
    argv = ("cel", 'device.attributes["dra.net"].rails.includes(3)', "--slices", file, "-o", "json")
    without, with_gate = fishplate(*argv), fishplate(*argv, "--feature-gates", "DRAListTypeAttributes=true")
    assert json.loads(without.stdout)["devices"][0]["error"] == "attribute dra.net/rails: unsupported attribute value"
    assert json.loads(with_gate.stdout)["devices"][0]["result"] is True


def test_the_failing_clause_is_shown_with_what_it_saw(fishplate: Program) -> None:
    answer = fishplate("cel", f'device.driver == "dra.net" && {DRANET}.numaNode == 1', "--fleet", f"{GB300}=1")
    assert f"{DRANET}.numaNode == 1: false; {DRANET}.numaNode is 0" in answer.stdout


# -- explain -----------------------------------------------------------------------------------------------------


def test_a_claim_that_fits_says_what_it_gets_and_how_near(fishplate: Program, tmp_path: Path) -> None:
    gpu = request("gpu", "gpu.nvidia.com", 'device.attributes["resource.kubernetes.io"].pciBusID == "0008:06:00.0"')
    near, far = (request("nic", "dranet.net", f'{DRANET}.rdmaDevice == "mlx5_{n}"') for n in (0, 2))
    for nic, relation in ((near, "NODE"), (far, "SYS")):
        file = write(tmp_path / f"{relation}.yaml", template("pair", [gpu, nic]))
        document = explain(fishplate, file, "--fleet", f"{GB300}=2")
        assert document["outcome"] == "allocated"
        (group,) = document["groups"]
        assert len(group["nodes"]) == 2
        assert [one["device"] for one in group["allocations"]] == ["gpu-0", f"pci-010{1 if nic is near else 3}-00-00-0"]
        assert [one["relation"] for one in group["relations"]] == [relation]


# Three sizes, three troubles: what is said of each, by the number of its nodes.
TEN_THOUSAND = f"{GB300}=5000,{MI300X}=4000,Standard_HB120rs_v3=1000"
TROUBLES = {
    5000: [
        "each request could be met alone, but not all together; no further than gpu of claim four, after 2 devices were"
        " chosen",
        "chosen already for this pod",
        "constraint #0: resource.kubernetes.io/numaNode is 1, devices already chosen have 0",
    ],
    4000: ["no device of its class is here"],
    1000: ["no device of its class is here", "1 of 4 wanted devices are suitable"],
}
WAY_OUT = "claim four: drop constraint #0 (resource.kubernetes.io/numaNode)"


@pytest.fixture
def impossible(tmp_path: Path) -> str:
    """Four GPUs and four NICs on one NUMA node: a claim that nobody can meet."""
    gpu = request("gpu", "gpu.nvidia.com", count=4)
    nic = request("nic", "dranet.net", f"{DRANET}.rdma", count=4)
    same = [{"matchAttribute": "resource.kubernetes.io/numaNode"}]
    return write(tmp_path / "claim.yaml", template("four", [gpu, nic], same))


def test_a_claim_nobody_can_meet_is_a_screenful_on_ten_thousand_nodes(fishplate: Program, impossible: str) -> None:
    answer = fishplate("explain", impossible, "--fleet", TEN_THOUSAND)
    assert answer.returncode == 1, answer.stderr
    assert "does not fit, on 0 of 10000 nodes" in answer.stdout
    assert len(answer.stdout.splitlines()) <= 50
    for nodes, said in TROUBLES.items():
        assert f"{nodes} nodes (" in answer.stdout
        assert all(text in answer.stdout for text in said)
    assert f"would fit after one change: {WAY_OUT}" in answer.stdout


def test_json_says_the_same_of_ten_thousand_nodes(fishplate: Program, impossible: str) -> None:
    document = explain(fishplate, impossible, "--fleet", TEN_THOUSAND)
    assert document["outcome"] == "does-not-fit"
    told = {len(one["nodes"]): [reason["text"] for reason in one["reasons"]] for one in document["groups"]}
    assert told == TROUBLES
    changes = {len(one["nodes"]): [change["text"] for change in one["changes"]] for one in document["groups"]}
    assert changes == {5000: [WAY_OUT], 4000: [], 1000: []}


@pytest.mark.parametrize(
    ("name", "devices", "relations"),
    [
        ("1nic-aligned", ["gpu-0", "pci-0101-00-00-0"], ["NODE"]),
        ("1nic-unaligned", ["gpu-0", "pci-0103-00-00-0"], ["SYS"]),
        ("2nic-aligned", ["gpu-0", "pci-0101-00-00-0", "pci-0102-00-00-0"], ["NODE", "NODE"]),
    ],
)
def test_the_published_gb300_templates_are_explained_as_they_were_measured(
    fishplate: Program, tmp_path: Path, name: str, devices: list[str], relations: list[str]
) -> None:
    (tmp_path / "examples.yaml").write_text(fishplate("claim", "examples", "gb300").stdout)
    document = explain(fishplate, str(tmp_path / "examples.yaml"), "--fleet", f"{GB300}=2")
    (subject,) = (one for one in document["subjects"] if one["subject"] == name)
    (group,) = subject["groups"]
    assert [one["device"] for one in group["allocations"]] == devices
    assert [one["relation"] for one in group["relations"]] == relations
    assert len(group["nodes"]) == 2


def test_the_published_fabric_template_fits_on_that_fabric_alone(fishplate: Program, tmp_path: Path) -> None:
    capacity = write(tmp_path / "nic.yaml", template("nic", [request("nic", "dranet.net", f"{DRANET}.rdma")]))
    rooms = json.loads(fishplate("capacity", capacity, "--fleet", f"{GB300}=20", "-o", "json").stdout)["fabrics"]
    fabric = next(room["fabric"] for room in rooms if room["nodes"] == 2)
    (tmp_path / "examples.yaml").write_text(fishplate("claim", "examples", "gb300", "--fabric", fabric).stdout)
    document = explain(fishplate, str(tmp_path / "examples.yaml"), "--fleet", f"{GB300}=20")
    (subject,) = (one for one in document["subjects"] if one["subject"] == "ib-same-fabric")
    groups = {group["outcome"]: group for group in subject["groups"]}
    assert groups["allocated"]["nodes"] == ["nd128isr-gb300-v6-18", "nd128isr-gb300-v6-19"]
    assert groups["allocated"]["fabrics"] == [fabric]
    assert "placementGroupId" in groups["does-not-fit"]["reasons"][0]["text"]


def test_the_published_mi300x_templates_are_explained(fishplate: Program, tmp_path: Path) -> None:
    (tmp_path / "examples.yaml").write_text(fishplate("claim", "examples", "mi300x").stdout)
    document = explain(fishplate, str(tmp_path / "examples.yaml"), "--fleet", f"{MI300X}=2")
    got = {one["subject"]: [d["device"] for d in one["groups"][0]["allocations"]] for one in document["subjects"]}
    nics = [f"pci-010{n}-00-00-0" for n in range(1, 9)]
    assert got == {"4nic-same-numa": nics[:4], "4nic-cross-numa": nics[4:], "8nic-all": nics}


def test_nodes_that_a_pod_excludes_are_a_change_that_is_offered(fishplate: Program, tmp_path: Path) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "nodeSelector": {"node.kubernetes.io/instance-type": MI300X},
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
            "containers": [{"name": "main"}],
        },
    }
    claim = template("gpu", [request("gpu", "gpu.nvidia.com")])
    file = write(tmp_path / "pod.yaml", pod, claim)
    document = explain(fishplate, file, "--fleet", f"{GB300}=3,{MI300X}=2")
    assert document["outcome"] == "does-not-fit"
    assert sum(len(group["nodes"]) for group in document["groups"]) == 2
    (change,) = document["changes"]
    assert change["id"] == "use-other-nodes"
    assert "nd128isr-gb300-v6-0 or another of 3 nodes" in change["text"]
    pods = json.loads(fishplate("capacity", file, "--fleet", f"{GB300}=3,{MI300X}=2", "-o", "json").stdout)["pods"]
    assert pods == 0


def test_changes_are_proven(fishplate: Program, tmp_path: Path) -> None:
    """A clause and a constraint each stand in the way; dropping one alone does not help, asking for less does."""
    nic = request("nic", "dranet.net", f"{DRANET}.rdma && {DRANET}.numaNode == 0", count=3)
    same = [{"matchAttribute": "resource.kubernetes.io/numaNode"}]
    both = explain(fishplate, write(tmp_path / "both.yaml", template("c", [nic], same)), "--fleet", f"{GB300}=1")
    assert [one["id"] for one in both["groups"][0]["changes"]] == ["one-device-less"]
    alone = explain(fishplate, write(tmp_path / "alone.yaml", template("c", [nic])), "--fleet", f"{GB300}=1")
    assert {one["id"] for one in alone["groups"][0]["changes"]} == {"one-device-less", "drop-clause"}


def test_an_error_that_waits_behind_a_fit_is_foreseen(fishplate: Program, tmp_path: Path) -> None:
    """The first device matches, so the scheduler never gets to those that lack the attribute. Until it is taken."""
    slices = [yaml.safe_load(fishplate("inspect", "--size", GB300, "-o", "slice").stdout)]
    del slices[0]["spec"]["devices"][2]["attributes"]["dra.net/rail"]
    nic = request("nic", "dranet.net", f"{DRANET}.rail >= 0")
    devices = write(tmp_path / "slices.yaml", *slices)
    document = explain(fishplate, write(tmp_path / "c.yaml", template("c", [nic])), "--slices", devices)
    assert document["outcome"] == "allocated"
    (warning,) = document["warnings"]
    assert (warning["devices"], "no such key: rail" in warning["message"]) == (1, True)


def test_a_selector_that_fails_ends_the_whole_attempt(fishplate: Program, tmp_path: Path) -> None:
    nic = request("nic", "dranet.net", f"{DRANET}.numaNod == 0")
    document = explain(fishplate, write(tmp_path / "c.yaml", template("c", [nic])), "--fleet", f"{GB300}=2")
    assert document["outcome"] == "error"
    assert "no such key: numaNod" in document["groups"][0]["reasons"][0]["text"]


def test_all_claims_of_a_pod_are_explained_together(fishplate: Program, tmp_path: Path) -> None:
    claims = [{"name": name, "resourceClaimTemplateName": "two"} for name in ("a", "b", "c")]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "greedy"},
        "spec": {"resourceClaims": claims, "containers": [{"name": "main", "image": "x"}]},
    }
    two = template("two", [request("nic", "dranet.net", f"{DRANET}.rdma", count=2)])
    document = explain(fishplate, write(tmp_path / "pod.yaml", pod, two), "--fleet", f"{GB300}=1")
    assert document["outcome"] == "does-not-fit"
    reasons = document["groups"][0]["reasons"]
    assert [reason["id"] for reason in reasons] == ["no-completion", "chosen-already"]
    assert "greedy-c, after 4 devices" in reasons[0]["text"]


def test_a_device_held_by_a_claim_is_named_and_waiting_for_it_is_offered(fishplate: Program, tmp_path: Path) -> None:
    four = template("four", [request("nic", "dranet.net", f"{DRANET}.rdma", count=4)])
    slices = yaml.safe_load(fishplate("inspect", "--size", GB300, "-o", "slice", "--node", "n0").stdout)
    holder = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "holder", "namespace": "ns"},
        "spec": four["spec"]["spec"],
        "status": {
            "allocation": {
                "devices": {
                    "results": [{"request": "nic", "driver": "dra.net", "pool": "n0", "device": "pci-0102-00-00-0"}]
                }
            }
        },
    }
    document = explain(fishplate, write(tmp_path / "c.yaml", four, holder, slices))
    (group,) = document["groups"]
    first = group["reasons"][0]
    assert (first["text"], first["example"]) == ("in use", "pci-0102-00-00-0 by claim ns/holder")
    assert "wait-for-claim" in {change["id"] for change in group["changes"]}


# -- capacity ----------------------------------------------------------------------------------------------------


def test_capacity_counts_pods_per_fabric(fishplate: Program, tmp_path: Path) -> None:
    file = write(tmp_path / "c.yaml", template("two", [request("nic", "dranet.net", f"{DRANET}.rdma", count=2)]))
    answer = fishplate("capacity", file, "--fleet", f"{GB300}=20", "--workers", "30", "-o", "json")
    assert answer.returncode == 0, answer.stderr
    document = json.loads(answer.stdout)
    assert document["pods"] == 40
    assert [(one["nodes"], one["pods"], one["holds"]) for one in document["fabrics"]] == [(18, 36, True), (2, 4, False)]
    assert document["best"] == document["fabrics"][0]["fabric"]
    assert fishplate("capacity", file, "--fleet", f"{GB300}=20", "--workers", "37").returncode == 1
    single = fishplate("capacity", file, "--fleet", f"{GB300}=20", "--one-per-node", "-o", "json")
    assert json.loads(single.stdout)["pods"] == 20


# -- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not YAML"),
        ("hello: world\n", "not a Kubernetes object"),
        ("", "the file is empty"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n", "Secret is of no use here"),
        (
            "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nmetadata: {name: x}\nspec: {}\n",
            "'resource.k8s.io/v1beta1' is not 'resource.k8s.io/v1'",
        ),
    ],
)
def test_what_is_no_manifest_is_refused(fishplate: Program, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    answer = fishplate("explain", str(tmp_path / "x.yaml"), "--fleet", f"{GB300}=1")
    assert answer.returncode == 2
    assert said in answer.stderr
    assert "x.yaml" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_misspelt_field_is_named_with_line_path_and_nearest(fishplate: Program, tmp_path: Path) -> None:
    wrong = template("c", [{"name": "nic", "exactly": {"deviceClasName": "dranet.net", "count": "two"}}])
    answer = fishplate("explain", write(tmp_path / "c.yaml", wrong), "--fleet", f"{GB300}=1")
    assert answer.returncode == 2
    assert "spec.spec.devices.requests[0].exactly.deviceClasName: unknown field" in answer.stderr
    assert "did you mean deviceClassName?" in answer.stderr
    assert "exactly.count: Expected `int`, got `str`" in answer.stderr
    assert "line " in answer.stderr


@pytest.mark.parametrize("command", ["explain", "capacity", "lint"])
@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("spec: {devices: {requests: [{nam: x}]}}", "spec.devices.requests[0].nam: unknown field 'nam' (did you mean"),
        ("spec: {devices: {requests: {a: 1}}}", "spec.devices.requests: Expected `array`, got `object`"),
        ("spec: 3", "spec: expected a mapping of fields, got int"),
        ("", "spec: this field is missing"),
    ],
)
def test_a_mistake_in_a_later_document_has_its_own_line(
    fishplate: Program, tmp_path: Path, command: str, second: str, said: str
) -> None:
    head = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: x}\n"
    (tmp_path / "x.yaml").write_text(f"{head}spec: {{devices: {{requests: []}}}}\n---\n{head}{second}\n")
    answer = fishplate(command, str(tmp_path / "x.yaml"), "--fleet", f"{GB300}=1")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert said in answer.stderr
    assert "x.yaml" in answer.stderr
    assert f"line {9 if second else 6}: spec" in answer.stderr


def test_an_unknown_size_in_a_fleet_names_the_nearest(fishplate: Program) -> None:
    answer = fishplate("cel", "true", "--fleet", "Standard_ND128isr_GB30_v6=1")
    assert answer.returncode == 2
    assert GB300 in answer.stderr


def test_without_devices_or_a_cluster_there_is_a_clear_word(tmp_path: Path) -> None:
    import os
    import subprocess
    import sys

    file = write(tmp_path / "c.yaml", template("c", [request("nic", "dranet.net")]))
    env = os.environ | {"KUBECONFIG": str(tmp_path / "none"), "HOME": str(tmp_path)}
    argv = [sys.executable, "-m", "fishplate", "explain", file]
    answer = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False, env=env)
    assert answer.returncode == 2
    assert "no cluster to talk to" in answer.stderr
    assert "Traceback" not in answer.stderr
