"""The driver on real nodes, installed by the chart with the real Helm: who gets which device, and who does not.

Soft-RoCE has the device nodes of a real NIC. What a container can do is asked in the container; what was carried where,
of the nodes' kernels.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from lab.guest import Node
from lab.helm import CHART
from lab.images import DRIVER, TOOLS, driver_image, tools_image
from lab.machine import find_shape
from lab.session import Lab

# The first test waits for two images to be made and carried into emulated machines.
pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

NAMESPACE = "fishplate"
NICS = len(find_shape("gb300").nics)
SERVICE_ACCOUNT = f"system:serviceaccount:{NAMESPACE}:fishplate"

Json = dict[str, Any]

# Printed by the container itself: its nodes, and whether they open.
LOOK = """
import errno, json, os
def try_open(path):
    try:
        os.close(os.open(path, os.O_RDWR))
        return "opens"
    except OSError as error:
        return errno.errorcode[error.errno]
place = "/dev/infiniband"
print(json.dumps({name: try_open(f"{place}/{name}") for name in os.listdir(place)} if os.path.isdir(place) else {}))
"""
# A container that may make device nodes tries others' numbers.
FORGE = """
import errno, json, os, stat, sys
said = {}
for word in sys.argv[1:]:
    path = f"/tmp/forged-{word}"
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(*map(int, word.split(":"))))
    try:
        os.close(os.open(path, os.O_RDWR))
        said[word] = "opens"
    except OSError as error:
        said[word] = errno.errorcode[error.errno]
    os.unlink(path)
print(json.dumps(said))
"""
MODES = """
import json, os
place = "/dev/infiniband"
print(json.dumps({name: oct(os.stat(f"{place}/{name}").st_mode)[-3:] for name in os.listdir(place)}))
"""
LISTENS = """
import sys
rows = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}").readlines()[1:]]
sys.exit(not any(row[1].endswith(f":{int(sys.argv[1]):04X}") and row[3] == "0A" for row in rows))
"""
# The brackets keep the shell that asks out of the answer.
FIND_DRIVER = "for p in $(pgrep -f '[b]in/fishplate driver'); do cat /proc/$p/status; done"
SLEEP = ["python3", "-c", "import time; time.sleep(100000)"]
PLAIN = {"runAsUser": 1000, "runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def wait_for(condition: Callable[[], bool], within_s: float = 180) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def get(lab: Lab, *what: str) -> Json:
    found: Json = json.loads(lab.kubectl("get", *what, "-o", "json").stdout)
    return found


def await_driver(lab: Lab) -> None:
    """On every node: Helm's own waiting takes as many for ready as may be missing in an update."""
    rollout = ["-n", NAMESPACE, "rollout", "status", "daemonset/fishplate", "--timeout=240s"]
    lab.kubectl(*rollout, timeout_s=260)


@pytest.fixture(scope="module")
def driver(two_nodes: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The chart, installed; every driver pod says that it is ready."""
    two_nodes.load(driver_image(tmp_path_factory.mktemp("image") / "driver.tar"))
    two_nodes.load(tools_image())
    repository, _, tag = DRIVER.rpartition(":")
    values = {
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
        "deviceClass": {"extendedResourceName": "rdma/lab"},
        # The nodes' processors are emulated, and slow.
        "driver": {"logFormat": "text", "logLevel": 4},
    }
    install = ["install", "fishplate", str(CHART), "-n", NAMESPACE, "--create-namespace", "-f", "-"]
    two_nodes.helm(*install, stdin=json.dumps(values))
    await_driver(two_nodes)
    yield two_nodes
    two_nodes.kubectl("delete", "pods,resourceclaims", "--all", "--wait=true")
    two_nodes.helm("uninstall", "fishplate", "-n", NAMESPACE, "--wait")
    # The kubelet forgets a driver that has gone, half a minute after it went.
    wait_for(lambda: not slices(two_nodes))


@pytest.fixture
def cleared(driver: Lab) -> Iterator[Lab]:
    """The lab, without this test's pods and claims afterwards."""
    yield driver
    driver.kubectl("delete", "pods,resourceclaims", "-l", "crowd!=yes", "--wait=true")


def slices(lab: Lab) -> dict[str, Json]:
    """Node → the spec of our slice."""
    specs = [item["spec"] for item in get(lab, "resourceslices")["items"]]
    return {spec["nodeName"]: spec for spec in specs if spec["driver"] == "dra.net"}


def published(lab: Lab, node: Node) -> list[str]:
    """RDMA devices in the node's slice."""
    devices = slices(lab)[node.name].get("devices", [])
    return [
        one["attributes"]["dra.net/rdmaDevice"]["string"]
        for one in devices
        if "dra.net/rdmaDevice" in one["attributes"]
    ]


def claim(name: str, rail: int) -> Json:
    """A claim to the NIC of one rail."""
    selector = {"cel": {"expression": f'device.attributes["dra.net"].rdmaDevice == "rxe_rdma{rail}"'}}
    request = {"name": "nic", "exactly": {"deviceClassName": "dranet.net", "selectors": [selector]}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
    }


def container(name: str, **more: object) -> Json:
    return {"name": name, "image": TOOLS, "imagePullPolicy": "Never", "command": SLEEP, **more}


def pod(name: str, node: str, containers: list[Json], **spec: object) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": containers,
            "terminationGracePeriodSeconds": 0,
            "restartPolicy": "Never",
            **spec,
        },
    }


