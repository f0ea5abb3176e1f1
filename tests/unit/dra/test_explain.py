"""What explain claims: the first check that fails, changes that were tried, errors to come, and no proof it has not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fishplate.dra import Node
from fishplate.dra.changes import find_changes, find_elsewhere
from fishplate.dra.explain import Explanation, explain
from fishplate.dra.trace import Reason

if TYPE_CHECKING:
    from fishplate.hardware.catalog import Catalog
    from tests.unit.dra.conftest import Little

NODE = Node(name="a")


def cel(*expressions: str) -> dict[str, Any]:
    return {"selectors": [{"cel": {"expression": one}} for one in expressions]}


def device(name: str, **attributes: int | str) -> dict[str, Any]:
    kinds = {int: "int", str: "string"}
    return {"name": name, "attributes": {key: {kinds[type(value)]: value} for key, value in attributes.items()}}


def told(world: Little, catalog: Catalog, *nodes: Node, **options: Any) -> Explanation:  # noqa: ANN401
    return explain(world.scene(), nodes or (NODE,), world.wanted(), catalog=catalog, **options)


def change_ids(world: Little) -> list[str]:
    return [change.id for change in find_changes(world.scene(), NODE, world.wanted())]


# -- the order of the checks -------------------------------------------------------------------------------------


def test_a_device_in_use_is_told_as_that_whatever_else_is_wrong_with_it(world: Little) -> None:
    world.slice("x")
    world.hold("x")
    world.claim(cel("false"))
    (found,) = world.trace().alone
    assert found.reason is Reason.IN_USE


def test_a_selector_is_told_before_a_taint_and_a_taint_before_a_constraint(world: Little) -> None:
    taint = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    world.slice({"name": "x", **taint})
    world.claim(cel("false"), constraints=[{"matchAttribute": "d.io/n"}])
    assert world.trace().alone[0].reason is Reason.REQUEST_SELECTOR
    world.claims.clear()
    world.claim(cel("true"), constraints=[{"matchAttribute": "d.io/n"}])
    assert world.trace().alone[0].reason is Reason.TAINT


# -- changes -----------------------------------------------------------------------------------------------------


def test_a_change_that_does_not_help_is_not_offered(world: Little) -> None:
    """Two clauses are false: dropping either alone helps nobody, and nothing else does."""
    world.slice(device("x", n=1))
    world.claim(cel('device.attributes["d.io"].n == 2 && device.attributes["d.io"].n == 3'))
    assert change_ids(world) == []


def test_a_clause_with_an_or_in_it_is_kept_whole(world: Little) -> None:
    """`(true || b) && c && false`, without c: bare of its brackets that would be true."""
    world.slice(device("x", n=1))
    n = 'device.attributes["d.io"].n'
    world.claim(cel(f"({n} == 1 || {n} == 5) && {n} == 2 && {n} == 3"))
    assert change_ids(world) == []


@pytest.mark.parametrize(
    ("request_", "constraints", "offered"),
    [
        ({"count": 2}, [], "one-device-less"),
        (cel("false"), [], "drop-clause"),
        ({}, [{"matchAttribute": "d.io/nonesuch"}], "drop-constraint"),
    ],
)
def test_each_kind_of_change_is_offered_where_it_alone_helps(
    world: Little, request_: dict[str, Any], constraints: list[dict[str, Any]], offered: str
) -> None:
    world.slice("x")
    world.claim(request_, constraints=constraints)
    assert change_ids(world) == [offered]


def test_tolerating_is_offered_for_a_taint(world: Little) -> None:
    world.slice({"name": "x", "taints": [{"key": "k", "effect": "NoSchedule"}]})
    world.claim({})
    assert change_ids(world) == ["tolerate"]


def test_only_the_claim_whose_end_helps_is_waited_for(world: Little) -> None:
    world.slice(device("x", n=1), device("y", n=2))
    world.hold("x")
    world.hold("y")
    world.claim(cel('device.attributes["d.io"].n == 2'))
    texts = [change.text for change in find_changes(world.scene(), NODE, world.wanted())]
    assert "wait until claim holder-of-y is gone" in texts
    assert "wait until claim holder-of-x is gone" not in texts


def test_other_nodes_are_offered_only_if_they_take_the_claims(world: Little, catalog: Catalog) -> None:
    world.slice("x")
    world.slice("y", pool="b", nodeName="b")
    world.claim({"count": 2})
    other = Node(name="b")
    assert find_elsewhere(world.scene(), [other], world.wanted()) == []
    assert told(world, catalog, elsewhere=[other]).changes == ()
    world.claims.clear()
    world.claim(cel('device.driver == "nobody"'))
    assert told(world, catalog, elsewhere=[other]).changes == ()
    world.slices[0]["spec"]["devices"] = []
    world.claims.clear()
    world.claim({})
    (change,) = told(world, catalog, elsewhere=[other]).changes
    assert (change.id, "go to b" in change.text) == ("use-other-nodes", True)


# -- errors ------------------------------------------------------------------------------------------------------


def test_an_error_on_one_node_ends_the_attempt_though_another_would_fit(world: Little, catalog: Catalog) -> None:
    world.slice(device("x", n=1))
    world.slice("y", pool="b", nodeName="b")
    world.claim(cel('device.attributes["d.io"].n == 1'))
    explanation = told(world, catalog, NODE, Node(name="b"))
    assert explanation.outcome == "error"
    assert {story.outcome for story in explanation.stories} == {"allocated", "error"}


def test_an_error_behind_a_fit_is_foreseen(world: Little, catalog: Catalog) -> None:
    world.slice(device("x", n=1), "y")
    world.claim(cel('device.attributes["d.io"].n == 1'))
    explanation = told(world, catalog)
    assert explanation.outcome == "allocated"
    (warning,) = explanation.warnings
    assert (warning.example, warning.devices) == ("d.io/a/y", 1)


def test_a_device_that_a_selector_before_refuses_cannot_fail_later(world: Little, catalog: Catalog) -> None:
    world.slice(device("x", n=1), "y")
    guard = 'has(device.attributes["d.io"].n)'
    world.claim(cel(guard, 'device.attributes["d.io"].n == 1'))
    assert told(world, catalog).warnings == ()


def test_a_device_without_a_value_fails_on_every_selector(world: Little, catalog: Catalog) -> None:
    """Though all that this selector reads of it is as on its neighbour."""
    world.slice("x", {"name": "y", "attributes": {"d.io/n": {}}})
    world.claim(cel('device.driver == "d.io"'))
    (warning,) = told(world, catalog).warnings
    assert (warning.example, warning.devices) == ("d.io/a/y", 1)


def test_a_selector_that_may_read_anything_is_run_on_each_device(world: Little, catalog: Catalog) -> None:
    world.slice(device("x", n=1, key="n"), device("y", key="n"))
    world.claim(cel('device.attributes["d.io"][device.attributes["d.io"].key] == 1'))
    (warning,) = told(world, catalog).warnings
    assert (warning.example, warning.devices) == ("d.io/a/y", 1)


def test_devices_with_the_same_values_are_all_counted(world: Little, catalog: Catalog) -> None:
    world.slice(device("x", n=1), "y", "z", {"name": "w", "attributes": {"other.io/n": {"int": 1}}})
    world.claim(cel('device.attributes["d.io"].n == 1'))
    (warning,) = told(world, catalog).warnings
    assert (warning.example, warning.devices) == ("d.io/a/y", 3)


def test_a_broken_pool_is_an_error_of_its_node_alone(world: Little, catalog: Catalog) -> None:
    world.slice("x", "x")
    world.slice("y", pool="b", nodeName="b")
    world.claim({})
    explanation = told(world, catalog, NODE, Node(name="b"))
    assert explanation.outcome == "allocated"
    assert [story.outcome for story in explanation.stories] == ["allocated", "does-not-fit"]


# -- no proof without one ----------------------------------------------------------------------------------------


def _hard(world: Little) -> None:
    """Thousands of pairs to try: each device has a number of its own, and two shall be alike."""
    world.slice(*(device(f"x{i}", n=i) for i in range(100)))
    world.claim({"count": 2}, {"count": 2}, constraints=[{"matchAttribute": "d.io/n"}])


def test_a_search_that_its_budget_ended_is_unknown_and_no_proof(world: Little, catalog: Catalog) -> None:
    _hard(world)
    assert told(world, catalog, changes=False).outcome == "does-not-fit"
    ticks = iter(range(10**9))
    explanation = told(world, catalog, changes=False, clock=lambda: float(next(ticks)) * 30)
    assert explanation.outcome == "unknown"
    assert "whether the claims fit is not known" in explanation.stories[0].error


def test_many_slow_nodes_share_one_budget(world: Little, catalog: Catalog) -> None:
    """A clock that jumps 20 s at each look: the first nodes use all of the minute, the last ones get a moment."""
    for number, name in enumerate("abcdefgh", 1):  # no two are alike
        world.slice(*(f"x{i}" for i in range(number)), pool=name, nodeName=name)
    world.claim({"count": 20})
    asked: list[float] = []

    def clock() -> float:
        asked.append(len(asked) * 20.0)
        return asked[-1]

    explanation = told(world, catalog, *(Node(name=name) for name in "abcdefgh"), changes=False, clock=clock)
    assert explanation.outcome == "unknown"
    assert any("stopped after 0.1 s" in story.error for story in explanation.stories)


def test_one_unknown_node_keeps_the_whole_from_being_a_proof(world: Little, catalog: Catalog) -> None:
    _hard(world)
    world.slice("y", pool="b", nodeName="b")
    ticks = iter([0.0, 0.0, 0.0, 100.0, *([0.0] * 10_000)])
    explanation = told(world, catalog, NODE, Node(name="b"), changes=False, clock=lambda: next(ticks, 0.0))
    assert {story.outcome for story in explanation.stories} == {"unknown", "does-not-fit"}
    assert explanation.outcome == "unknown"


# -- groups ------------------------------------------------------------------------------------------------------


def test_nodes_with_one_verdict_for_two_reasons_are_told_apart(world: Little, catalog: Catalog) -> None:
    world.slice(device("x", n=1))
    world.slice(device("x", n=1), pool="b", nodeName="b")
    world.slice(device("x", n=2), pool="c", nodeName="c")
    world.hold("x", pool="b")
    world.claim(cel('device.attributes["d.io"].n == 3'))
    explanation = told(world, catalog, NODE, Node(name="b"), Node(name="c"))
    reasons = {
        story.nodes: {reason.id for one in story.diagnosis.requests for reason in one.reasons}
        for story in explanation.stories
        if story.diagnosis
    }
    assert reasons == {("a", "c"): {"request-selector"}, ("b",): {"in-use"}}


def test_nodes_of_several_fabrics_are_said_to_be(world: Little, catalog: Catalog) -> None:
    for name, fabric in (("a", "one"), ("b", "two"), ("c", "one")):
        rdma = {"dra.net/rdma": {"bool": True}, "azure.dra.net/placementGroupId": {"string": fabric}}
        world.slice({"name": "nic", "attributes": rdma}, pool=name, nodeName=name)
    world.claim({})
    (story,) = told(world, catalog, *(Node(name=name) for name in "abc")).stories
    assert story.fabrics == ("one", "two")


# -- how near ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpu_node", "nic_node", "relation", "need"),
    [(0, 0, "NODE", "NCCL_NET_GDR_LEVEL=PHB"), (0, 1, "SYS", "NCCL_NET_GDR_LEVEL=SYS"), (-1, 1, "?", "")],
)
def test_a_pair_is_as_near_as_its_numa_nodes(
    world: Little, catalog: Catalog, gpu_node: int, nic_node: int, relation: str, need: str
) -> None:
    standard = "resource.kubernetes.io/numaNode"
    world.slice({"name": "gpu", "attributes": {standard: {"int": gpu_node}}}, driver="gpu.amd.com")
    nic = {"dra.net/rdma": {"bool": True}, standard: {"int": nic_node}}
    world.slice({"name": "nic", "attributes": nic}, driver="dra.net")
    world.claim(cel('device.driver == "gpu.amd.com"'), cel('device.driver == "dra.net"'))
    (story,) = told(world, catalog).stories
    assert story.proximity is not None
    (pair,) = story.proximity.pairs
    assert (pair.relation, pair.gpudirect) == (relation, need)
