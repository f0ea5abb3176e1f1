"""What a request asks for: which devices it may have, how many, and which alternative."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fishplate.errors import AllocationError

if TYPE_CHECKING:
    from tests.unit.dra.conftest import Little

SECOND = {"selectors": [{"cel": {"expression": 'device.attributes["d.io"].number == 1'}}]}


def numbered(count: int) -> list[dict[str, Any]]:
    return [{"name": f"x{number}", "attributes": {"number": {"int": number}}} for number in range(count)]


def test_a_class_gives_only_devices_that_its_selectors_choose(world: Little) -> None:
    world.classes.append({"metadata": {"name": "second"}, "spec": SECOND})
    world.slice(*numbered(3))
    world.claim({"deviceClassName": "second"})
    assert world.chosen() == [["x1"]]


def test_a_request_gets_only_devices_that_its_selectors_choose(world: Little) -> None:
    world.slice(*numbered(3))
    world.claim(SECOND)
    assert world.chosen() == [["x1"]]


@pytest.mark.parametrize(("count", "chosen"), [(1, [["x0"]]), (3, [["x0", "x1", "x2"]]), (4, None)])
def test_an_exact_count_is_met_or_nothing_is_given(world: Little, count: int, chosen: object) -> None:
    world.slice(*numbered(3))
    world.claim({"count": count})
    assert world.chosen() == chosen


def test_mode_all_takes_every_device_that_is_selected(world: Little) -> None:
    world.slice(*numbered(3), {"name": "other"})
    world.claim(
        {"allocationMode": "All", "selectors": [{"cel": {"expression": '"number" in device.attributes["d.io"]'}}]}
    )
    assert world.chosen() == [["x0", "x1", "x2"]]


def test_mode_all_does_not_fit_while_one_of_them_is_in_use(world: Little) -> None:
    world.slice(*numbered(3))
    world.hold("x1")
    world.claim({"allocationMode": "All"})
    assert world.chosen() is None


def test_of_two_alternatives_that_fit_the_first_is_taken(world: Little) -> None:
    world.slice(*numbered(2))
    subs = [{"name": "one", "deviceClassName": "any"}, {"name": "two", "deviceClassName": "any", "count": 2}]
    world.claim({"name": "r", "firstAvailable": subs})
    assert world.chosen() == [["x0"]]


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_an_alternative_with_too_many_devices_is_passed_over(world: Little, minor: str) -> None:
    world.minor = minor
    world.slice(*numbered(40))
    subs = [{"name": "many", "deviceClassName": "any", "count": 33}, {"name": "few", "deviceClassName": "any"}]
    world.claim({"name": "r", "firstAvailable": subs})
    assert world.chosen() == [["x0"]]


def test_confused_subrequests_that_end_above_the_limit_are_fatal(world: Little) -> None:
    """Before 1.36 the second device of a later subrequest in mode All is counted for the first subrequest."""
    world.minor = "1.35"
    world.slice(*numbered(3))
    first = [{"name": "one", "deviceClassName": "any"}]
    second = [
        {"name": "many", "deviceClassName": "any", "count": 32},
        {"name": "all", "deviceClassName": "any", "allocationMode": "All", **SECOND},
    ]
    world.claim({"name": "r", "firstAvailable": first}, {"name": "s", "firstAvailable": second})
    with pytest.raises(AllocationError, match="allocation max size exceeded"):
        world.allocate()
    world.minor = "1.36"
    assert world.chosen() == [["x0", "x1"]]


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Equal", "value": "v"}, True),
        ({"key": "k", "operator": "Equal", "value": "w"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_a_toleration_has_to_mean_the_taint(world: Little, toleration: dict[str, Any], tolerated: bool) -> None:
    world.slice({"name": "x", "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]})
    world.claim({"tolerations": [toleration]})
    assert (world.chosen() is not None) is tolerated


def test_two_devices_of_one_claim_draw_on_the_same_counters(world: Little) -> None:
    takes = {"consumesCounters": [{"counterSet": "s", "counters": {"m": {"value": "2"}}}]}
    world.slice({"name": "x", **takes}, {"name": "y", **takes}, count=2)
    world.slice(count=2, sharedCounters=[{"name": "s", "counters": {"m": {"value": "3"}}}])
    world.claim({"count": 2})
    assert world.chosen() is None


def test_devices_with_binding_conditions_are_left_out_while_their_gate_is_off(world: Little) -> None:
    world.slice({"name": "bound", "bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}, "plain")
    world.claim({})
    assert world.chosen() == [["bound"]]
    world.gates = {"DRADeviceBindingConditions": False}
    assert world.chosen() == [["plain"]]