def with_claim(name: str, node: str, *containers: Json) -> Json:
    """A pod with the claim of the same name; the containers say themselves whether they use it."""
    return pod(name, node, list(containers), resourceClaims=[{"name": "rdma", "resourceClaimName": name}])


CLAIMED: Json = {"resources": {"claims": [{"name": "rdma"}]}}


def create(lab: Lab, *objects: Json) -> None:
    lab.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))


def await_ready(lab: Lab, *pods: str) -> None:
    names = [f"pod/{name}" for name in pods]
    lab.kubectl("wait", *names, "--for=condition=Ready", "--timeout=180s", timeout_s=200)


def ask(lab: Lab, where: str, inside: str, script: str, *words: str) -> dict[str, str]:
    said = lab.kubectl("exec", where, "-c", inside, "--", "python3", "-c", script, *words).stdout
    found: dict[str, str] = json.loads(said)
    return found


def verbs_of(node: Node) -> dict[str, str]:
    """RDMA device → its verbs node, as the node's kernel has it."""
    text = node.run("cd /sys/class/infiniband_verbs && grep -H . uverbs*/ibdev").stdout
    return {line.partition(":")[2]: line.partition("/")[0] for line in text.splitlines()}


# -- what is installed ---------------------------------------------------------------------------------------------


def test_the_driver_runs_without_any_power(driver: Lab) -> None:
    """Asked of the node's kernel, not of the manifest."""
    for node in driver.nodes:
        status = dict(re.findall(r"^(\w+):\s*(\S+)", node.run(FIND_DRIVER).stdout, re.MULTILINE))
        sets = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
        assert {name: int(status[name], 16) for name in sets} == dict.fromkeys(sets, 0)
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_the_slices_say_what_the_host_shows(driver: Lab) -> None:
    """Without a power and in its container, the driver sees what root sees on the node."""
    found = slices(driver)
    assert sorted(found) == [node.name for node in driver.nodes]
    for node in driver.nodes:
        told = {device["name"]: device["attributes"] for device in found[node.name]["devices"]}
        shown = yaml.safe_load(node.run("fishplate inspect -o slice").stdout)["spec"]["devices"]
        # Interfaces without RDMA stay with the node: this driver moves none.
        assert told == {one["name"]: one["attributes"] for one in shown if one["attributes"]["dra.net/rdma"]["bool"]}
        assert published(driver, node) == [f"rxe_rdma{i}" for i in range(NICS)]


# -- who gets what -------------------------------------------------------------------------------------------------


RAIL = 2


@pytest.fixture(scope="module")
def crowd(driver: Lab) -> Lab:
    """On node 0: a pod with a claim that two of its three containers name, and a pod without a claim."""
    picky = with_claim(
        "picky",
        "node-0",
        container("user", securityContext=PLAIN, **CLAIMED),
        container("forger", **CLAIMED),  # root, and with the right to make nodes, as pods have by default
        container("bystander"),
    )
    objects = (claim("picky", RAIL), picky, pod("stranger", "node-0", [container("main")]))
    for one in objects:
        one["metadata"]["labels"] = {"crowd": "yes"}
    create(driver, *objects)
    await_ready(driver, "picky", "stranger")
    return driver


def own_node(lab: Lab) -> str:
    return verbs_of(lab.node(0))[f"rxe_rdma{RAIL}"]


