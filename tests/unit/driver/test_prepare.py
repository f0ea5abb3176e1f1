import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from fishplate.driver.records import Consumer
from fishplate.topology.inventory import Inventory
from fishplate.wire.kubelet import ClaimRef, Prepared
from tests.unit.driver.node_kit import NICS, NODE, NodeKit, ref


@pytest.fixture
def kit(tmp_path: Path) -> NodeKit:
    return NodeKit(tmp_path)


def prepare(kit: NodeKit, *refs: ClaimRef) -> dict[str, Prepared]:
    return dict(asyncio.run(kit.preparer.prepare(refs)))


def unprepare(kit: NodeKit, *refs: ClaimRef) -> dict[str, str]:
    return dict(asyncio.run(kit.preparer.unprepare(refs)))


def nodes_in_spec(kit: NodeKit, uid: str) -> set[str]:
    (path,) = (kit.directory / "cdi").glob(f"*{uid}.json")
    spec = json.loads(path.read_text())
    return {
        node["path"].removeprefix("/dev/infiniband/")
        for device in spec["devices"]
        for node in device["containerEdits"]["deviceNodes"]
    }


def test_a_claim_gets_exactly_its_devices_nodes(kit: NodeKit) -> None:
    answer = prepare(kit, kit.shelf.put("a", NICS[0], NICS[2]))["a"]
    assert answer.error == ""
    assert [(one.pool, one.device, one.requests) for one in answer.devices] == [
        (NODE, NICS[0], ("nic",)),
        (NODE, NICS[2], ("nic",)),
    ]
    assert nodes_in_spec(kit, "a") == {"uverbs0", "uverbs2", "rdma_cm"}


def test_requests_are_named_without_their_subrequest(kit: NodeKit) -> None:
    answer = prepare(kit, kit.shelf.put("a", NICS[0], request="nic/fast"))["a"]
    assert answer.devices[0].requests == ("nic",)


def test_asking_twice_gives_the_same_answer_without_reading_the_claim_again(kit: NodeKit) -> None:
    claim = kit.shelf.put("a", NICS[0])
    first = prepare(kit, claim)
    reads = kit.shelf.reads
    assert prepare(kit, claim) == first
    assert kit.shelf.reads == reads


def test_a_spec_that_somebody_removed_is_written_again(kit: NodeKit) -> None:
    claim = kit.shelf.put("a", NICS[0])
    prepare(kit, claim)
    for path in (kit.directory / "cdi").iterdir():
        path.unlink()
    prepare(kit, claim)
    assert kit.specs == {"a"}


def test_a_claim_without_a_device_of_ours_is_refused(kit: NodeKit) -> None:
    answer = prepare(kit, kit.shelf.put("a", "gpu-0", driver="gpu.nvidia.com"))["a"]
    assert "no device of driver dra.net" in answer.error
    assert kit.specs == set()


def test_a_device_in_use_is_refused_by_name_of_its_holder(kit: NodeKit) -> None:
    kit.running = lambda _: True
    prepare(kit, kit.shelf.put("a", NICS[0]))
    answer = prepare(kit, kit.shelf.put("b", NICS[1], NICS[0]))["b"]
    assert f"device {NICS[0]} is in use by claim ns/claim-a" in answer.error
    assert "\n" not in answer.error
    assert kit.specs == {"a"}
    assert prepare(kit, kit.shelf.put("c", NICS[1]))["c"].error == ""  # nothing of b was kept


@pytest.mark.parametrize(
    ("device", "pool", "parameters", "why"),
    [
        ("pci-ffff-00-00-0", NODE, None, "is not on this node"),
        (NICS[0], "other-node", None, "which is not this node's"),
        (NICS[0], NODE, {"interface": {"mtu": 9000}}, "interface.mtu"),
        (NICS[0], NODE, {"nonsense": 1}, "nonsense"),
        (NICS[0], NODE, {"rdma": {"managementNodes": True}}, "--allow-management-nodes"),
    ],
)
def test_what_cannot_be_given_is_refused_and_nothing_is_half_done(
    kit: NodeKit, device: str, pool: str, parameters: object, why: str
) -> None:
    answer = prepare(kit, kit.shelf.put("a", device, pool=pool, parameters=parameters))["a"]
    assert why in answer.error
    assert answer.devices == ()
    assert kit.specs == set()
    assert kit.store.claims == ()
    assert kit.diary.entries[0][0] == "failed"


def test_a_uid_that_is_no_uid_touches_no_file(kit: NodeKit) -> None:
    hostile = ClaimRef(namespace="ns", name="c", uid="../../etc/passwd")
    assert "no UID" in prepare(kit, hostile)[hostile.uid].error
    assert "no UID" in unprepare(kit, hostile)[hostile.uid]


def test_management_nodes_come_only_where_operator_and_claim_want_them(tmp_path: Path) -> None:
    kit = NodeKit(tmp_path, management=True)
    prepare(kit, kit.shelf.put("plain", NICS[0]))
    prepare(kit, kit.shelf.put("manager", NICS[1], parameters={"rdma": {"managementNodes": True}}))
    assert nodes_in_spec(kit, "plain") == {"uverbs0", "rdma_cm"}
    assert nodes_in_spec(kit, "manager") == {"uverbs1", "umad1", "issm1", "rdma_cm"}


