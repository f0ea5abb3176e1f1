"""Surveys: what makes nodes alike, and what must not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fishplate.dra import Budget, Node
from fishplate.dra.fleet import Verdict, count_fleet, count_pods, group_keys, survey

if TYPE_CHECKING:
    from tests.unit.dra.conftest import Little


def groups(world: Little, *names: str) -> list[list[str]]:
    found = survey(world.scene(), [Node(name=name) for name in names], world.wanted())
    return [[node.name for node in group.nodes] for group in found.groups]


def on(node: str) -> dict[str, Any]:
    return {"pool": node, "nodeName": node}


def numbered(name: str, **attributes: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"name": name, "attributes": {key: {"int": value} for key, value in attributes.items()}}


def test_attributes_that_nobody_reads_do_not_matter(world: Little) -> None:
    world.slice(numbered("x", numa=0, lid=1), **on("a"))
    world.slice(numbered("y", numa=0, lid=2), **on("b"))
    world.claim({"selectors": [{"cel": {"expression": 'device.attributes["d.io"].numa == 0'}}]})
    assert groups(world, "a", "b") == [["a", "b"]]


def test_what_a_selector_reads_counts_by_its_answer(world: Little) -> None:
    for node, numa in (("a", 0), ("b", 1), ("c", 2)):
        world.slice(numbered("x", numa=numa), **on(node))
    world.claim({"selectors": [{"cel": {"expression": 'device.attributes["d.io"].numa > 0'}}]})
    assert groups(world, "a", "b", "c") == [["a"], ["b", "c"]]


def test_constrained_values_count_up_to_renaming(world: Little) -> None:
    for node, values in (("a", (0, 0)), ("b", (7, 7)), ("c", (1, 2))):
        world.slice(*[numbered(f"x{index}", numa=value) for index, value in enumerate(values)], **on(node))
    world.claim({"count": 2}, constraints=[{"matchAttribute": "d.io/numa"}])
    assert groups(world, "a", "b", "c") == [["a", "b"], ["c"]]


def test_devices_in_use_are_as_if_absent(world: Little) -> None:
    world.slice("x", "y", **on("a"))
    world.slice("z", **on("b"))
    world.hold("x", pool="a")
    world.claim({})
    assert groups(world, "a", "b") == [["a", "b"]]


def test_a_device_in_use_still_spoils_its_pool(world: Little) -> None:
    world.slice("x", "x", **on("a"))
    world.slice(**on("b"))
    world.hold("x", pool="a")
    world.claim({})
    found = survey(world.scene(), [Node(name="b"), Node(name="a")], world.wanted())
    assert found.verdicts() == {"a": Verdict.ERROR, "b": Verdict.DOES_NOT_FIT}


def test_a_node_with_taints_is_asked_itself(world: Little) -> None:
    world.slice({"name": "x", "taints": [{"key": "k", "effect": "NoSchedule"}]}, **on("a"))
    world.slice("x", **on("b"))
    world.claim({})
    keys = group_keys(world.scene(), [Node(name="a"), Node(name="b")], world.wanted())
    assert keys[0][0] == "a"
    assert keys[1][0] != "b"


def test_a_budget_that_runs_out_is_told_as_unknown(world: Little) -> None:
    world.slice("x", **on("a"))
    world.claim({})
    found = survey(world.scene(), [Node(name="a")], world.wanted(), new_budget=lambda: Budget(steps=1))
    assert found.verdicts() == {"a": Verdict.UNKNOWN}


def test_errors_stay_errors(world: Little) -> None:
    world.slice("x", **on("a"))
    world.claim({"deviceClassName": "nope"})
    found = survey(world.scene(), [Node(name="a")], world.wanted())
    assert found.count(Verdict.ERROR) == 1
    assert "could not retrieve device class" in found.groups[0].error


@pytest.mark.parametrize(("devices", "pods"), [(5, 2), (1, 0)])
def test_pods_are_counted_by_allocating_again(world: Little, devices: int, pods: int) -> None:
    world.slice(*[f"x{number}" for number in range(devices)], **on("a"))
    world.claim({"count": 2})
    counted = count_fleet(world.scene(), [Node(name="a")], world.wanted())["a"]
    assert (counted.pods, counted.exact) == (pods, True)


def test_pods_that_hold_nothing_are_counted_up_to_the_limit(world: Little) -> None:
    world.slice("x", **on("a"))
    world.claim({"adminAccess": True})
    counted = count_pods(world.scene(), Node(name="a"), world.wanted(), limit=3)
    assert (counted.pods, counted.exact, counted.reason) == (3, False, "stopped at 3")