@pytest.mark.parametrize("inside", ["user", "forger"])
def test_a_container_that_names_the_claim_has_its_verbs_node_and_no_other(crowd: Lab, inside: str) -> None:
    assert ask(crowd, "picky", inside, LOOK) == {own_node(crowd): "opens", "rdma_cm": "opens"}


@pytest.mark.parametrize(("name", "inside"), [("picky", "bystander"), ("stranger", "main")])
def test_whoever_does_not_name_a_claim_has_none(crowd: Lab, name: str, inside: str) -> None:
    assert ask(crowd, name, inside, LOOK) == {}


def test_a_node_made_with_anothers_numbers_does_not_open(crowd: Lab) -> None:
    node = crowd.node(0)
    own = node.run(f"cat /sys/class/infiniband_verbs/{own_node(crowd)}/dev").stdout.strip()
    every = node.run("cat /sys/class/infiniband_verbs/uverbs*/dev /sys/class/infiniband_mad/umad*/dev").stdout.split()
    others = [numbers for numbers in every if numbers != own]
    assert len(others) == 2 * NICS - 1
    # Its own opens under any name, so the others are refused for what they are.
    assert ask(crowd, "picky", "forger", FORGE, *every) == {own: "opens"} | dict.fromkeys(others, "EPERM")
    assert ask(crowd, "picky", "bystander", FORGE, *every) == dict.fromkeys(every, "EPERM")


def test_modes_are_those_of_the_host(crowd: Lab) -> None:
    there, name = ask(crowd, "picky", "user", MODES), own_node(crowd)
    host = crowd.node(0).run(f"stat -c %a /dev/infiniband/{name} /dev/infiniband/rdma_cm").stdout.split()
    assert [there[name], there["rdma_cm"]] == host


def test_the_claim_says_that_its_device_is_ready(crowd: Lab) -> None:
    wait_for(lambda: "devices" in get(crowd, "resourceclaim", "picky")["status"])
    status = get(crowd, "resourceclaim", "picky")["status"]
    (result,) = status["allocation"]["devices"]["results"]
    (device,) = status["devices"]
    keys = ("driver", "pool", "device")
    assert [device[key] for key in keys] == [result[key] for key in keys]
    assert (device["driver"], device["pool"]) == ("dra.net", "node-0")
    assert [(one["type"], one["status"]) for one in device["conditions"]] == [("Ready", "True")]


def test_a_pod_that_asks_the_old_way_gets_a_device(cleared: Lab) -> None:
    """By the extended resource's name; nothing in the pod speaks of claims."""
    asking = container("main", securityContext=PLAIN, resources={"limits": {"rdma/lab": "1"}})
    create(cleared, pod("old", "node-1", [asking, container("other")]))
    await_ready(cleared, "old")
    seen = ask(cleared, "old", "main", LOOK)
    assert set(seen.values()) == {"opens"}
    assert len(set(seen) & set(verbs_of(cleared.node(1)).values())) == 1
    assert ask(cleared, "old", "other", LOOK) == {}


# -- use it --------------------------------------------------------------------------------------------------------


def received(node: Node) -> list[int]:
    """Packets that each Soft-RoCE device has received."""
    counters = [f"/sys/class/infiniband/rxe_rdma{i}/ports/1/hw_counters/rcvd_pkts" for i in range(NICS)]
    return [int(word) for word in node.run(f"cat {' '.join(counters)}").stdout.split()]


def test_two_pods_write_to_each_other_over_the_nics_they_claimed(cleared: Lab) -> None:
    """Without any privilege. The rates say nothing: the clock is emulated."""
    rail, port = 1, 18515
    for name, node in (("server", "node-0"), ("client", "node-1")):
        create(cleared, claim(name, rail), with_claim(name, node, container("main", securityContext=PLAIN, **CLAIMED)))
    await_ready(cleared, "server", "client")
    address = get(cleared, "pod", "server")["status"]["podIP"]
    before = received(cleared.node(0))
    test = ["ib_write_bw", "-F", "-d", f"rxe_rdma{rail}", "-x", "1", "-s", "4096", "-n", "200", "-p", str(port)]
    # The server waits in the background of the container; what it says is not needed.
    serve = f"import subprocess; subprocess.Popen({test!r}, start_new_session=True, stdout=-3, stderr=-3)"
    cleared.kubectl("exec", "server", "--", "python3", "-c", serve)
    listens = ["exec", "server", "--", "python3", "-c", LISTENS, str(port)]
    wait_for(lambda: cleared.kubectl(*listens, check=False).returncode == 0)
    said = cleared.kubectl("exec", "client", "--", *test, address).stdout
    assert re.search(r"^\s*4096\s+200\s+[\d.]+\s+[\d.]+", said, re.MULTILINE), said
    more = [now - then for now, then in zip(received(cleared.node(0)), before, strict=True)]
    # At an MTU of 1024 bytes, 200 writes of 4096 bytes are at least 800 packets.
    assert more[rail] >= 800
    assert [count for i, count in enumerate(more) if i != rail] == [0] * (NICS - 1)


