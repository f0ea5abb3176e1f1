"""The real API server, scheduler and controllers, without machines."""

import json
import time
from collections.abc import Callable

import pytest

from lab.api import ApiError, Object
from lab.bare import SLICES, add_bare_nodes, bare_slice, create_all
from lab.session import Lab

pytestmark = pytest.mark.lab

NODES = 1000


def wait_for(condition: Callable[[], bool], within_s: float = 60) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _gpus(node: str) -> list[Object]:
    devices: list[Object] = [
        {
            "name": f"gpu-{i}",
            "attributes": {"type": {"string": "gpu"}, "resource.kubernetes.io/numaNode": {"int": i // 2}},
            "capacity": {"memory": {"value": "284208Mi"}},
        }
        for i in range(4)
    ]
    return [bare_slice(node, "gpu.nvidia.com", devices)]


@pytest.fixture(scope="module")
def fleet(control_plane: Lab) -> Lab:
    add_bare_nodes(control_plane.api, [f"bare-{i:04}" for i in range(NODES)], _gpus)
    return control_plane


def test_components_report_the_pinned_version(control_plane: Lab) -> None:
    versions = json.loads(control_plane.kubectl("version", "-o", "json").stdout)
    assert versions["serverVersion"]["gitVersion"] == versions["clientVersion"]["gitVersion"] == "v1.36.4"


def test_strict_validation_refuses_a_field_nobody_knows(control_plane: Lab) -> None:
    wrong = bare_slice("nowhere", "gpu.nvidia.com", [{"name": "gpu-0", "colour": "green"}])
    with pytest.raises(ApiError, match=r"unknown field .*spec\.devices\[0\]\.colour"):
        create_all(control_plane.api, SLICES, [wrong])


def test_a_thousand_bare_nodes_with_slices_are_loaded(fleet: Lab) -> None:
    nodes = json.loads(fleet.kubectl("get", "nodes", "-o", "json").stdout)["items"]
    slices = json.loads(fleet.kubectl("get", "resourceslices", "-o", "json").stdout)["items"]
    assert len(nodes) == len(slices) == NODES
    assert {s["spec"]["nodeName"] for s in slices} == {n["metadata"]["name"] for n in nodes}
    assert not any(n["spec"].get("taints") for n in nodes)


def test_the_scheduler_allocates_a_claim_on_a_bare_node(fleet: Lab) -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "pair"},
        "spec": {
            "devices": {"requests": [request], "constraints": [{"matchAttribute": "resource.kubernetes.io/numaNode"}]}
        },
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pair"},
        "spec": {
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "pair"}],
            "containers": [{"name": "c", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}],
        },
    }
    fleet.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [claim, pod]}))

    def read(kind: str, path: str) -> str:
        return fleet.kubectl("get", kind, "pair", "-o", f"jsonpath={path}").stdout

    wait_for(lambda: bool(read("pod", "{.spec.nodeName}")))
    devices = read("resourceclaim", "{.status.allocation.devices.results[*].device}").split()
    assert {int(d.removeprefix("gpu-")) // 2 for d in devices} in ({0}, {1})
    assert read("resourceclaim", "{.status.allocation.devices.results[0].pool}") == read("pod", "{.spec.nodeName}")


def test_the_audit_log_counts_writes_by_user_and_object(control_plane: Lab) -> None:
    control_plane.kubectl("create", "configmap", "counted")
    lines = [json.loads(line) for line in control_plane.audit_log.read_text().splitlines()]
    mine = [
        e
        for e in lines
        if e["verb"] == "create" and e["objectRef"].get("name") == "counted" and e["user"]["username"] == "admin"
    ]
    assert len(mine) == 1
