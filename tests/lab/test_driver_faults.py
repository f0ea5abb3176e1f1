"""The driver killed, left alone, cut off or lied to: nothing is lost and no device is handed out twice.

Real processes, a real API server and scheduler, the kubelet's client code and the real NRI adaptation."""

import itertools
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fishplate.driver.faults import POINTS
from lab.bare import bare_node
from lab.session import Lab
from oracle.peers import PeerError
from tests.integration.cluster_kit import DRA, SLICES, ClusterKit, allocated
from tests.integration.driver_node import DriverNode, free_port, wait_for

pytestmark = pytest.mark.lab

SIGKILL = -9
NICS = 4
NAMESPACE = "faults"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def kit(control_plane: Lab) -> ClusterKit:
    made = ClusterKit(control_plane.api, NAMESPACE)
    made.create_namespace()
    made.delete(f"{DRA}/deviceclasses/dranet.net")
    selector = {"cel": {"expression": 'device.driver == "dra.net"'}}
    made.create(f"{DRA}/deviceclasses", {"metadata": {"name": "dranet.net"}, "spec": {"selectors": [selector]}})
    return made


@pytest.fixture
def node(control_plane: Lab, kit: ClusterKit) -> Iterator[DriverNode]:
    """A GB300 node with its runtime up and its driver still to be started."""
    name = f"fault-{next(_numbers)}"
    kit.create("/api/v1/nodes", bare_node(name))
    with (
        tempfile.TemporaryDirectory(prefix="fp-") as short,  # a socket's path may have 107 bytes
        DriverNode(Path(short), kubeconfig=control_plane.kubeconfig, name=name) as made,
    ):
        made.start_runtime()
        yield made
    for one in kit.slices(name):
        kit.delete(f"{SLICES}/{one['metadata']['name']}")
    kit.delete(f"/api/v1/nodes/{name}")


def pod_with_nics(kit: ClusterKit, node: DriverNode, count: int = 1, **request: object) -> tuple[Any, Any]:
    """A pod on this node, scheduled by the real scheduler, and its claim."""
    name = f"pod-{next(_numbers)}"
    exactly = {"deviceClassName": "dranet.net", "count": count, **request}
    kit.create_claim(name, {"requests": [{"name": "nic", "exactly": exactly}]})
    kit.create_pod(name, claim=name, nodeSelector={"kubernetes.io/hostname": node.name})
    return kit.scheduled(name)


def published(kit: ClusterKit, node: DriverNode) -> bool:
    slices = kit.slices(node.name)
    counts = {one["spec"]["pool"]["resourceSliceCount"] for one in slices}
    generations = {one["spec"]["pool"]["generation"] for one in slices}
    devices = [device for one in slices for device in one["spec"].get("devices", [])]
    return counts == {len(slices)} and len(generations) == 1 and len(devices) == NICS


def given(node: DriverNode) -> list[str]:
    """Every verbs node in every CDI spec: one that stands there twice was handed out twice."""
    return sorted(
        entry["path"]
        for spec in node.specs().values()
        for device in spec["devices"]
        for entry in device["containerEdits"]["deviceNodes"]
        if "uverbs" in entry["path"]
    )


def ids_of(answer: dict[str, Any]) -> list[str]:
    return [one for device in answer["devices"] for one in device["cdi_device_ids"]]


def prepared(node: DriverNode, claim: Any) -> dict[str, Any]:  # noqa: ANN401
    answer = node.prepare(claim)[claim["metadata"]["uid"]]
    assert not answer.get("error"), answer
    assert isinstance(answer, dict)
    return answer


def start(kit: ClusterKit, node: DriverNode, *flags: str, crash_at: str = "") -> None:
    node.start(*flags, env={"FISHPLATE_CRASH_AT": crash_at} if crash_at else None)
    wait_for(f"slices of {node.name}", lambda: published(kit, node))