# -- what goes on around it ----------------------------------------------------------------------------------------


def test_a_new_driver_knows_what_the_old_one_handed_out(cleared: Lab) -> None:
    node = cleared.node(0)
    create(
        cleared, claim("kept", 0), with_claim("kept", node.name, container("main", securityContext=PLAIN, **CLAIMED))
    )
    await_ready(cleared, "kept")
    before = {one["metadata"]["name"]: one["metadata"] for one in get(cleared, "resourceslices")["items"]}
    cleared.kubectl("-n", NAMESPACE, "rollout", "restart", "daemonset/fishplate")
    await_driver(cleared)
    after = {one["metadata"]["name"]: one["metadata"] for one in get(cleared, "resourceslices")["items"]}
    versions = [{name: one["resourceVersion"] for name, one in them.items()} for them in (before, after)]
    assert versions[0] == versions[1]
    assert set(ask(cleared, "kept", "main", LOOK).values()) == {"opens"}
    uid = get(cleared, "resourceclaim", "kept")["metadata"]["uid"]
    assert uid in node.run("ls /var/run/cdi").stdout
    cleared.kubectl("delete", "pod", "kept", "--wait=true")
    wait_for(lambda: uid not in node.run("ls /var/run/cdi").stdout)


def test_devices_come_back_after_their_modules_were_reloaded(cleared: Lab) -> None:
    """As a vendor's driver container does on a running node. The directory of device nodes is then another one than the
    driver's container was given."""
    node, rails = cleared.node(1), [f"rxe_rdma{i}" for i in range(NICS)]
    assert published(cleared, node) == rails
    names = "rdma_rxe rdma_ucm ib_umad ib_uverbs"
    node.run(f"for i in {' '.join(rails)}; do rdma link delete $i; done; for m in {names}; do modprobe -r $m; done")
    assert node.run("ls /dev/infiniband", check=False).returncode != 0
    wait_for(lambda: published(cleared, node) == [])
    node.run(f"for m in {names}; do modprobe $m; done")
    for i, rail in enumerate(rails):
        node.run(f"rdma link add {rail} type rxe netdev rdma{i}")
    wait_for(lambda: published(cleared, node) == rails)
    create(
        cleared, claim("again", 2), with_claim("again", node.name, container("main", securityContext=PLAIN, **CLAIMED))
    )
    await_ready(cleared, "again")
    assert ask(cleared, "again", "main", LOOK) == {verbs_of(node)["rxe_rdma2"]: "opens", "rdma_cm": "opens"}


# -- what the driver did for it ------------------------------------------------------------------------------------


def requests(lab: Lab) -> list[tuple[str, str, int]]:
    """Verb, resource and answer of every request of the driver."""
    found = []
    for line in lab.audit_log.read_text().splitlines():
        entry = json.loads(line)
        if entry["user"]["username"] == SERVICE_ACCOUNT:
            where = entry.get("objectRef", {})
            resource = "/".join(filter(None, (where.get("resource"), where.get("subresource"))))
            found.append((entry["verb"], resource, entry.get("responseStatus", {}).get("code", 0)))
    return found


def test_the_driver_is_no_larger_than_upstreams(driver: Lab) -> None:
    """After all the pods above. DRANET 1.4.0 took 58 MB after its start in such a machine, 67 to 77 after pods."""
    for node in driver.nodes:
        status = dict(re.findall(r"^(\w+):\s*(\d+)", node.run(FIND_DRIVER).stdout, re.MULTILINE))
        assert int(status["VmRSS"]) * 1024 <= 58_000_000


def test_the_driver_had_the_rights_it_needed(driver: Lab) -> None:
    """By the API server's own record of all tests above."""
    asked = requests(driver)
    assert {("create", "resourceslices"), ("patch", "resourceclaims/status")} <= {
        (verb, what) for verb, what, _ in asked
    }
    assert [one for one in asked if one[2] == 403] == []
