"""The chart without a cluster: what the real Helm makes of it, and what the schema refuses."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import fishplate
from lab import TREE
from lab.helm import CHART, run_helm

pytestmark = pytest.mark.lab

Document = dict[str, Any]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def render(home: Path, values: Document | None = None, *args: str) -> dict[str, Document]:
    """Kind and name → manifest."""
    done = run_helm(
        "template", "fp", str(CHART), "-n", "rdma", "-f", "-", *args, home=home, stdin=json.dumps(values or {})
    )
    assert done.returncode == 0, done.stderr
    documents = [one for one in yaml.safe_load_all(done.stdout) if one]
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in documents}


def pod_spec(manifests: dict[str, Document]) -> Document:
    spec: Document = manifests["DaemonSet/fp-fishplate"]["spec"]["template"]["spec"]
    return spec


def arguments(manifests: dict[str, Document]) -> list[str]:
    words: list[str] = pod_spec(manifests)["containers"][0]["args"]
    return words


def test_lint_finds_nothing(home: Path) -> None:
    done = run_helm("lint", "--strict", str(CHART), home=home)
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


def test_the_default_rendering_has_these_objects_and_no_others(home: Path) -> None:
    assert sorted(render(home)) == [
        "ClusterRole/fp-fishplate",
        "ClusterRoleBinding/fp-fishplate",
        "DaemonSet/fp-fishplate",
        "DeviceClass/dranet.net",
        "NetworkPolicy/fp-fishplate",
        "ServiceAccount/fp-fishplate",
        "ValidatingAdmissionPolicy/fp-fishplate-slices",
        "ValidatingAdmissionPolicyBinding/fp-fishplate-slices",
    ]


def test_the_chart_speaks_of_the_program_beside_it() -> None:
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == fishplate.__version__
    assert f"IMAGE ?= fishplate:{fishplate.__version__}" in (TREE / "Makefile").read_text()


def test_the_container_has_no_powers(home: Path) -> None:
    spec = pod_spec(render(home))
    (container,) = spec["containers"]
    assert "initContainers" not in spec
    assert (spec.get("hostPID"), spec.get("hostIPC"), spec["hostNetwork"]) == (None, None, True)
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    context = container["securityContext"]
    assert context["privileged"] is False
    assert context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert context["capabilities"] == {"drop": ["ALL"]}


def test_only_these_directories_of_the_node_are_there_at_the_same_paths(home: Path) -> None:
    spec = pod_spec(render(home))
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"]}
    assert paths == {
        "plugin": "/var/lib/kubelet/plugins/dra.net",
        "registry": "/var/lib/kubelet/plugins_registry",
        "cdi": "/var/run/cdi",
        "nri": "/var/run/nri",
        "state": "/run/fishplate",
        "infiniband": "/dev/infiniband",
    }
    mounts = spec["containers"][0]["volumeMounts"]
    assert {mount["name"]: mount["mountPath"] for mount in mounts} == paths
    assert [mount["name"] for mount in mounts if mount.get("readOnly")] == ["infiniband"]
    assert {volume["hostPath"]["type"] for volume in spec["volumes"]} == {"DirectoryOrCreate"}


def test_what_is_not_set_is_left_to_the_program(home: Path) -> None:
    assert arguments(render(home)) == [
        "driver",
        "--driver-name=dra.net",
        "--bind-address=:9177",
        "--kubelet-root-dir=/var/lib/kubelet",
        "--cdi-dir=/var/run/cdi",
        "--nri-socket=/var/run/nri/nri.sock",
        "--db-path=/run/fishplate/driver.db",
        "--injection=auto",
        "--log-format=json",
        "--v=2",
    ]


EVERY_FLAG = {
    "driver": {
        "name": "nic.example.com",
        "filter": 'attributes["dra.net/type"].StringValue != "veth" && "a" != \'b\'',
        "injection": "nri",
        "cloudProviderHint": "NONE",
        "profileProvider": "webhook",
        "webhookURL": "https://facts.example.com/v1",
        "moveIBInterfaces": False,
        "inventory": {"minPollInterval": "5s", "maxPollInterval": "2m", "pollBurst": 3},
        "allowManagementNodes": True,
        "ncclEnvironment": True,
        "publishGpuUuid": True,
        "metadataFile": "/etc/fishplate/facts.json",
        "featureGates": {"B": False, "A": True},
        "logLevel": 4,
        "logFormat": "text",
        "extraArgs": ["--hostname-override=x y"],
    },
    "paths": {"kubelet": "/mnt/kubelet", "cdi": "/etc/cdi", "nriSocket": "/run/other/nri.sock", "state": "/run/nic"},
    "metrics": {"port": 9999, "address": "127.0.0.1"},
    "nodeFeatures": {"enabled": True},
}


def test_every_value_of_the_driver_reaches_its_flag(home: Path) -> None:
    manifests = render(home, EVERY_FLAG)
    assert arguments(manifests)[1:] == [
        "--driver-name=nic.example.com",
        "--bind-address=127.0.0.1:9999",
        "--kubelet-root-dir=/mnt/kubelet",
        "--cdi-dir=/etc/cdi",
        "--nri-socket=/run/other/nri.sock",
        "--db-path=/run/nic/driver.db",
        "--injection=nri",
        "--log-format=text",
        "--v=4",
        '--filter=attributes["dra.net/type"].StringValue != "veth" && "a" != \'b\'',
        "--cloud-provider-hint=NONE",
        "--profile-provider=webhook",
        "--webhook-url=https://facts.example.com/v1",
        "--move-ib-interfaces=false",
        "--inventory-min-poll-interval=5s",
        "--inventory-max-poll-interval=2m",
        "--inventory-poll-burst=3",
        "--allow-management-nodes",
        "--nccl-environment",
        "--publish-gpu-uuid",
        "--metadata-file=/etc/fishplate/facts.json",
        "--node-features-file=/etc/kubernetes/node-feature-discovery/features.d/fishplate",
        "--feature-gates=A=true,B=false",
        "--hostname-override=x y",
    ]
    spec = pod_spec(manifests)
    paths = {mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
    assert {"/mnt/kubelet/plugins/nic.example.com", "/mnt/kubelet/plugins_registry", "/etc/cdi", "/run/other"} <= paths
    assert {"/run/nic", "/etc/fishplate", "/etc/kubernetes/node-feature-discovery/features.d"} <= paths


def test_the_program_knows_every_flag_that_the_chart_passes(home: Path) -> None:
    argv = [sys.executable, "-m", "fishplate", "driver", "--help"]
    known = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    flags = {word.partition("=")[0] for word in arguments(render(home, EVERY_FLAG)) if word.startswith("-")}
    assert {flag for flag in flags if not re.search(rf"(^|\s){flag}\b", known)} == set()


def test_another_driver_name_goes_everywhere(home: Path) -> None:
    manifests = render(home, EVERY_FLAG)
    role = manifests["ClusterRole/fp-fishplate"]
    assert [rule["resourceNames"] for rule in role["rules"] if "resourceNames" in rule] == [["nic.example.com"]]
    selector = manifests["DeviceClass/dranet.net"]["spec"]["selectors"][0]["cel"]["expression"]
    assert selector == 'device.driver == "nic.example.com"'
    assert "dra.net" not in json.dumps(manifests["ValidatingAdmissionPolicy/fp-fishplate-slices"])


def test_the_probes_ask_where_the_program_listens(home: Path) -> None:
    (container,) = pod_spec(render(home, EVERY_FLAG))["containers"]
    asked = {kind: container[kind]["httpGet"] for kind in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {kind: probe["path"] for kind, probe in asked.items()} == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }
    assert {(probe["host"], probe["port"]) for probe in asked.values()} == {("127.0.0.1", 9999)}


def test_classes_with_extended_resource_names(home: Path) -> None:
    expression = 'device.attributes["dra.net"].rdma == true || 1 > 2'
    values = {
        "deviceClass": {"extendedResourceName": "rdma/any"},
        "extraDeviceClasses": [
            {"name": "ib", "expression": expression, "extendedResourceName": "rdma/ib"},
            {"name": "b"},
        ],
    }
    manifests = render(home, values, "--kube-version", "1.36")
    assert manifests["DeviceClass/dranet.net"]["spec"]["extendedResourceName"] == "rdma/any"
    joined = f'device.driver == "dra.net" && ({expression})'
    assert manifests["DeviceClass/ib"]["spec"] == {
        "selectors": [{"cel": {"expression": joined}}],
        "extendedResourceName": "rdma/ib",
    }
    assert manifests["DeviceClass/b"]["spec"] == {"selectors": [{"cel": {"expression": 'device.driver == "dra.net"'}}]}


def test_an_extended_resource_name_is_refused_where_the_server_would_drop_it(home: Path) -> None:
    values = json.dumps({"deviceClass": {"extendedResourceName": "rdma/ib"}})
    done = run_helm("template", "fp", str(CHART), "-f", "-", "--kube-version", "1.35", home=home, stdin=values)
    assert done.returncode != 0
    assert "needs Kubernetes 1.36" in done.stderr


def test_what_can_be_left_out(home: Path) -> None:
    off = {
        "deviceClass": {"create": False},
        "rbac": {"create": False},
        "serviceAccount": {"create": False, "name": "ours"},
        "admissionPolicy": {"enabled": False},
        "networkPolicy": {"enabled": False},
    }
    manifests = render(home, off)
    assert list(manifests) == ["DaemonSet/fp-fishplate"]
    assert pod_spec(manifests)["serviceAccountName"] == "ours"


def test_the_pod_monitor_scrapes_the_declared_port(home: Path) -> None:
    monitor = render(home, {"podMonitor": {"enabled": True, "labels": {"release": "p"}}})["PodMonitor/fp-fishplate"]
    assert monitor["spec"]["podMetricsEndpoints"] == [{"port": "metrics", "path": "/metrics", "interval": "30s"}]
    assert monitor["metadata"]["labels"]["release"] == "p"


REFUSED: dict[str, tuple[Document, str]] = {
    "two-drivers-on-a-node": ({"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}}, "maxSurge"),
    "misspelt": ({"tolerationz": []}, "tolerationz"),
    "misspelt-inside": ({"driver": {"filtre": "x"}}, "filtre"),
    "unknown-injection": ({"driver": {"injection": "magic"}}, "injection"),
    "upper-case-driver": ({"driver": {"name": "Dra.net"}}, "name"),
    "relative-path": ({"paths": {"state": "run/x"}}, "state"),
    "socket-in-the-root": ({"paths": {"nriSocket": "/nri.sock"}}, "nriSocket"),
    "shell-in-a-path": ({"paths": {"cdi": "/a}, x: {b"}}, "cdi"),
    "port": ({"metrics": {"port": 99999}}, "port"),
    "address": ({"metrics": {"address": "localhost"}}, "address"),
    "duration": ({"driver": {"inventory": {"maxPollInterval": "1 minute"}}}, "maxPollInterval"),
    "gate-not-boolean": ({"driver": {"featureGates": {"A": "yes"}}}, "featureGates"),
    "extended-name-without-domain": ({"deviceClass": {"extendedResourceName": "ib"}}, "extendedResourceName"),
    "all-capabilities": ({"capabilities": ["ALL"]}, "capabilities"),
    "digest": ({"image": {"digest": "sha256:abc"}}, "digest"),
    "toleration": ({"tolerations": [{"opertor": "Exists"}]}, "opertor"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_schema_refuses_with_the_name_of_the_value(home: Path, case: str) -> None:
    values, word = REFUSED[case]
    done = run_helm("template", "fp", str(CHART), "-f", "-", home=home, stdin=json.dumps(values))
    assert done.returncode != 0
    assert word in done.stderr


def _leaves(values: Document, prefix: str = "") -> list[str]:
    found: list[str] = []
    for key, value in values.items():
        here = f"{prefix}{key}"
        is_branch = isinstance(value, dict) and value and key not in ("resources", "affinity", "nodeSelector")
        found += _leaves(value, f"{here}.") if is_branch else [here]
    return found


def test_the_readme_lists_the_values_that_there_are() -> None:
    readme = (CHART / "README.md").read_text().partition("## Values")[2]
    told = re.findall(r"^\| `([\w.]+)` \|", readme, re.MULTILINE)
    there = _leaves(yaml.safe_load((CHART / "values.yaml").read_text()))
    assert sorted(told) == sorted(there)


def _properties(schema: Document, prefix: str = "") -> list[str]:
    found: list[str] = []
    for key, value in schema.get("properties", {}).items():
        found += _properties(value, f"{prefix}{key}.") if "properties" in value else [f"{prefix}{key}"]
    return found


def test_the_schema_knows_the_values_that_there_are() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    there = _leaves(yaml.safe_load((CHART / "values.yaml").read_text()))
    strategy = {"updateStrategy.rollingUpdate.maxUnavailable"}  # below a choice: either of two shapes
    assert set(_properties(schema)) - {"global", "updateStrategy.rollingUpdate"} == set(there) - strategy