# -- killed ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", [point for point in POINTS if point.startswith(("prepare.", "status."))])
def test_killed_while_preparing_and_asked_again(kit: ClusterKit, node: DriverNode, point: str) -> None:
    start(kit, node, crash_at=point)
    pod, claim = pod_with_nics(kit, node, 2)
    try:
        node.prepare(claim)
        assert point == "status.applied"  # which comes after the answer
    except PeerError:
        pass
    assert node.ended() == SIGKILL
    start(kit, node)
    answer = prepared(node, claim)
    assert sorted(one["device_name"] for one in answer["devices"]) == sorted(allocated(claim))
    assert len(given(node)) == len(set(given(node))) == 2
    assert node.create_container(pod, "main") == node.nodes_of(ids_of(answer))
    wait_for("the status", lambda: kit.claim(claim["metadata"]["name"])["status"].get("devices"))
    node.unprepare(claim)
    assert node.specs() == {}


@pytest.mark.parametrize("point", [point for point in POINTS if point.startswith("prepare.")])
def test_killed_while_preparing_and_the_pod_given_up(kit: ClusterKit, node: DriverNode, point: str) -> None:
    start(kit, node, crash_at=point)
    _, claim = pod_with_nics(kit, node, NICS)
    with pytest.raises(PeerError):
        node.prepare(claim)
    assert node.ended() == SIGKILL
    start(kit, node)
    assert node.unprepare(claim) == {claim["metadata"]["uid"]: {}}
    assert node.specs() == {}
    kit.delete_pod(claim["metadata"]["name"])
    kit.delete(f"{DRA}/namespaces/{NAMESPACE}/resourceclaims/{claim['metadata']['name']}")
    _, other = pod_with_nics(kit, node, NICS)  # all of them are free again
    prepared(node, other)


@pytest.mark.parametrize("point", [point for point in POINTS if point.startswith("unprepare.")])
def test_killed_while_unpreparing(kit: ClusterKit, node: DriverNode, point: str) -> None:
    start(kit, node)
    _, claim = pod_with_nics(kit, node, NICS)
    prepared(node, claim)
    node.kill()
    start(kit, node, crash_at=point)
    with pytest.raises(PeerError):
        node.unprepare(claim)
    assert node.ended() == SIGKILL
    start(kit, node)
    assert node.unprepare(claim) == {claim["metadata"]["uid"]: {}}
    assert node.specs() == {}
    kit.delete_pod(claim["metadata"]["name"])
    kit.delete(f"{DRA}/namespaces/{NAMESPACE}/resourceclaims/{claim['metadata']['name']}")
    _, other = pod_with_nics(kit, node, NICS)
    prepared(node, other)


@pytest.mark.parametrize("point", ["publish.listed", "publish.created"])
def test_killed_at_the_first_publication(kit: ClusterKit, node: DriverNode, point: str) -> None:
    node.launch(env={"FISHPLATE_CRASH_AT": point})
    assert node.ended() == SIGKILL
    start(kit, node)


@pytest.mark.parametrize("point", ["publish.deleted", "publish.updated"])
def test_killed_between_the_writes_of_a_new_generation(kit: ClusterKit, node: DriverNode, point: str) -> None:
    """A slice too many, as of a pool that was larger: deleting it and updating the other are two writes."""
    start(kit, node)
    node.kill()
    (live,) = kit.slices(node.name)
    pool = {**live["spec"]["pool"], "resourceSliceCount": 2}
    labels = live["metadata"]["labels"]
    extra = {**live["spec"], "pool": pool, "devices": [{"name": "left-over"}]}
    kit.create(SLICES, {"metadata": {"name": f"00001-dra.net-{node.name}", "labels": labels}, "spec": extra})
    node.launch(env={"FISHPLATE_CRASH_AT": point})
    assert node.ended() == SIGKILL
    start(kit, node)
    assert [one["metadata"]["name"] for one in kit.slices(node.name)] == [live["metadata"]["name"]]


# -- away --------------------------------------------------------------------------------------------------------


def test_away_while_a_pod_starts_the_device_comes_by_cdi(kit: ClusterKit, node: DriverNode) -> None:
    start(kit, node)
    pod, claim = pod_with_nics(kit, node)
    ids = ids_of(prepared(node, claim))
    wanted = node.nodes_of(ids)
    node.kill()
    assert node.create_container(pod, "main", cdi=tuple(ids)) == set()  # the runtime goes on without the plugin
    assert node.nodes_of(ids) == wanted  # and finds the spec where it was
    start(kit, node)
    assert ids_of(prepared(node, claim)) == ids


