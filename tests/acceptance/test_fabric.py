"""`claim new --fabric auto`: what keeps a job on one fabric, on which evidence, and what is said where nothing can."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import msgspec
import pytest
import yaml

from fishplate.dra import Scene, allocate, profile
from fishplate.hardware.catalog import Catalog
from fishplate.k8s.claim import ResourceClaimTemplate, default_claim
from fishplate.sim.fleet import Fleet, make_fleet, placement_group

Program = Callable[..., CompletedProcess[str]]
GB300 = "Standard_ND128isr_GB300_v6"
MI300X = "Standard_ND96isr_MI300X_v5"
LABEL = "example.com/fabric"
RACK = 18
RULES = profile("1.36")


def auto(fishplate: Program, *args: str, code: int = 0) -> dict[str, Any]:
    """The document of `-o json`."""
    answer = fishplate("claim", "new", "--fabric", "auto", *args, "-o", "json")
    assert answer.returncode == code, answer.stderr
    document: dict[str, Any] = json.loads(answer.stdout)
    return document


def expressions(document: dict[str, Any]) -> str:
    return json.dumps([one for one in document["items"] if one["kind"] == "ResourceClaimTemplate"])


def write_cluster(
    path: Path, fleet: Fleet, *, without: tuple[str, ...] = (), more: tuple[dict[str, Any], ...] = ()
) -> str:
    """As `kubectl get resourceslices,nodes,… -o json` would; nodes `without` have lost their label."""
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node.name, "labels": {} if node.name in without else node.labels},
        }
        for node in fleet.nodes
    ]
    items = [*fleet.slices, *nodes, *more]
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


@pytest.fixture(scope="module")
def labelled(catalog: Catalog) -> Fleet:
    return make_fleet([(GB300, 20)], catalog, fabric_label=LABEL)


# -- a label ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "workers"), [(GB300, 30), (MI300X, 700)])
def test_a_label_on_every_node_gives_pod_affinity_and_an_unpinned_claim(
    fishplate: Program, size: str, workers: int
) -> None:
    nodes = 20 if size == GB300 else 120
    document = auto(fishplate, "--fleet", f"{size}={nodes}", "--fabric-label", LABEL, "--workers", str(workers))
    fabric = document["fishplate"]["fabric"]
    assert (fabric["how"], fabric["label"], fabric["holds"]) == ("pod-affinity", LABEL, True)
    assert "placementGroupId" not in expressions(document)
    template = fabric["podTemplate"]
    (term,) = template["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == LABEL
    assert term["labelSelector"]["matchLabels"] == template["metadata"]["labels"]


def test_fabrics_that_hold_only_a_part_of_the_job_are_left_out(fishplate: Program, catalog: Catalog) -> None:
    big, small = (placement_group(catalog.find(GB300), index) for index in (0, RACK))
    argv = ("--fleet", f"{GB300}=20", "--fabric-label", LABEL, "--workers")
    affinity = auto(fishplate, *argv, "30")["fishplate"]["fabric"]["podTemplate"]["spec"]["affinity"]
    required = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (expression,) = required["nodeSelectorTerms"][0]["matchExpressions"]
    assert expression == {"key": LABEL, "operator": "In", "values": [big]}
    fits_both = auto(fishplate, *argv, "8")["fishplate"]["fabric"]
    assert fits_both["fabric"] == small  # least is torn there
    assert "nodeAffinity" not in fits_both["podTemplate"]["spec"]["affinity"]


def test_a_label_that_holds_the_placement_group_is_found_by_itself(
    fishplate: Program, labelled: Fleet, tmp_path: Path
) -> None:
    file = write_cluster(tmp_path / "all.json", labelled)
    fabric = auto(fishplate, "--slices", file, "--workers", "30")["fishplate"]["fabric"]
    assert (fabric["how"], fabric["label"]) == ("pod-affinity", LABEL)


def test_one_per_node_is_counted_and_written(fishplate: Program) -> None:
    argv = ("--fleet", f"{GB300}=20", "--fabric-label", LABEL, "--one-per-node", "--workers")
    fabric = auto(fishplate, *argv, "18")["fishplate"]["fabric"]
    assert [one["pods"] for one in fabric["fabrics"]] == [18, 2]
    apart = fabric["podTemplate"]["spec"]["affinity"]["podAntiAffinity"]
    assert apart["requiredDuringSchedulingIgnoredDuringExecution"][0]["topologyKey"] == "kubernetes.io/hostname"
    assert auto(fishplate, *argv, "19", code=1)["fishplate"]["fabric"]["holds"] is False


# -- Kueue --------------------------------------------------------------------------------------------------------


def test_a_queue_gives_a_kueue_topology_on_the_label(fishplate: Program) -> None:
    argv = ("--fleet", f"{GB300}=20", "--fabric-label", LABEL, "--workers", "30", "--queue", "gpus")
    document = auto(fishplate, *argv)
    fabric = document["fishplate"]["fabric"]
    (topology,) = (one for one in document["items"] if one["kind"] == "Topology")
    assert [level["nodeLabel"] for level in topology["spec"]["levels"]] == [LABEL, "kubernetes.io/hostname"]
    assert fabric["how"] == "kueue-topology"
    assert fabric["jobLabels"] == {"kueue.x-k8s.io/queue-name": "gpus"}
    annotations = fabric["podTemplate"]["metadata"]["annotations"]
    assert annotations == {"kueue.x-k8s.io/podset-required-topology": LABEL}
    assert "podAffinity" not in fabric["podTemplate"]["spec"]["affinity"]


def test_a_topology_that_exists_is_used_and_not_written_again(
    fishplate: Program, labelled: Fleet, tmp_path: Path
) -> None:
    topology = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Topology",
        "metadata": {"name": "racks"},
        "spec": {"levels": [{"nodeLabel": LABEL}]},
    }
    file = write_cluster(tmp_path / "all.json", labelled, more=(topology,))
    document = auto(fishplate, "--slices", file, "--workers", "30")
    assert {one["kind"] for one in document["items"]} == {"DeviceClass", "ResourceClaimTemplate"}
    assert document["fishplate"]["fabric"]["how"] == "kueue-topology"
    assert "racks" in " ".join(document["fishplate"]["fabric"]["reasons"])


# -- no label -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "nodes", "workers"), [(GB300, 20, 30), (MI300X, 120, 700)])
def test_without_a_label_the_claim_is_pinned_to_the_best_placement_group(
    fishplate: Program, catalog: Catalog, size: str, nodes: int, workers: int
) -> None:
    document = auto(fishplate, "--fleet", f"{size}={nodes}", "--workers", str(workers))
    fabric = document["fishplate"]["fabric"]
    group = placement_group(catalog.find(size), 0)
    assert (fabric["how"], fabric["fabric"], fabric["label"]) == ("pinned-claim", group, None)
    (written,) = (one for one in document["items"] if one["kind"] == "ResourceClaimTemplate")
    claim = default_claim(msgspec.convert(written, ResourceClaimTemplate).as_claim("c"))
    fleet = make_fleet([(size, nodes)], catalog)
    scene = Scene(fleet.world(), RULES)
    fitting = [node.name for node in fleet.nodes if allocate(scene, node, [claim], profile=RULES) is not None]
    assert fitting == [
        node.name for i, node in enumerate(fleet.nodes) if placement_group(catalog.find(size), i) == group
    ]


def test_a_label_that_one_node_lacks_is_not_relied_on(fishplate: Program, labelled: Fleet, tmp_path: Path) -> None:
    file = write_cluster(tmp_path / "all.json", labelled, without=("nd128isr-gb300-v6-3",))
    for more in ((), ("--fabric-label", LABEL)):
        fabric = auto(fishplate, "--slices", file, "--workers", "30", *more)["fishplate"]["fabric"]
        assert fabric["how"] == "pinned-claim"
        assert f"1 of 20 {'nodes lack the label' if more else 'lack'} {LABEL}" in fabric["reasons"][1]
        assert "nd128isr-gb300-v6-3 for one" in fabric["reasons"][1]


def test_a_label_that_spans_two_fabrics_is_not_relied_on(fishplate: Program, labelled: Fleet, tmp_path: Path) -> None:
    file = write_cluster(tmp_path / "all.json", labelled)
    argv = ("--slices", file, "--workers", "30", "--fabric-label", "node.kubernetes.io/instance-type")
    fabric = auto(fishplate, *argv)["fishplate"]["fabric"]
    assert fabric["how"] == "pinned-claim"
    assert "stands on nodes of two placement groups" in fabric["reasons"][1]


def test_what_is_taken_and_what_is_cordoned_is_no_room(fishplate: Program, labelled: Fleet, tmp_path: Path) -> None:
    held = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "held", "namespace": "ns"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}},
        "status": {"allocation": {"devices": {"results": list(_all_gpus("nd128isr-gb300-v6-0"))}}},
    }
    file = write_cluster(tmp_path / "all.json", labelled, more=(held,))
    document = json.loads(Path(file).read_text())
    for item in document["items"]:
        if item["kind"] == "Node" and item["metadata"]["name"].endswith("-19"):
            item["spec"] = {"unschedulable": True}
    Path(file).write_text(json.dumps(document))
    fabric = auto(fishplate, "--slices", file, "--workers", "68")["fishplate"]["fabric"]
    assert [one["pods"] for one in fabric["fabrics"]] == [68, 4]


def _all_gpus(node: str) -> Iterator[dict[str, str]]:
    for index in range(4):
        yield {"request": "gpu", "driver": "gpu.nvidia.com", "pool": node, "device": f"gpu-{index}"}


# -- nothing can --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [(), ("--fabric-label", LABEL)])
def test_a_job_that_no_fabric_holds_is_a_negative_verdict(fishplate: Program, more: tuple[str, ...]) -> None:
    argv = ("claim", "new", "--fabric", "auto", "--fleet", f"{GB300}=20", "--workers", "73", *more)
    answer = fishplate(*argv)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "no single fabric holds 73 workers" in answer.stderr
    assert "holds 72; all 2 together hold 80" in answer.stderr
    document = auto(fishplate, *argv[4:], code=1)
    assert document["items"] == []
    assert [one["holds"] for one in document["fishplate"]["fabric"]["fabrics"]] == [False, False]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--fabric", "auto", "--fleet", GB300), "--workers N"),
        (("--fabric", "auto", "--for", GB300, "--workers", "2"), "a size alone has no fabrics"),
        (("--for", GB300, "--workers", "2"), "it goes with --fabric auto"),
        (("--fleet", GB300, "--fabric", "some", "--queue", "q"), "--queue is about where a job goes"),
    ],
)
def test_options_that_make_no_sense_together_are_refused(fishplate: Program, argv: tuple[str, ...], said: str) -> None:
    answer = fishplate("claim", "new", *argv)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert said in answer.stderr


def test_nodes_that_name_no_fabric_at_all_are_said_to(fishplate: Program, labelled: Fleet, tmp_path: Path) -> None:
    document = json.loads(Path(write_cluster(tmp_path / "all.json", labelled)).read_text())
    for item in document["items"]:
        for device in item.get("spec", {}).get("devices", []):
            device["attributes"].pop("azure.dra.net/placementGroupId", None)
    (tmp_path / "bare.json").write_text(json.dumps(document))
    argv = ("--slices", str(tmp_path / "bare.json"), "--workers", "30")
    answer = fishplate("claim", "new", "--fabric", "auto", *argv)
    assert answer.returncode == 2
    assert "there is no fabric to choose" in answer.stderr
    named = auto(fishplate, *argv, "--fabric-label", LABEL)["fishplate"]["fabric"]
    assert named["how"] == "pod-affinity"  # the label alone tells the fabrics


# -- pinned by hand, and what people read ------------------------------------------------------------------------


def test_a_size_alone_can_be_pinned_to_a_fabric_that_only_the_user_knows(fishplate: Program) -> None:
    answer = fishplate("claim", "new", "--for", GB300, "--fabric", "2b4b6af0-0000")
    assert answer.returncode == 0, answer.stderr
    assert 'placementGroupId == "2b4b6af0-0000"' in answer.stdout


def test_the_comment_above_the_template_says_what_the_job_needs(fishplate: Program) -> None:
    argv = ("--fleet", f"{GB300}=20", "--fabric-label", LABEL, "--workers", "30", "--job", "train")
    answer = fishplate("claim", "new", "--fabric", "auto", *argv)
    comment = [line.removeprefix("#").removeprefix(" ") for line in answer.stdout.splitlines() if line.startswith("#")]
    start = comment.index("Its pod template needs:")
    assert (
        yaml.safe_load("\n".join(comment[start + 1 :])) == auto(fishplate, *argv)["fishplate"]["fabric"]["podTemplate"]
    )
    assert "Pod affinity keeps the 30 workers on one fabric" in answer.stderr
    assert "the first worker decides the fabric" in answer.stderr
