"""The chart's objects at the real API server: valid to the last field, and the policy and the rights at work."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from lab.api import ApiClient, ApiError, Object
from lab.bare import SLICES, add_bare_nodes, bare_slice
from lab.helm import CHART
from lab.session import Lab

pytestmark = pytest.mark.lab

NAMESPACE = "chart"
ACCOUNT = "fp-fishplate"
OWN, OTHER = "chart-own", "chart-other"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"

VALUES: dict[str, dict[str, Any]] = {
    "default": {},
    "everything-on": {
        "imagePullSecrets": [{"name": "pull"}],
        "driver": {"extraEnv": [{"name": "A", "value": "b"}], "metadataFile": "/etc/fishplate/facts.json"},
        "nodeFeatures": {"enabled": True},
        "metrics": {"address": "127.0.0.1"},
        "deviceClass": {"extendedResourceName": "rdma/any"},
        "extraDeviceClasses": [{"name": "ib", "expression": "true", "extendedResourceName": "rdma/ib"}],
        "serviceAccount": {"annotations": {"a": "b"}},
        "networkPolicy": {"from": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]},
        "capabilities": ["NET_ADMIN"],
        "seLinuxOptions": {"type": "spc_t"},
        "podAnnotations": {"a": "b"},
        "podLabels": {"c": "d"},
        "extraVolumes": [{"name": "more", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    },
    "on-delete": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}, "tolerations": []},
    "another-name": {"driver": {"name": "nic.example.com"}, "fullnameOverride": "nic", "deviceClass": {"name": "nic"}},
}


@pytest.fixture(scope="module")
def namespace(control_plane: Lab) -> Iterator[Lab]:
    control_plane.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    yield control_plane
    control_plane.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def render(lab: Lab, values: dict[str, Any], *args: str) -> str:
    argv = ["template", "fp", str(CHART), "-n", NAMESPACE, "-f", "-", *args]
    return lab.helm(*argv, stdin=json.dumps(values)).stdout


@pytest.mark.parametrize("case", VALUES)
def test_the_server_takes_every_object_and_every_field(namespace: Lab, case: str) -> None:
    manifests = render(namespace, VALUES[case])
    apply = ["apply", "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-"]
    done = namespace.kubectl(*apply, stdin=manifests)
    assert "Warning" not in done.stderr
    assert len(done.stdout.splitlines()) == len([one for one in yaml.safe_load_all(manifests) if one])


# -- the policy ---------------------------------------------------------------------------------------------------


def _is_part(document: dict[str, Any]) -> bool:
    return document["kind"] not in ("DaemonSet", "DeviceClass", "NetworkPolicy")


def wait_for(condition: Callable[[], bool], within_s: float = 60) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture(scope="module")
def rights(namespace: Lab) -> Iterator[Lab]:
    """Account and rights of the chart, and nodes with a driver pod each; no policy yet."""
    manifests = render(namespace, {"admissionPolicy": {"enabled": False}})
    parts = [one for one in yaml.safe_load_all(manifests) if one and _is_part(one)]
    namespace.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(parts))
    add_bare_nodes(namespace.api, [OWN, OTHER], lambda _: [])
    for node in (OWN, OTHER):
        container = {"name": "driver", "image": "none"}
        spec = {"nodeName": node, "serviceAccountName": ACCOUNT, "containers": [container]}
        pod = {"metadata": {"name": f"driver-{node}"}, "spec": spec}
        namespace.api.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", pod)
    yield namespace
    namespace.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=yaml.safe_dump_all(parts))
    namespace.kubectl("delete", "nodes", OWN, OTHER)


@pytest.fixture(scope="module")
def policed(rights: Lab, own: ApiClient) -> Iterator[Lab]:
    manifests = render(rights, {}, "--show-only", "templates/admissionpolicy.yaml")
    rights.kubectl("apply", "-f", "-", stdin=manifests)
    # The server learns of a policy by its own watch, some time after it took it.
    wait_for(lambda: any(refusal(lambda w=what: write(own, w)) for what, _ in FOREIGN.values()))  # type: ignore[misc]
    yield rights
    rights.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=manifests)


@contextlib.contextmanager
def client(lab: Lab, bound: Object | None) -> Iterator[ApiClient]:
    """Somebody with a token of the driver's account, as the kubelet would have got it."""
    spec: Object = {"audiences": [], "expirationSeconds": 3600}
    if bound:
        spec["boundObjectRef"] = bound
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token"
    answer = lab.api.request("POST", path, {"spec": spec})
    status = answer["status"]
    assert isinstance(status, dict)
    who = ApiClient(lab.state.api_port, Path(lab.authority), status["token"])
    yield who
    who.close()