def test_unprepare_frees_the_device_and_removes_the_spec(kit: NodeKit) -> None:
    prepare(kit, kit.shelf.put("a", NICS[0]))
    assert unprepare(kit, ref("a")) == {"a": ""}
    assert (kit.specs, kit.store.claims) == (set(), ())
    assert prepare(kit, kit.shelf.put("b", NICS[0]))["b"].error == ""


def test_unprepare_of_a_claim_nobody_knows_succeeds(kit: NodeKit) -> None:
    assert unprepare(kit, ref("stranger")) == {"stranger": ""}


def test_one_bad_claim_of_a_pod_does_not_spoil_the_others(kit: NodeKit) -> None:
    answers = prepare(kit, kit.shelf.put("good", NICS[0]), kit.shelf.put("bad", "nowhere"))
    assert (answers["good"].error, bool(answers["bad"].error)) == ("", True)


def test_of_two_claims_for_one_device_at_once_exactly_one_gets_it(kit: NodeKit) -> None:
    kit.running = lambda _: True
    answers = prepare(kit, *(kit.shelf.put(f"c{number}", NICS[0]) for number in range(8)))
    assert sorted(bool(answer.error) for answer in answers.values()) == [False] + [True] * 7
    assert len(kit.specs) == 1


def test_after_a_restart_specs_are_those_of_the_claims_remembered(kit: NodeKit) -> None:
    prepare(kit, kit.shelf.put("a", NICS[0]))
    (spec,) = (kit.directory / "cdi").iterdir()
    stray = spec.with_name(spec.name.replace("_a.json", "_stray.json"))
    spec.rename(stray)
    kit.start()
    kit.preparer.restore()
    assert kit.specs == {"a"}


def test_a_holder_that_is_gone_makes_room_but_not_while_its_containers_run(kit: NodeKit) -> None:
    user = Consumer(uid="pod", name="p", containers={"main": ()})
    prepare(kit, kit.shelf.put("old", NICS[0], users=(user,)))
    del kit.shelf.claims["old"]  # the kubelet never unprepares it
    kit.running = lambda claim: claim.uid == "old"
    assert "in use" in prepare(kit, kit.shelf.put("new", NICS[0]))["new"].error
    kit.running = lambda _: False
    assert prepare(kit, ref("new"))["new"].error == ""
    assert kit.specs == {"new"}


def renumbered(host: Inventory, device: str) -> Inventory:
    """The same card after its driver was loaded again: its verbs node has another number."""

    nics = []
    for nic in host.nics:
        if nic.id == device:
            (rdma,) = nic.rdma
            nodes = tuple(
                msgspec.structs.replace(node, path="/dev/infiniband/uverbs9", minor=201)
                if node.kind == "uverbs"
                else node
                for node in rdma.char_devices
            )
            nic = msgspec.structs.replace(nic, rdma=(msgspec.structs.replace(rdma, char_devices=nodes),))
        nics.append(nic)
    return msgspec.structs.replace(host, nics=tuple(nics))


def test_a_device_that_got_another_number_is_followed(kit: NodeKit) -> None:
    prepare(kit, kit.shelf.put("a", NICS[0]))
    kit.preparer.follow(renumbered(kit.host, NICS[0]))
    assert nodes_in_spec(kit, "a") == {"uverbs9", "rdma_cm"}


def test_while_a_device_is_gone_no_container_can_start_with_it(kit: NodeKit) -> None:
    prepare(kit, kit.shelf.put("a", NICS[0]))
    kit.preparer.follow(kit.without(NICS[0]))
    assert kit.specs == set()
    known = kit.store.claim("a")
    assert known is not None
    assert "not on this node" in known.lost
    kit.preparer.follow(kit.host)
    assert nodes_in_spec(kit, "a") == {"uverbs0", "rdma_cm"}


def test_a_device_that_appears_late_is_found_by_looking_again(kit: NodeKit) -> None:
    kit.inventory._now = kit.without(NICS[0])
    assert prepare(kit, kit.shelf.put("a", NICS[0]))["a"].error == ""
    assert kit.inventory.scans == 1


def test_exclusive_rdma_mode_is_refused_with_the_command_to_change_it(kit: NodeKit) -> None:
    host = msgspec.structs.replace(kit.host.host, rdma_netns="exclusive")
    kit.host = kit.inventory._now = msgspec.structs.replace(kit.host, host=host)
    assert "rdma system set netns shared" in prepare(kit, kit.shelf.put("a", NICS[0]))["a"].error


def test_without_cdi_nothing_is_prepared_while_the_runtime_does_not_have_us(tmp_path: Path) -> None:
    kit = NodeKit(tmp_path, cdi=False)
    kit.attached = False
    assert "NRI plugin" in prepare(kit, kit.shelf.put("a", NICS[0]))["a"].error
    kit.attached = True
    assert prepare(kit, ref("a"))["a"].error == ""
