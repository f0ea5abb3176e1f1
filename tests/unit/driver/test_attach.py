import asyncio
from pathlib import Path

import pytest

from fishplate.driver.attach import Attacher, Missing
from fishplate.driver.cdi import device_id
from fishplate.driver.records import Consumer
from fishplate.errors import InputError
from fishplate.wire.nri import Adjustment, Container, ContainerState, DeviceNode, Pod
from tests.unit.driver.node_kit import NICS, NodeKit

POD = Pod(id="sandbox", uid="pod-uid", namespace="ns", name="trainer")


@pytest.fixture
def kit(tmp_path: Path) -> NodeKit:
    return NodeKit(tmp_path)


def attacher(kit: NodeKit, *, inject: bool = True) -> Attacher:
    return Attacher(kit.store, driver="dra.net", inject=inject)


def give(kit: NodeKit, uid: str, *devices: str, containers: dict[str, tuple[str, ...]], **more: object) -> None:
    user = Consumer(uid=POD.uid, namespace="ns", name=POD.name, containers=containers)
    ref = kit.shelf.put(uid, *devices, users=(user,), **more)  # type: ignore[arg-type]
    answer = asyncio.run(kit.preparer.prepare([ref]))[uid]
    assert answer.error == ""


def container(name: str = "main", **more: object) -> Container:
    return Container(id=f"id-{name}", pod_id=POD.id, name=name, **more)  # type: ignore[arg-type]


def paths(adjustment: Adjustment) -> list[str]:
    return [node.path.removeprefix("/dev/infiniband/") for node in adjustment.devices]


def test_a_container_gets_the_devices_of_its_claim(kit: NodeKit) -> None:
    give(kit, "a", NICS[1], containers={"main": ()})
    adjustment = attacher(kit).create_container(POD, container())
    assert paths(adjustment) == ["uverbs1", "rdma_cm"]
    assert (adjustment.devices[0].major, adjustment.devices[0].minor) == (231, 193)


def test_a_container_of_the_pod_that_does_not_name_the_claim_gets_nothing(kit: NodeKit) -> None:
    give(kit, "a", NICS[1], containers={"main": ()})
    assert attacher(kit).create_container(POD, container("sidecar")) == Adjustment()


def test_a_container_that_names_one_request_gets_that_one(kit: NodeKit) -> None:
    give(kit, "a", NICS[1], containers={"main": ("other",), "second": ("nic",)})
    assert attacher(kit).create_container(POD, container()) == Adjustment()
    assert paths(attacher(kit).create_container(POD, container("second"))) == ["uverbs1", "rdma_cm"]


def test_another_pod_gets_nothing(kit: NodeKit) -> None:
    give(kit, "a", NICS[1], containers={"main": ()})
    other = Pod(id="other", uid="other-uid", namespace="ns", name=POD.name)
    assert attacher(kit).create_container(other, container()) == Adjustment()


def test_what_cdi_put_there_is_not_added_again(kit: NodeKit) -> None:
    give(kit, "a", NICS[1], containers={"main": ()})
    there = attacher(kit).create_container(POD, container()).devices
    assert attacher(kit).create_container(POD, container(devices=there)) == Adjustment()


def test_a_node_of_the_same_path_and_another_number_does_not_count(kit: NodeKit) -> None:
    give(kit, "a", NICS[1], containers={"main": ()})
    wrong = DeviceNode(path="/dev/infiniband/uverbs1", major=1, minor=3)
    assert "uverbs1" in paths(attacher(kit).create_container(POD, container(devices=(wrong,))))


def test_two_claims_of_one_pod_are_both_given(kit: NodeKit) -> None:
    give(kit, "a", NICS[0], containers={"main": ()})
    give(kit, "b", NICS[3], containers={"main": ()})
    assert paths(attacher(kit).create_container(POD, container())) == ["uverbs0", "rdma_cm", "uverbs3"]


def test_a_container_whose_claim_is_not_prepared_is_refused(kit: NodeKit) -> None:
    give(kit, "a", NICS[0], containers={"main": ()})
    known = kit.store.claim("a")
    assert known is not None
    kit.store.reserve(known)  # back to half-way, as after a crash
    with pytest.raises(InputError, match="claim ns/claim-a of pod ns/trainer is not prepared on this node"):
        attacher(kit).create_container(POD, container())


def test_a_container_with_an_id_of_a_claim_nobody_prepared_is_refused(kit: NodeKit) -> None:
    give(kit, "a", NICS[0], containers={"main": ()})
    known = kit.store.claim("a")
    assert known is not None
    name = device_id("dra.net", known, known.held[0])
    kit.store.forget("a")
    with pytest.raises(InputError, match="not prepared on this node"):
        attacher(kit).create_container(POD, container(cdi_devices=(name,)))


def test_a_container_whose_device_is_gone_is_refused(kit: NodeKit) -> None:
    give(kit, "a", NICS[0], containers={"main": ()})
    kit.preparer.follow(kit.without(NICS[0]))
    with pytest.raises(InputError, match="not on this node"):
        attacher(kit).create_container(POD, container())


def test_where_nri_only_checks_a_missing_node_refuses_the_container(kit: NodeKit) -> None:
    give(kit, "a", NICS[0], containers={"main": ()})
    with pytest.raises(InputError, match="has a claim, but not /dev/infiniband/uverbs0"):
        attacher(kit, inject=False).create_container(POD, container())


def test_nccl_is_told_all_devices_of_the_container(kit: NodeKit) -> None:
    wish = {"rdma": {"ncclEnvironment": True}}
    give(kit, "a", NICS[0], containers={"main": ()}, parameters=wish)
    give(kit, "b", NICS[3], containers={"main": ()}, parameters=wish)
    both = "=mlx5_0,mlx5_3"
    assert attacher(kit).create_container(POD, container()).env == {"NCCL_IB_HCA": both}
    by_cdi = container(env=("NCCL_IB_HCA==mlx5_3",))
    assert attacher(kit).create_container(POD, by_cdi).env == {"NCCL_IB_HCA": both}
    own = container(env=("NCCL_IB_HCA=mlx5_7",))
    assert attacher(kit).create_container(POD, own).env == {}


def test_a_container_that_started_without_its_devices_is_reported(kit: NodeKit) -> None:
    give(kit, "a", NICS[0], containers={"main": ()})
    found: list[Missing] = []
    plugin = Attacher(kit.store, driver="dra.net", on_missing=found.append)
    whole = attacher(kit).create_container(POD, container()).devices
    plugin.synchronize([POD], [container(state=ContainerState.RUNNING, devices=whole)])
    assert found == []
    plugin.synchronize([POD], [container(state=ContainerState.RUNNING)])
    assert found[0].nodes == ("/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm")


def test_a_claim_runs_while_the_runtime_has_its_pod_or_cannot_be_asked(kit: NodeKit) -> None:
    give(kit, "a", NICS[0], containers={"main": ()})
    claim = kit.store.claims[0]
    plugin = attacher(kit)
    assert plugin.runs(claim)
    plugin.synchronize([], [])
    assert not plugin.runs(claim)
    plugin.run_pod_sandbox(POD)
    assert plugin.runs(claim)
    plugin.remove_pod_sandbox(POD)
    assert not plugin.runs(claim)
    plugin.disconnected("restart")
    assert plugin.runs(claim)


def test_a_claim_that_pods_share_always_runs(kit: NodeKit) -> None:
    give(kit, "a", NICS[0], containers={"main": ()}, shared=True)
    plugin = attacher(kit)
    plugin.synchronize([], [])
    assert plugin.runs(kit.store.claims[0])
