"""Booted nodes: Kubernetes runs pods on them, and the kernel shows the devices where the shape has them."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fishplate
from lab import TREE
from lab.guest import Node
from lab.image import ImageSettings, assemble_image, write_image
from lab.machine import find_shape
from lab.rootfs import node_system
from lab.session import Lab

pytestmark = pytest.mark.lab

SHAPE = find_shape("gb300")
STANDARD = "resource.kubernetes.io/"

Attributes = dict[str, dict[str, str | int]]


def wait_for(condition: Callable[[], bool], within_s: float = 120) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def _pod(name: str, image: str, command: list[str], **spec: object) -> str:
    container = {"name": "main", "image": image, "imagePullPolicy": "Never", "command": command}
    resources = spec.pop("resources", {})
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {
                "containers": [{**container, "resources": resources}],
                "terminationGracePeriodSeconds": 0,
                "restartPolicy": "Never",
                **spec,
            },
        }
    )


@pytest.fixture
def cleared(two_nodes: Lab) -> Iterator[Lab]:
    """The lab, without this test's pods and claims afterwards."""
    yield two_nodes
    two_nodes.kubectl("delete", "pods,resourceclaims,resourceclaimtemplates", "--all", "--wait=true")


def _pci(node: Node, vendor: str, device: str) -> dict[str, tuple[int, str]]:
    """Bus id -> NUMA node and PCIe root, as the kernel has them."""
    script = "cd /sys/bus/pci/devices && grep -H . */vendor */device */numa_node && readlink -f *"
    facts: dict[str, dict[str, str]] = {}
    for line in node.run(script).stdout.splitlines():
        if line.startswith("/sys/devices/"):
            facts[line.rpartition("/")[2]]["root"] = line.split("/")[3]
        else:
            name, _, value = line.rpartition(":")
            busid, _, file = name.rpartition("/")
            facts.setdefault(busid, {})[file] = value
    found = {b: f for b, f in sorted(facts.items()) if (f["vendor"], f["device"]) == (vendor, device)}
    return {busid: (int(f["numa_node"]), f["root"]) for busid, f in found.items()}


def _gpus(lab: Lab) -> dict[str, list[Attributes]]:
    """Node -> the attributes of each GPU in its slice."""
    items = json.loads(lab.kubectl("get", "resourceslices", "-o", "json").stdout)["items"]
    slices = [i["spec"] for i in items if i["spec"]["driver"] == "gpu.nvidia.com"]
    return {s["nodeName"]: [d["attributes"] for d in s["devices"]] for s in slices}


def test_both_nodes_are_ready_with_the_pinned_versions(two_nodes: Lab) -> None:
    nodes = json.loads(two_nodes.kubectl("get", "nodes", "-o", "json").stdout)["items"]
    info = [(n["metadata"]["name"], n["status"]["nodeInfo"]) for n in nodes]
    assert [name for name, _ in info] == ["node-0", "node-1"]
    assert {i["kubeletVersion"] for _, i in info} == {"v1.36.4"}
    assert {i["containerRuntimeVersion"] for _, i in info} == {"containerd://2.2.9"}


def test_a_plain_pod_runs_and_can_be_looked_into(cleared: Lab) -> None:
    cleared.kubectl(
        "apply", "-f", "-", stdin=_pod("plain", "lab.test/busybox:1", ["sh", "-c", "echo hello; sleep 1000"])
    )
    cleared.kubectl("wait", "pod/plain", "--for=condition=Ready", "--timeout=120s", timeout_s=150)
    assert cleared.kubectl("logs", "plain").stdout == "hello\n"
    assert cleared.kubectl("exec", "plain", "--", "hostname").stdout == "plain\n"
    # BusyBox's TLS cannot talk to a modern server, but the server's complaint about plain text is an answer.
    ask = "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc 10.96.0.1 443"
    assert "HTTP request to an HTTPS server" in cleared.kubectl("exec", "plain", "--", "sh", "-c", ask).stdout