def test_away_without_cdi_the_container_that_missed_its_device_is_reported(kit: ClusterKit, node: DriverNode) -> None:
    start(kit, node, "--injection", "nri")
    node.wait_ready()  # without NRI nothing is prepared
    pod, claim = pod_with_nics(kit, node)
    assert all(not one.get("cdi_device_ids") for one in prepared(node, claim)["devices"])
    node.kill()
    node.stop_runtime()
    node.start_runtime(live=(pod["metadata"]["uid"],))  # its container runs by now, with nothing in it
    start(kit, node, "--injection", "nri")

    def told() -> Any:  # noqa: ANN401
        devices = kit.claim(claim["metadata"]["name"])["status"].get("devices", [])
        return [one for one in devices if one["conditions"][0]["status"] == "False"]

    (entry,) = wait_for("the False condition", told)
    assert entry["conditions"][0]["reason"] == "DeviceMissing"
    assert "/dev/infiniband/uverbs" in entry["conditions"][0]["message"]
    assert "fishplate_containers_without_devices_total 1.0" in node.page("/metrics")[1]


def test_away_while_a_pod_stops_the_kubelet_tries_again(kit: ClusterKit, node: DriverNode) -> None:
    start(kit, node)
    _, claim = pod_with_nics(kit, node, NICS)
    prepared(node, claim)
    node.kill()
    with pytest.raises(PeerError):
        node.unprepare(claim)
    start(kit, node)
    assert node.unprepare(claim) == {claim["metadata"]["uid"]: {}}
    assert node.specs() == {}


def test_the_runtime_gone_and_back_a_hundred_times(kit: ClusterKit, node: DriverNode) -> None:
    start(kit, node)
    pod, claim = pod_with_nics(kit, node)
    wanted = node.nodes_of(ids_of(prepared(node, claim)))
    for _ in range(100):
        node.stop_runtime()
        wait_for("not ready without a runtime", lambda: "NRI" in node.page("/readyz")[1])
        node.start_runtime()
        node.wait_ready()
    assert node.create_container(pod, "main") == wanted


def test_a_kubelet_that_restarts_wipes_the_slices_and_gets_them_back(kit: ClusterKit, node: DriverNode) -> None:
    start(kit, node)
    _, claim = pod_with_nics(kit, node)
    before = prepared(node, claim)
    node.end_peer("kubelet")
    for one in kit.slices(node.name):
        kit.delete(f"{SLICES}/{one['metadata']['name']}")
    wait_for("the slices to come back", lambda: published(kit, node))
    node.register()
    assert prepared(node, claim) == before


def test_a_clean_stop_takes_the_sockets_away_and_leaves_what_pods_use(kit: ClusterKit, node: DriverNode) -> None:
    start(kit, node)
    _, claim = pod_with_nics(kit, node)
    prepared(node, claim)
    assert node.stop() == 0
    assert not node.registration_socket.exists()
    assert not Path(node.service_socket).exists()
    assert len(node.specs()) == 1


# -- lied to -----------------------------------------------------------------------------------------------------


