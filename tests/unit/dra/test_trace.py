"""The first check that refuses a device, for every check there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fishplate.dra.trace import Reason

if TYPE_CHECKING:
    from fishplate.dra.trace import Obstacle
    from tests.unit.dra.conftest import Little


def only(found: tuple[Obstacle, ...], device: str) -> tuple[Reason, str]:
    """What is in the way of one device."""
    return next((each.reason, each.text) for each in found if each.device == f"d.io/a/{device}")


def test_a_device_in_use_names_the_claim(world: Little) -> None:
    world.slice("x")
    world.hold("x")
    world.claim({})
    assert only(world.trace().alone, "x") == (Reason.IN_USE, "in use by claim holder-of-x")


def test_the_false_selector_is_quoted(world: Little) -> None:
    world.slice("x")
    world.claim({"selectors": [{"cel": {"expression": "true"}}, {"cel": {"expression": "false"}}]})
    reason, text = only(world.trace().alone, "x")
    assert reason is Reason.REQUEST_SELECTOR
    assert text == "claim ns/c0: selector #1 says no: false is false"


def test_a_class_selector_comes_before_a_request_selector(world: Little) -> None:
    world.classes = [{"metadata": {"name": "any"}, "spec": {"selectors": [{"cel": {"expression": "false"}}]}}]
    world.slice("x")
    world.claim({"selectors": [{"cel": {"expression": "false"}}]})
    assert only(world.trace().alone, "x")[0] is Reason.CLASS_SELECTOR


def test_a_failing_selector_is_told_with_its_error(world: Little) -> None:
    world.slice("x")
    world.claim({"selectors": [{"cel": {"expression": 'device.attributes["d.io"].n == 1'}}]})
    found = world.trace()
    assert found.error.endswith("no such key: n")
    assert only(found.alone, "x")[0] is Reason.SELECTOR_ERROR


@pytest.mark.parametrize(
    ("device", "request_", "reason", "text"),
    [
        ({"taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]}, {}, Reason.TAINT, "taint k=v:NoExecute"),
        (
            {"capacity": {"m": {"value": "1"}}},
            {"capacity": {"requests": {"m": "2"}}},
            Reason.CAPACITY,
            "needs 2 of m, has 1",
        ),
        ({}, {"capacity": {"requests": {"m": "2"}}}, Reason.CAPACITY, "has no capacity m"),
        ({}, {}, Reason.NONE, "nothing"),
    ],
)
def test_reasons_of_the_device_itself(
    world: Little, device: dict[str, Any], request_: dict[str, Any], reason: Reason, text: str
) -> None:
    world.slice({"name": "x", **device})
    world.claim(request_)
    found, said = only(world.trace().alone, "x")
    assert (found, text in said) == (reason, True)


def test_gates_that_are_off_are_named_as_such(world: Little) -> None:
    world.gates = {"DRAPartitionableDevices": False, "DRADeviceBindingConditions": False}
    world.slice({"name": "x", "consumesCounters": [{"counterSet": "s", "counters": {}}]})
    world.slice({"name": "y", "bindingConditions": ["c"]}, pool="a", count=1)
    world.slices[0]["spec"]["pool"]["resourceSliceCount"] = world.slices[1]["spec"]["pool"]["resourceSliceCount"] = 2
    world.claim({})
    found = world.trace().alone
    assert only(found, "x")[0] is Reason.COUNTERS_DISABLED
    assert only(found, "y")[0] is Reason.BINDING_CONDITIONS


def test_an_overdrawn_counter_is_told_with_its_numbers(world: Little) -> None:
    world.slice({"name": "x", "consumesCounters": [{"counterSet": "s", "counters": {"m": {"value": "2"}}}]}, count=2)
    world.slice(count=2, sharedCounters=[{"name": "s", "counters": {"m": {"value": "1"}}}])
    world.claim({})
    assert only(world.trace().alone, "x") == (Reason.COUNTERS, "counter m of set s: needs 2, available 1")


def test_a_device_for_another_node_is_told(world: Little) -> None:
    world.slice({"name": "x", "nodeName": "b"}, {"name": "y", "nodeName": "a"}, perDeviceNodeSelection=True)
    world.claim({"count": 2})
    assert only(world.trace().alone, "x") == (Reason.NODE_SELECTION, "cannot be reached from a")


def test_pools_that_are_out_are_told_once(world: Little) -> None:
    world.slice("x", count=2)
    world.slice("y", "y", pool="b")
    world.claim({})
    found = {each.device: (each.reason, each.text) for each in world.trace().alone}
    assert found == {
        "d.io/a": (Reason.POOL_INCOMPLETE, "has 1 of 2 slices"),
        "d.io/b": (Reason.POOL_INVALID, "duplicate device name y"),
    }


def test_the_deepest_point_tells_what_stood_in_the_way_of_the_next_device(world: Little) -> None:
    def rooted(name: str, root: str) -> dict[str, Any]:
        return {"name": name, "attributes": {"k.io/root": {"string": root}}}

    world.slice(rooted("x", "0"), rooted("y", "1"), "z")
    world.claim({}, {}, constraints=[{"matchAttribute": "k.io/root"}])
    found = world.trace()
    assert not found.fits
    assert [(step.request, step.device) for step in found.deepest] == [("r0", "d.io/a/x")]
    assert found.stuck == ("ns/c0", "r1")
    assert only(found.blocked, "x")[0] is Reason.CHOSEN_ALREADY
    assert only(found.blocked, "y") == (
        Reason.CONSTRAINT,
        "constraint #0: k.io/root is '1', devices already chosen have '0'",
    )
    assert only(found.blocked, "z") == (Reason.CONSTRAINT, "constraint #0: attribute k.io/root is not set")