def test_devices_sit_on_the_numa_nodes_of_the_shape_each_below_its_own_root(two_nodes: Lab) -> None:
    for node in two_nodes.nodes:
        gpus, nics = _pci(node, "0x1234", "0x11e8"), _pci(node, "0x1af4", "0x1041")
        assert [numa for numa, _ in gpus.values()] == list(SHAPE.gpus)
        assert [numa for numa, _ in nics.values()] == list(SHAPE.nics)
        roots = [root for _, root in (*gpus.values(), *nics.values())]
        assert len(set(roots)) == len(roots) == 8


def test_each_nic_has_an_active_rdma_device(two_nodes: Lab) -> None:
    for node in two_nodes.nodes:
        links = json.loads(node.run("rdma -j link").stdout)
        assert [(link["ifname"], link["netdev"], link["state"]) for link in links] == [
            (f"rxe_rdma{i}", f"rdma{i}", "ACTIVE") for i in range(len(SHAPE.nics))
        ]
        where = [node.run(f"readlink -f /sys/class/net/rdma{i}/device").stdout for i in range(len(SHAPE.nics))]
        assert [re.findall(r"/(0000:[0-9a-f]{2}:00\.0)/virtio", w) for w in where] == [
            [busid] for busid in _pci(node, "0x1af4", "0x1041")
        ]


def _received(node: Node) -> list[int]:
    """Packets that each Soft-RoCE device has received."""
    counters = " ".join(
        f"/sys/class/infiniband/rxe_rdma{i}/ports/1/hw_counters/rcvd_pkts" for i in range(len(SHAPE.nics))
    )
    return [int(word) for word in node.run(f"cat {counters}").stdout.split()]


@pytest.mark.parametrize("rail", [0, 3])
def test_rdma_writes_travel_between_the_nodes_on_the_rail_they_were_sent_on(two_nodes: Lab, rail: int) -> None:
    """The rate itself says nothing: the emulated clock does not even let perftest compute it each time."""
    server, client = two_nodes.nodes
    before = _received(server)
    test = f"ib_write_bw -F -d rxe_rdma{rail} -x 1 -s 4096 -n 200 -p {18600 + rail}"
    server.run(f"(setsid {test} </dev/null >/tmp/server.log 2>&1 &)")
    wait_for(lambda: f":{18600 + rail}" in server.run("ss -Hltn").stdout)
    said = client.run(f"{test} 10.80.{rail}.1").stdout
    assert re.search(r"^\s*4096\s+200\s+[\d.]+\s+[\d.]+", said, re.MULTILINE), said
    more = [now - then for now, then in zip(_received(server), before, strict=True)]
    # At an MTU of 1024 bytes, 200 writes of 4096 bytes are at least 800 packets.
    assert more[rail] >= 800
    assert [count for i, count in enumerate(more) if i != rail] == [0, 0, 0]


def test_a_guest_reaches_nothing_but_the_api_server_and_its_peer(two_nodes: Lab) -> None:
    node = two_nodes.node(0)

    def connects(target: str) -> bool:
        return (
            node.run(f"timeout 10 socat -u OPEN:/dev/null TCP:{target},connect-timeout=3", check=False).returncode == 0
        )

    assert connects("10.77.0.100:6443")
    assert connects("10.78.0.2:22")
    # The host under QEMU's name for it, the host's API server port there, an outside address.
    host = ("10.77.0.2:22", f"10.77.0.2:{two_nodes.state.api_port}", "192.0.2.1:80", "10.77.0.3:53")
    assert [target for target in host if connects(target)] == []


def test_the_stand_in_driver_publishes_what_the_kernel_says(two_nodes: Lab) -> None:
    two_nodes.start_gpu_driver("nvidia-0.5")
    wait_for(lambda: [len(gpus) for gpus in _gpus(two_nodes).values()] == [4, 4])
    published = _gpus(two_nodes)
    for node in two_nodes.nodes:
        told = {
            a[STANDARD + "pciBusID"]["string"]: (a[STANDARD + "numaNode"]["int"], a[STANDARD + "pcieRoot"]["string"])
            for a in published[node.name]
        }
        assert told == _pci(node, "0x1234", "0x11e8")


