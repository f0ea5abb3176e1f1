"""The embedded API server beside the real one: real kubectl on it, and the recordings against the real server."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fishplate.sim.apiserver.server import ApiServer
from lab.binaries import control_plane_binaries
from lab.session import Lab
from tests.conformance.api.embedded import embedded_server
from tests.conformance.api.record import real_server
from tests.conformance.api.suite import behaviours, read_recording, run

pytestmark = pytest.mark.lab

MANIFEST = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: nics.test}
spec:
  selectors: [{cel: {expression: 'device.driver == "dra.net"'}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-nic}
spec: {spec: {devices: {requests: [{name: nic, exactly: {deviceClassName: nics.test}}]}}}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s1}
spec:
  driver: dra.net
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: nic-0, attributes: {numa: {int: 0}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: p}}
spec:
  schedulerName: nobody
  automountServiceAccountToken: false
  containers: [{name: c, image: example.test/none, resources: {claims: [{name: nic}]}}]
  resourceClaims: [{name: nic, resourceClaimTemplateName: one-nic}]
"""


class Kubectl:
    """The real kubectl on one kubeconfig, with a home directory of its own for its discovery cache."""

    def __init__(self, binary: Path, kubeconfig: Path, home: Path) -> None:
        self._argv = [str(binary), "--kubeconfig", str(kubeconfig)]
        self._home = home

    def __call__(self, *words: str, stdin: str = "", code: int = 0) -> str:
        environment = {"HOME": str(self._home), "PATH": "/usr/bin:/bin"}
        argv = [*self._argv, *words]
        done = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=60, env=environment, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def start(self, *words: str) -> "subprocess.Popen[str]":
        environment = {"HOME": str(self._home), "PATH": "/usr/bin:/bin"}
        return subprocess.Popen(
            [*self._argv, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServer]:
    with embedded_server(tmp_path / "keys") as server:
        yield server


@pytest.fixture
def kubectl(server: ApiServer, tmp_path: Path) -> Kubectl:
    return Kubectl(control_plane_binaries()["kubectl"], server.directory / "kubeconfig", tmp_path)


@pytest.fixture
def on_the_real_one(control_plane: Lab, tmp_path: Path) -> Kubectl:
    home = tmp_path / "real"
    home.mkdir()
    return Kubectl(control_plane_binaries()["kubectl"], control_plane.kubeconfig, home)


@pytest.mark.parametrize("name", sorted(behaviours()))
def test_the_real_server_still_answers_as_recorded(control_plane: Lab, name: str) -> None:
    module, _, behaviour = name.partition(".")
    assert run(real_server(control_plane), name) == read_recording(module)[behaviour]


def test_apply_creates_then_changes_then_leaves_alone(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=MANIFEST).count("created") == 5
    assert "pod/p unchanged" in kubectl("apply", "-f", "-", stdin=MANIFEST)
    assert "pod/p configured" in kubectl("apply", "-f", "-", stdin=MANIFEST.replace("app: p", "app: q"))
    assert kubectl("get", "pod", "p", "-o", "jsonpath={.metadata.labels.app}") == "q"


def test_apply_refuses_a_misspelt_field(kubectl: Kubectl) -> None:
    said = kubectl("apply", "-f", "-", stdin=MANIFEST.replace("nodeName: n1", "nodeNam: n1"), code=1)
    assert 'unknown field "spec.nodeNam"' in said


def test_apply_says_the_same_on_both(kubectl: Kubectl, on_the_real_one: Kubectl) -> None:
    for words in (("apply", "-f", "-"), ("apply", "-f", "-"), ("diff", "-f", "-"), ("delete", "-f", "-")):
        assert kubectl(*words, stdin=MANIFEST) == on_the_real_one(*words, stdin=MANIFEST)


def test_server_side_apply_says_the_same_on_both(kubectl: Kubectl, on_the_real_one: Kubectl) -> None:
    """Including the conflict over a list that is owned as a whole and has been given defaults."""
    said = []
    for run_on in (kubectl, on_the_real_one):
        run_on("apply", "-f", "-", stdin=MANIFEST)
        first = run_on("apply", "--server-side", "-f", "-", stdin=MANIFEST, code=1)
        forced = run_on("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=MANIFEST)
        other = ("apply", "--server-side", "--field-manager=other", "-f", "-")
        said.append((first, forced, run_on(*other, stdin=MANIFEST.replace("app: p", "app: q"), code=1)))
        run_on("delete", "-f", "-", stdin=MANIFEST)
    assert said[0] == said[1]
    assert "Apply failed with 1 conflict" in said[0][2]


def test_get_shows_the_columns_of_the_kind(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=MANIFEST)
    head, row = kubectl("get", "resourceslices").splitlines()
    assert head.split() == ["NAME", "NODE", "DRIVER", "POOL", "AGE"]
    assert row.split()[:4] == ["s1", "n1", "dra.net", "n1"]
    assert "0/1" in kubectl("get", "pods", "-o", "wide")
    assert json.loads(kubectl("get", "resourceslice", "s1", "-o", "json"))["spec"]["driver"] == "dra.net"
    assert "No resources found" in kubectl("get", "resourceclaims", "-A")
    assert 'resourceslices.resource.k8s.io "nobody" not found' in kubectl("get", "resourceslice", "nobody", code=1)


def test_describe_says_the_same_on_both(kubectl: Kubectl, on_the_real_one: Kubectl) -> None:
    changing = ("UID", "Resource Version", "Creation Timestamp", "CreationTimestamp", "Time")
    for run_on in (kubectl, on_the_real_one):
        run_on("apply", "-f", "-", stdin=MANIFEST)
    try:
        for thing in ("pod/p", "resourceslice/s1", "resourceclaimtemplate/one-nic", "deviceclass/nics.test", "node/n1"):
            said = [
                [line for line in run_on("describe", thing).splitlines() if not line.strip().startswith(changing)]
                for run_on in (kubectl, on_the_real_one)
            ]
            assert said[0] == said[1]
    finally:
        on_the_real_one("delete", "-f", "-", stdin=MANIFEST)


def test_wait_sees_a_condition_come_and_an_object_go(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=MANIFEST)
    ready = kubectl.start("wait", "--for=condition=Ready", "pod/p", "--timeout=30s")
    status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    kubectl("patch", "pod", "p", "--subresource=status", "--type=merge", "-p", json.dumps(status))
    assert "pod/p condition met" in ready.communicate(timeout=40)[0]
    gone = kubectl.start("wait", "--for=delete", "pod/p", "--timeout=30s")
    assert 'pod "p" deleted' in kubectl("delete", "pod", "p")
    assert gone.wait(40) == 0
    gone.communicate()


def test_watch_shows_what_happens(kubectl: Kubectl) -> None:
    watching = kubectl.start("get", "deviceclasses", "--watch", "--output-watch-events")
    assert watching.stdout is not None
    kubectl("apply", "-f", "-", stdin=MANIFEST)
    assert watching.stdout.readline().split()[0] == "EVENT"
    assert watching.stdout.readline().split()[:2] == ["ADDED", "nics.test"]
    watching.terminate()
    watching.communicate()


def test_delete_waits_for_finalizers_and_takes_namespaces(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin="apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n")
    kubectl("apply", "-n", "other", "-f", "-", stdin=MANIFEST)
    kubectl("delete", "namespace", "other", "--timeout=30s")
    assert "No resources found" in kubectl("get", "pods", "-n", "other")
    kubectl("delete", "resourceslices", "--all")
    assert "No resources found" in kubectl("get", "resourceslices")


def test_explain_knows_the_fields(kubectl: Kubectl) -> None:
    assert "deviceClassName" in kubectl("explain", "resourceclaim.spec.devices.requests.exactly")


def test_labels_annotations_taints_and_cordons(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=MANIFEST)
    kubectl("label", "node", "n1", "a=b")
    kubectl("annotate", "node", "n1", "c=d")
    kubectl("taint", "node", "n1", "k=v:NoSchedule")
    kubectl("cordon", "n1")
    node = json.loads(kubectl("get", "node", "n1", "-o", "json"))
    assert (node["metadata"]["labels"]["a"], node["metadata"]["annotations"]["c"]) == ("b", "d")
    assert node["spec"]["unschedulable"] is True
    assert {"k", "node.kubernetes.io/unschedulable"} >= {taint["key"] for taint in node["spec"]["taints"]}


def test_create_speaks_protobuf_and_is_understood(kubectl: Kubectl, on_the_real_one: Kubectl) -> None:
    for run_on in (kubectl, on_the_real_one):
        run_on("create", "namespace", "made")
        run_on("create", "configmap", "conf", "-n", "made", "--from-literal=a=words", "--from-literal=b=more")
        run_on("create", "secret", "generic", "hidden", "-n", "made", "--from-literal=a=words")
        run_on("create", "job", "once", "-n", "made", "--image=example.test/once", "--", "sleep", "1")
        run_on("run", "pod", "-n", "made", "--image=example.test/x", "--env=A=b", "--port=80", "--labels=a=b")
    paths = {
        "namespace/made": "{.metadata.labels}",
        "configmap/conf": "{.data}",
        "secret/hidden": "{.data}{.type}",
        "job/once": "{.spec.template.spec.containers}{.spec.template.spec.restartPolicy}",
        "pod/pod": "{.metadata.labels}{.spec.containers[0].env}{.spec.containers[0].ports}",
    }
    try:
        for thing, path in paths.items():
            words = ("get", thing, "-n", "made", "-o", f"jsonpath={path}")
            assert json.dumps(kubectl(*words)) == json.dumps(on_the_real_one(*words))
    finally:
        on_the_real_one("delete", "namespace", "made", "--wait=false")