@pytest.fixture(scope="module")
def own(rights: Lab) -> Iterator[ApiClient]:
    """The driver on its node."""
    with client(rights, {"kind": "Pod", "apiVersion": "v1", "name": f"driver-{OWN}"}) as who:
        yield who


def of(node: str, *, name: str = "dra.net", pool: str = "") -> Object:
    one = bare_slice(node, name, [{"name": "nic-0"}])
    spec = one["spec"]
    assert isinstance(spec, dict)
    spec["pool"] = {**spec["pool"], "name": pool or node}
    one["metadata"] = {"generateName": "chart-"}
    return one


def write(who: ApiClient, what: Object) -> Object:
    return who.request("POST", f"{SLICES}?dryRun=All", what)


def refusal(act: Callable[[], object]) -> str | None:
    try:
        act()
    except ApiError as error:
        if error.status in (403, 422):
            return str(error)
        raise
    return None


FOREIGN: dict[str, tuple[Object, str]] = {
    "node": (of(OTHER), f"a driver on node {OWN} writes slices of that node only"),
    "driver": (of(OWN, name="gpu.nvidia.com"), "this driver writes slices of dra.net only"),
    "pool": (of(OWN, pool=OTHER), f"a driver on node {OWN} writes to the pool of that name only"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_without_the_policy_the_rights_alone_let_it_pass(own: ApiClient, case: str) -> None:
    """Else the tests below would prove nothing. Runs before the policy is there."""
    write(own, FOREIGN[case][0])


@pytest.mark.parametrize("case", FOREIGN)
def test_a_driver_may_not_create_what_is_not_its_own(policed: Lab, own: ApiClient, case: str) -> None:
    what, word = FOREIGN[case]
    assert word in (refusal(lambda: write(own, what)) or "")


def test_a_driver_creates_changes_and_deletes_its_own(policed: Lab, own: ApiClient) -> None:
    made = own.request("POST", SLICES, of(OWN))
    name = made["metadata"]["name"]  # type: ignore[index]
    made["metadata"]["labels"] = {"a": "b"}  # type: ignore[index]
    own.request("PUT", f"{SLICES}/{name}", made)
    own.request("DELETE", f"{SLICES}/{name}")


@pytest.mark.parametrize("case", FOREIGN)
def test_a_driver_may_not_change_or_delete_what_is_not_its_own(policed: Lab, own: ApiClient, case: str) -> None:
    made = policed.api.request("POST", SLICES, FOREIGN[case][0])
    path = f"{SLICES}/{made['metadata']['name']}"  # type: ignore[index]
    made["metadata"]["labels"] = {"a": "b"}  # type: ignore[index]
    try:
        changed = refusal(lambda: own.request("PUT", path, made))
        deleted = refusal(lambda: own.request("DELETE", path))
        assert [FOREIGN[case][1] in (said or "") for said in (changed, deleted)] == [True, True]
    finally:
        policed.api.request("DELETE", path)


def test_a_token_of_the_node_itself_counts_as_of_that_node(policed: Lab) -> None:
    with client(policed, {"kind": "Node", "apiVersion": "v1", "name": OWN}) as bound:
        write(bound, of(OWN))
        assert refusal(lambda: write(bound, of(OTHER)))


def test_a_token_that_is_bound_to_no_node_writes_nothing(policed: Lab) -> None:
    with client(policed, None) as unbound:
        assert "bound to no node" in (refusal(lambda: write(unbound, of(OWN))) or "")


def test_others_are_not_held_up(policed: Lab) -> None:
    """The GPU vendors' drivers, and the administrator, write as before."""
    write(policed.api, of(OTHER, name="gpu.nvidia.com"))


def test_the_server_has_no_complaint_about_the_types_in_the_policy(policed: Lab) -> None:
    """A controller checks expressions against the schema, and writes what it finds into the status."""
    path = f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{ACCOUNT}-slices"

    def status() -> dict[str, Any]:
        return msgspec.convert(policed.api.request("GET", path).get("status", {}), dict[str, Any])

    wait_for(lambda: "observedGeneration" in status())
    assert status().get("typeChecking", {}).get("expressionWarnings", []) == []


# -- the rights ---------------------------------------------------------------------------------------------------


def _allocated(node: str, name: str) -> tuple[Object, Object]:
    """A claim and its status, allocated to one device of a node, as the scheduler writes it."""
    request = {"name": "nic", "exactly": {"deviceClassName": "dranet.net"}}
    claim: Object = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
    result = {"request": "nic", "driver": "dra.net", "pool": node, "device": "nic-0"}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    selector = {"nodeSelectorTerms": [term]}
    return claim, {"allocation": {"devices": {"results": [result]}, "nodeSelector": selector}}


def _report(node: str, name: str) -> Object:
    device = {"driver": "dra.net", "pool": node, "device": "nic-0"}
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Prepared",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "status": {"devices": [{**device, "conditions": [condition]}]},
    }


@pytest.mark.parametrize("node", [OWN, OTHER])
def test_the_status_of_a_claim_is_written_by_the_driver_on_its_node(rights: Lab, own: ApiClient, node: str) -> None:
    """Server-side apply, as the driver does; from 1.36 the server asks for the right on resourceclaims/driver."""
    name = f"claim-{node}"
    claim, status = _allocated(node, name)
    made = rights.api.request("POST", CLAIMS, claim)
    rights.api.request("PUT", f"{CLAIMS}/{name}/status", {**made, "status": status})
    path = f"{CLAIMS}/{name}/status?fieldManager=fishplate&force=true"
    said = refusal(lambda: own.request("PATCH", path, _report(node, name), kind="application/apply-patch+yaml"))
    try:
        if node == OWN:
            assert said is None
            now = rights.api.request("GET", f"{CLAIMS}/{name}")["status"]
            assert isinstance(now, dict)
            assert [one["device"] for one in now["devices"]] == ["nic-0"]
        else:
            assert "resourceclaims/driver" in (said or "")
    finally:
        rights.api.request("DELETE", f"{CLAIMS}/{name}")


MAY = (
    "get nodes",
    "get pods",
    "get resourceclaims",
    "patch resourceclaims --subresource=status",
    "list resourceslices",
    "watch resourceslices",
    "create resourceslices",
    "update resourceslices",
    "delete resourceslices",
    "create events",
)
MAY_NOT = (
    "list nodes",
    "update nodes",
    "patch nodes",
    "list pods",
    "create pods",
    "get secrets",
    "get configmaps",
    "list resourceclaims",
    "update resourceclaims",
    "patch resourceclaims",
    "delete resourceclaims",
    "create resourceclaims",
    "patch resourceclaims --subresource=binding",
    "deletecollection resourceslices",
    "create deviceclasses",
)


def test_the_account_may_do_this_and_not_that(rights: Lab) -> None:
    user = f"--as=system:serviceaccount:{NAMESPACE}:{ACCOUNT}"

    def may(words: str) -> bool:
        return rights.kubectl("auth", "can-i", *words.split(), user, "-n", "default", check=False).stdout == "yes\n"

    assert [words for words in MAY if not may(words)] == []
    assert [words for words in MAY_NOT if may(words)] == []