def test_an_older_profile_leaves_the_numa_node_out(two_nodes: Lab) -> None:
    def keys() -> set[str]:
        return {key for gpus in _gpus(two_nodes).values() for attributes in gpus for key in attributes}

    two_nodes.start_gpu_driver("nvidia-25.8")
    wait_for(lambda: "pcieBusID" in keys())
    wait_for(lambda: "resource.kubernetes.io/pciBusID" not in keys())
    assert "resource.kubernetes.io/numaNode" not in keys()
    two_nodes.start_gpu_driver("nvidia-0.5")
    wait_for(lambda: "pcieBusID" not in keys() and "resource.kubernetes.io/numaNode" in keys())


def test_a_pod_with_a_gpu_claim_is_told_which_gpus_it_got(cleared: Lab) -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}
    same = {"matchAttribute": "resource.kubernetes.io/numaNode"}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "pair"},
        "spec": {"devices": {"requests": [request], "constraints": [same]}},
    }
    cleared.kubectl("create", "-f", "-", stdin=json.dumps(claim))
    pod = _pod(
        "trainer",
        "lab.test/busybox:1",
        ["sh", "-c", "env | grep LAB_GPU; sleep 1000"],
        resources={"claims": [{"name": "gpu"}]},
        resourceClaims=[{"name": "gpu", "resourceClaimName": "pair"}],
    )
    cleared.kubectl("create", "-f", "-", stdin=pod)
    cleared.kubectl("wait", "pod/trainer", "--for=condition=Ready", "--timeout=180s", timeout_s=200)
    given = set(re.findall(r"LAB_GPU_\w+=(\S+)", cleared.kubectl("logs", "trainer").stdout))
    place = cleared.kubectl("get", "pod", "trainer", "-o", "jsonpath={.spec.nodeName}").stdout
    kernel = _pci(next(n for n in cleared.nodes if n.name == place), "0x1234", "0x11e8")
    assert len(given) == 2
    assert len({kernel[busid][0] for busid in given}) == 1


def test_an_image_made_here_runs_there(cleared: Lab, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "sh").write_bytes((node_system() / "busybox").read_bytes())
    (root / "bin" / "sh").chmod(0o755)
    (root / "message").write_text("from a directory\n")
    write_image(root, tmp_path / "own.tar", ImageSettings(name="lab.test/own:1"))
    cleared.load(tmp_path / "own.tar")
    cleared.kubectl("create", "-f", "-", stdin=_pod("own", "lab.test/own:1", ["sh", "-c", "read x </message; echo $x"]))
    cleared.kubectl("wait", "pod/own", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=120s", timeout_s=150)
    assert cleared.kubectl("logs", "own").stdout == "from a directory\n"


def test_an_image_of_debian_packages_and_wheels_runs_the_program(cleared: Lab, tmp_path: Path) -> None:
    settings = ImageSettings(name="lab.test/fishplate:1", entrypoint=("fishplate",))
    assemble_image(
        tmp_path / "fishplate.tar", settings, packages=("python3",), requirements=TREE / "requirements" / "run.txt"
    )
    cleared.load(tmp_path / "fishplate.tar", [cleared.node(0)])
    pod = _pod("program", "lab.test/fishplate:1", ["fishplate", "--version"], nodeName="node-0")
    cleared.kubectl("create", "-f", "-", stdin=pod)
    cleared.kubectl("wait", "pod/program", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=180s", timeout_s=200)
    assert fishplate.__version__ in cleared.kubectl("logs", "program").stdout


def test_files_go_to_a_node_and_commands_come_back(two_nodes: Lab, tmp_path: Path) -> None:
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "deep" / "file").write_text("here\n")
    there = two_nodes.node(1).put(tmp_path / "tree", "/var/tmp/put")
    assert two_nodes.node(1).run(f"cat {there}/deep/file; hostname").stdout == "here\nnode-1\n"
    failed = two_nodes.node(1).run("echo no >&2; exit 7", check=False)
    assert (failed.returncode, failed.stderr) == (7, "no\n")


def test_the_project_and_its_wheels_are_on_the_node(two_nodes: Lab) -> None:
    path = "PYTHONPATH=/opt/lab/payload/src:/opt/lab/payload/wheels"
    said = two_nodes.node(0).run(
        f"{path} python3 -c 'import fishplate, msgspec, yaml, click; print(fishplate.__file__)'"
    )
    assert said.stdout == "/opt/lab/payload/src/fishplate/__init__.py\n"
