"""The allocator's answer is the real kube-scheduler's, and `explain pod` says what it did and why."""

import base64
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from fishplate.dra import Scene, World, allocate, profile
from fishplate.dra.fleet import Verdict, survey
from fishplate.hardware.catalog import load_catalog
from fishplate.k8s.claim import ResourceClaim, ResourceClaimSpec, default_claim
from fishplate.k8s.resource import ObjectMeta
from fishplate.sim.fleet import Fleet, make_fleet, parse_fleet
from lab.api import ApiError
from lab.bare import SLICES, bare_node, create_all
from lab.session import Lab

pytestmark = pytest.mark.lab

NAMESPACE = "parity"
LABEL = {"fishplate.test/fleet": "parity"}
DRA = "/apis/resource.k8s.io/v1"
CLAIMS = f"{DRA}/namespaces/{NAMESPACE}/resourceclaims"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
STANDARD_NUMA = "resource.kubernetes.io/numaNode"
PODS_TRIED = 200


@pytest.fixture(scope="module")
def fleet(control_plane: Lab) -> Iterator[Fleet]:
    """Five nodes of two sizes, as bare Node objects with the slices their drivers would publish."""
    made = make_fleet(parse_fleet("Standard_ND128isr_GB300_v6=3,Standard_ND96isr_MI300X_v5=2"), load_catalog())
    api = control_plane.api
    create(control_plane, "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for one in made.classes:
        create(control_plane, f"{DRA}/deviceclasses", plain(one))
    create_all(api, "/api/v1/nodes", [bare_node(node.name, {**node.labels, **LABEL}) for node in made.nodes])
    create_all(api, SLICES, [plain(one) for one in made.slices])
    yield made
    for published in made.slices:
        api.request("DELETE", f"{SLICES}/{published.metadata.name}")
    for node in made.nodes:
        api.request("DELETE", f"/api/v1/nodes/{node.name}")


def plain(value: object) -> dict[str, Any]:
    built = msgspec.to_builtins(value)
    assert isinstance(built, dict)
    return built


def create(lab: Lab, path: str, body: dict[str, Any]) -> None:
    """Other tests may have made it already."""
    try:
        lab.api.request("POST", path, body)
    except ApiError as error:
        if error.status != 409:
            raise


# -- random claims -----------------------------------------------------------------------------------------------

SELECTORS = (
    'device.attributes["dra.net"].rdma',
    'device.attributes["dra.net"].numaNode == 0',
    'device.attributes["dra.net"].numaNode == 1',
    'device.attributes["dra.net"].rail >= 2',
    'device.attributes["dra.net"].?rdmaDevice.orValue("") == "mlx5_1"',
    'device.attributes["azure.dra.net"].vmSize.contains("MI300X")',
    'device.attributes["dra.net"].rateGbps > 400',
)


def random_spec(rng: random.Random) -> dict[str, Any]:
    """A claim as people write them: some GPUs, some NICs, now and then tied together; sometimes more than there is."""
    requests: list[dict[str, Any]] = []
    vendor = rng.choice(["gpu.nvidia.com", "gpu.amd.com", ""])
    if vendor:
        requests.append(exactly("gpu", vendor, rng.choice([1, 1, 1, 2, 4])))
    if not vendor or rng.random() < 0.8:
        chosen = rng.sample(SELECTORS, rng.choice([0, 1, 1, 2]))
        requests.append(exactly("nic", "dranet.net", rng.choice([1, 1, 2, 4, 5]), *chosen))
    if rng.random() < 0.15:
        requests[-1] = {
            "name": "either",
            "firstAvailable": [
                {"name": "many", "deviceClassName": "dranet.net", "count": 4},
                {"name": "one", "deviceClassName": "dranet.net", "count": 1},
            ],
        }
    key = "gpu.amd.com/numaNode" if vendor == "gpu.amd.com" else STANDARD_NUMA
    constraints = [{"matchAttribute": key}] if rng.random() < 0.5 else []
    if len(requests) == 1 and rng.random() < 0.2:
        constraints = [{"distinctAttribute": "dra.net/rail"}] if not vendor else constraints
    return {"devices": {"requests": requests} | ({"constraints": constraints} if constraints else {})}


def exactly(name: str, device_class: str, count: int, *expressions: str) -> dict[str, Any]:
    wanted: dict[str, Any] = {"deviceClassName": device_class, "count": count}
    if expressions:
        wanted["selectors"] = [{"cel": {"expression": one}} for one in expressions]
    return {"name": name, "exactly": wanted}


def pod(name: str, *claims: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": LABEL,
            "resourceClaims": [{"name": claim, "resourceClaimName": claim} for claim in claims],
            "containers": [{"name": "c", "image": "none", "resources": {"claims": [{"name": one} for one in claims]}}],
        },
    }