def test_a_claim_made_anew_under_the_same_name_is_not_the_same(kit: ClusterKit, node: DriverNode) -> None:
    start(kit, node)
    _, claim = pod_with_nics(kit, node)
    stale = json.loads(json.dumps(claim))
    stale["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000"
    answer = node.prepare(stale)[stale["metadata"]["uid"]]
    assert "got replaced" in answer["error"]
    assert node.specs() == {}


def test_claims_that_cannot_be_prepared_say_why_and_leave_nothing(kit: ClusterKit, node: DriverNode) -> None:
    start(kit, node)
    missing = {"metadata": {"namespace": NAMESPACE, "name": "no-such", "uid": "11111111-0000-4000-8000-000000000000"}}
    assert "does not exist" in node.prepare(missing)[missing["metadata"]["uid"]]["error"]
    name = f"unallocated-{next(_numbers)}"
    exactly = {"deviceClassName": "dranet.net"}
    waiting = kit.create_claim(name, {"requests": [{"name": "nic", "exactly": exactly}]})
    assert "is not allocated" in node.prepare(waiting)[waiting["metadata"]["uid"]]["error"]
    assert node.specs() == {}
    assert node.unprepare(missing) == {missing["metadata"]["uid"]: {}}


def test_parameters_nobody_knows_are_refused_in_the_claims_status_and_events(kit: ClusterKit, node: DriverNode) -> None:
    start(kit, node)
    name = f"pod-{next(_numbers)}"
    opaque = {"driver": "dra.net", "parameters": {"interface": {"mtu": 9000}, "colour": "blue"}}
    requests = [{"name": "nic", "exactly": {"deviceClassName": "dranet.net"}}]
    kit.create_claim(name, {"requests": requests, "config": [{"opaque": opaque}]})
    kit.create_pod(name, claim=name, nodeSelector={"kubernetes.io/hostname": node.name})
    _, claim = kit.scheduled(name)
    answer = node.prepare(claim)[claim["metadata"]["uid"]]
    assert "colour" in answer["error"]
    assert "interface.mtu" in answer["error"]
    assert node.specs() == {}
    (entry,) = wait_for("the status", lambda: kit.claim(name)["status"].get("devices"))
    assert (entry["conditions"][0]["status"], entry["conditions"][0]["reason"]) == ("False", "PrepareFailed")
    events = wait_for(
        "the event",
        lambda: [
            one
            for one in kit.get(f"/api/v1/namespaces/{NAMESPACE}/events")["items"]
            if one["involvedObject"].get("name") == name and one["reason"] == "ClaimPrepareFailed"
        ],
    )
    assert "interface.mtu" in events[0]["message"]


def test_a_device_that_vanished_is_refused_and_the_slice_says_so(kit: ClusterKit, node: DriverNode) -> None:
    start(kit, node)
    _, claim = pod_with_nics(kit, node)
    (device,) = allocated(claim)
    address = device.removeprefix("pci-")
    address = f"{address[:4]}:{address[5:7]}:{address[8:10]}.{address[11:]}"
    link = node.root / "sys/bus/pci/devices" / address
    (rdma,) = (link / "infiniband").iterdir()
    (node.root / "sys/class/infiniband" / rdma.name).unlink()
    link.unlink()
    answer = node.prepare(claim)[claim["metadata"]["uid"]]
    assert f"device {device} is not on this node" in answer["error"]

    def told() -> bool:
        return all(device != one["name"] for slice_ in kit.slices(node.name) for one in slice_["spec"]["devices"])

    wait_for("the slice without the device", told)


def test_another_owner_of_the_name_is_seen_and_nothing_is_touched(kit: ClusterKit, node: DriverNode) -> None:
    pool = {"name": node.name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "dra.net", "nodeName": node.name, "pool": pool, "devices": [{"name": "theirs"}]}
    kit.create(SLICES, {"metadata": {"name": f"{node.name}-dra.net-upstream"}, "spec": spec})
    before = kit.slices(node.name)
    node.launch()
    assert node.ended() == 3
    assert "another driver already serves dra.net" in node.log
    assert kit.slices(node.name) == before
    assert not node.registration_socket.exists()


def test_a_second_driver_on_the_node_refuses_to_start(kit: ClusterKit, node: DriverNode) -> None:
    start(kit, node)
    first = node._process
    node._process = None
    node.launch("--bind-address", f"127.0.0.1:{free_port()}")
    assert node.ended() == 3
    assert "is in use" in node.log
    node._process = first
    node.wait_ready()


def test_a_foreign_database_is_refused(node: DriverNode) -> None:
    (node.directory / "driver.db").write_bytes(b"upstream's bolt file" * 500)
    node.launch()
    assert node.ended() == 2
    assert "not a Fishplate database" in node.log


def test_two_pods_sharing_a_claim_both_get_its_devices(kit: ClusterKit, node: DriverNode) -> None:
    """The kubelet calls for the first pod only."""
    start(kit, node)
    first, claim = pod_with_nics(kit, node)
    wanted = node.nodes_of(ids_of(prepared(node, claim)))
    name = f"second-{next(_numbers)}"
    kit.create_pod(name, claim=claim["metadata"]["name"], nodeSelector={"kubernetes.io/hostname": node.name})
    second, _ = kit.scheduled(name)
    for pod in (first, second):
        node.run_pod(pod)
        assert node.create_container(pod, "main") == wanted
        assert node.create_container(pod, "sidecar") == set()