def await_decision(lab: Lab, name: str) -> str:
    """The node the scheduler chose, "" if it found none. Its word, not a time-out, decides."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found: Any = lab.api.request("GET", f"{PODS}/{name}")
        if found["spec"].get("nodeName"):
            return str(found["spec"]["nodeName"])
        for condition in found["status"].get("conditions", []):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return ""
        time.sleep(0.02)
    raise AssertionError(f"the scheduler said nothing about {name}")


def devices(claim: ResourceClaim) -> list[tuple[str, str, str, str]]:
    assert claim.status.allocation is not None
    return [(r.request, r.driver, r.pool, r.device) for r in claim.status.allocation.devices.results]


def test_two_hundred_random_pods_get_the_devices_we_say(control_plane: Lab, fleet: Fleet) -> None:
    rng = random.Random(20_261_115)
    rules = profile("1.36")
    held: dict[str, ResourceClaim] = {}
    scheduled = pending = 0
    for number in range(PODS_TRIED):
        names = [f"c{number}-{i}" for i in range(rng.choice([1, 1, 1, 2]))]
        specs = [random_spec(rng) for _ in names]
        claims = [
            default_claim(
                ResourceClaim(
                    metadata=ObjectMeta(name=name, namespace=NAMESPACE), spec=msgspec.convert(spec, ResourceClaimSpec)
                )
            )
            for name, spec in zip(names, specs, strict=True)
        ]
        scene = Scene(World(slices=fleet.slices, classes=fleet.classes, claims=tuple(held.values())), rules)
        for name, spec in zip(names, specs, strict=True):
            control_plane.api.request("POST", CLAIMS, {"metadata": {"name": name}, "spec": spec})
        control_plane.api.request("POST", PODS, pod(f"p{number}", *names))
        node = await_decision(control_plane, f"p{number}")
        if node:
            scheduled += 1
            ours = allocate(scene, next(one for one in fleet.nodes if one.name == node), claims, profile=rules)
            assert ours is not None, (number, node, specs)
            for name, result in zip(names, ours.results, strict=True):
                raw = control_plane.api.request("GET", f"{CLAIMS}/{name}")
                theirs = msgspec.convert(raw, ResourceClaim)
                mine = [(r.request, r.driver, r.pool, r.device) for r in result.devices.results]
                assert devices(theirs) == mine, (number, node, specs)
                held[name] = theirs
        else:
            pending += 1
            verdicts = {group.verdict for group in survey(scene, fleet.nodes, claims).groups}
            assert verdicts <= {Verdict.DOES_NOT_FIT, Verdict.ERROR}, (number, specs)
            remove(control_plane, f"p{number}", names)
        if rng.random() < 0.5 and held:
            gone = rng.choice(sorted(held))
            index = gone.partition("-")[0].removeprefix("c")
            mates = [name for name in held if name.partition("-")[0] == f"c{index}"]
            remove(control_plane, f"p{index}", mates)
            for name in mates:
                del held[name]
    for name in list(held):
        remove(control_plane, f"p{name.partition('-')[0].removeprefix('c')}", [name])
    assert scheduled >= 50
    assert pending >= 20


def remove(lab: Lab, name: str, claims: list[str]) -> None:
    """Pod and claims, and wait until the devices are free: the next answer depends on it."""
    paths = [f"{PODS}/{name}?gracePeriodSeconds=0", *(f"{CLAIMS}/{claim}" for claim in claims)]
    for path in paths:
        try:
            lab.api.request("DELETE", path)
        except ApiError as error:
            if error.status != 404:
                raise
    deadline = time.monotonic() + 60
    while any(exists(lab, path.partition("?")[0]) for path in paths):
        assert time.monotonic() < deadline, paths
        time.sleep(0.02)


def exists(lab: Lab, path: str) -> bool:
    try:
        lab.api.request("GET", path)
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return True


# -- explain pod -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reader(control_plane: Lab, fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of somebody who may get and list, and nothing else."""
    rules = [
        {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list"]},
        {
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourceslices", "resourceclaims", "deviceclasses", "resourceclaimtemplates"],
            "verbs": ["get", "list"],
        },
    ]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    create(control_plane, f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "reader"}})
    create(control_plane, f"{rbac}/clusterroles", {"metadata": {"name": "parity-reader"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "parity-reader"}
    binding = {"metadata": {"name": "parity-reader"}, "subjects": [subject], "roleRef": role}
    create(control_plane, f"{rbac}/clusterrolebindings", binding)
    token = control_plane.kubectl("create", "token", "reader", "-n", NAMESPACE).stdout.strip()
    authority = base64.b64encode(Path(control_plane.authority).read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [
            {"name": "lab", "cluster": {"server": control_plane.url, "certificate-authority-data": authority}}
        ],
        "users": [{"name": "reader", "user": {"token": token}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "reader"}}],
    }
    file = tmp_path_factory.mktemp("reader") / "config"
    file.write_text(json.dumps(config))
    return {**os.environ, "KUBECONFIG": str(file)}


def run(reader: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("kubectl-fishplate")
    return subprocess.run([str(program), *args], env=reader, capture_output=True, text=True, timeout=60, check=False)


def explain_pod(reader: dict[str, str], name: str) -> dict[str, Any]:
    done = run(reader, "explain", "pod", name, "-n", NAMESPACE, "-o", "json")
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


class Cause(NamedTuple):
    """Why a pod waits: its claim, and what is to be said about it."""

    devices: dict[str, Any]
    outcome: str
    words: str
    change: str = ""


def together(key: str, *requests: dict[str, Any]) -> dict[str, Any]:
    return {"requests": list(requests), "constraints": [{"matchAttribute": key}]}


# On slices of both GPU drivers: NVIDIA's, which has the standard NUMA node, and AMD's, which has its own.
CAUSES = {
    "too-many": Cause(
        {"requests": [exactly("gpu", "gpu.amd.com", 9)]}, "does-not-fit", "8 of 9 wanted", "one-device-less"
    ),
    "no-such-place": Cause(
        {"requests": [exactly("nic", "dranet.net", 1, 'device.attributes["dra.net"].numaNode == 7')]},
        "does-not-fit",
        "numaNode == 7 is false",
        "drop-clause",
    ),
    "misspelt": Cause(
        {"requests": [exactly("gpu", "gpu.nvidia.com", 1, 'device.attributes["gpu.nvidia.com"].brnd == "Nvidia"')]},
        "error",
        "no such key: brnd",
    ),
    "no-such-class": Cause({"requests": [exactly("nic", "infiniband", 1)]}, "error", "infiniband"),
    "too-many-together": Cause(
        together(STANDARD_NUMA, exactly("gpu", "gpu.nvidia.com", 3), exactly("nic", "dranet.net", 1)),
        "does-not-fit",
        "devices already chosen have",
        "drop-constraint",
    ),
    "not-in-common": Cause(
        together(STANDARD_NUMA, exactly("gpu", "gpu.amd.com", 1), exactly("nic", "dranet.net", 1)),
        "does-not-fit",
        STANDARD_NUMA,
        "drop-constraint",
    ),
}


@pytest.mark.parametrize("name", CAUSES)
def test_explain_says_why_a_pod_is_pending(control_plane: Lab, fleet: Fleet, reader: dict[str, str], name: str) -> None:
    cause = CAUSES[name]
    control_plane.api.request("POST", CLAIMS, {"metadata": {"name": name}, "spec": {"devices": cause.devices}})
    control_plane.api.request("POST", PODS, pod(name, name))
    try:
        assert await_decision(control_plane, name) == ""
        document = explain_pod(reader, name)
        assert document["outcome"] == cause.outcome
        assert cause.words in json.dumps([group["reasons"] for group in document["groups"]])
        changes = {change["id"] for group in document["groups"] for change in group["changes"]}
        assert not cause.change or cause.change in changes
    finally:
        remove(control_plane, name, [name])


@pytest.mark.parametrize(
    ("driver", "key"), [("gpu.nvidia.com", STANDARD_NUMA), ("gpu.amd.com", "gpu.amd.com/numaNode")]
)
def test_explain_tells_what_a_running_pod_has_and_how_near_it_is(
    control_plane: Lab, fleet: Fleet, reader: dict[str, str], driver: str, key: str
) -> None:
    name = driver.replace(".", "-")
    wanted = together(key, exactly("gpu", driver, 1), exactly("nic", "dranet.net", 1))
    control_plane.api.request("POST", CLAIMS, {"metadata": {"name": name}, "spec": {"devices": wanted}})
    control_plane.api.request("POST", PODS, pod(name, name))
    try:
        node = await_decision(control_plane, name)
        assert node
        document = explain_pod(reader, name)
        (group,) = document["groups"]
        assert (document["outcome"], group["nodes"]) == ("allocated", [node])
        assert [pair["relation"] for pair in group["relations"]] == ["NODE"]
        raw = control_plane.api.request("GET", f"{CLAIMS}/{name}")
        theirs = [device for *_, device in devices(msgspec.convert(raw, ResourceClaim))]
        assert [one["device"] for one in group["allocations"]] == theirs
    finally:
        remove(control_plane, name, [name])


def test_claims_for_the_live_cluster_are_taken_by_its_api_server(
    control_plane: Lab, fleet: Fleet, reader: dict[str, str], tmp_path: Path
) -> None:
    """One template for both vendors; kubectl passes over the field that says why."""
    done = run(reader, "claim", "new", "--vendor", "any", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert "One template serves the GPUs of nvidia and amd" in done.stderr
    (tmp_path / "claims.json").write_text(done.stdout)
    argv = ("apply", "--dry-run=server", "-n", NAMESPACE, "-f", str(tmp_path / "claims.json"))
    assert "resourceclaimtemplate.resource.k8s.io/1gpu-1nic created" in control_plane.kubectl(*argv).stdout


def test_a_job_is_kept_on_a_fabric_of_the_live_cluster(
    control_plane: Lab, fleet: Fleet, reader: dict[str, str]
) -> None:
    argv = ("claim", "new", "--vendor", "amd", "--fabric", "auto", "-o", "json", "--workers")
    fabric = json.loads(run(reader, *argv, "16").stdout)["fishplate"]["fabric"]
    assert (fabric["how"], fabric["holds"]) == ("pinned-claim", True)
    refused = run(reader, *argv, "17")
    assert refused.returncode == 1
    assert "no single fabric holds 17 workers" in refused.stderr


def test_explain_names_the_claim_that_holds_the_devices(
    control_plane: Lab, fleet: Fleet, reader: dict[str, str]
) -> None:
    """Everything of one size is taken; the next pod waits, and is told for whom."""
    mi300x = 'device.attributes["azure.dra.net"].vmSize.contains("MI300X")'
    wanted = {"devices": {"requests": [exactly("nic", "dranet.net", 8, mi300x)]}}
    for name in ("first", "second", "third"):
        control_plane.api.request("POST", CLAIMS, {"metadata": {"name": name}, "spec": wanted})
        control_plane.api.request("POST", PODS, pod(name, name))
        assert bool(await_decision(control_plane, name)) == (name != "third")
    try:
        document = explain_pod(reader, "third")
        assert document["outcome"] == "does-not-fit"
        text = json.dumps(document["groups"])
        assert f"by claim {NAMESPACE}/first" in text or f"by claim {NAMESPACE}/second" in text
        assert "wait-for-claim" in text
        running = explain_pod(reader, "first")
        assert running["outcome"] == "allocated"
        assert any("runs on" in note for note in running["notes"])
        told = sorted(one["device"] for one in running["groups"][0]["allocations"])
        raw = control_plane.api.request("GET", f"{CLAIMS}/first")
        assert told == sorted(device for *_, device in devices(msgspec.convert(raw, ResourceClaim)))
    finally:
        for name in ("first", "second", "third"):
            remove(control_plane, name, [name])


def test_a_reader_may_not_write(control_plane: Lab, reader: dict[str, str]) -> None:
    denied = control_plane.kubectl(
        "auth", "can-i", "delete", "resourceslices", f"--as=system:serviceaccount:{NAMESPACE}:reader", check=False
    )
    assert denied.stdout.strip() == "no"
