"""Rules of the allocator that decide real outcomes, each on a world of a few devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fishplate.dra import Budget
from fishplate.errors import AllocationError, BudgetError

if TYPE_CHECKING:
    from tests.unit.dra.conftest import Little


def select(expression: str) -> dict[str, Any]:
    return {"selectors": [{"cel": {"expression": expression}}]}


def with_root(name: str, root: str) -> dict[str, Any]:
    return {"name": name, "attributes": {"k.io/root": {"string": root}}}


def test_the_first_device_in_the_slice_wins(world: Little) -> None:
    world.slice("b", "a")
    world.claim({})
    assert world.chosen() == [["b"]]


def test_slices_are_searched_by_name_and_pools_by_driver_and_name(world: Little) -> None:
    world.slice("late", pool="z")
    world.slice("early", pool="b")
    world.claim({"count": 2})
    assert world.chosen() == [["early", "late"]]


def test_a_device_in_use_is_passed_over(world: Little) -> None:
    world.slice("x", "y")
    world.hold("x")
    world.claim({})
    assert world.chosen() == [["y"]]


def test_admin_access_takes_what_is_in_use_and_holds_nothing(world: Little) -> None:
    world.slice("x")
    world.hold("x")
    world.claim({"adminAccess": True})
    assert world.chosen() == [["x"]]
    world.held.clear()
    world.hold("x", adminAccess=True)
    world.claims.clear()
    world.claim({})
    assert world.chosen() == [["x"]]


def test_claims_of_one_pod_do_not_share_a_device(world: Little) -> None:
    world.slice("x")
    world.claim({})
    world.claim({})
    assert world.chosen() is None


def test_an_incomplete_pool_gives_no_devices_but_did_so_in_1_34(world: Little) -> None:
    world.slice("x", count=2)
    world.claim({})
    assert world.chosen() is None
    world.minor = "1.34"
    assert world.chosen() == [["x"]]


def test_mode_all_over_an_incomplete_pool_is_fatal(world: Little) -> None:
    world.slice("x", count=2)
    world.claim({"allocationMode": "All"})
    with pytest.raises(
        AllocationError, match=r"asks for all devices, but resource pool d.io/a is currently being updated"
    ):
        world.allocate()


def test_an_older_generation_is_ignored(world: Little) -> None:
    world.slice("old")
    world.slice("new", generation=2)
    world.claim({})
    assert world.chosen() == [["new"]]


def test_a_duplicate_device_makes_the_pool_invalid_for_the_node_alone(world: Little) -> None:
    world.slice("x", "x")
    world.claim({})
    with pytest.raises(AllocationError, match="invalid resource pools were encountered") as caught:
        world.allocate()
    assert caught.value.node_only


def test_match_attribute_backtracks_to_a_common_value(world: Little) -> None:
    world.slice(with_root("x", "0"), with_root("y", "1"), with_root("z", "1"))
    world.claim({"count": 2}, constraints=[{"matchAttribute": "k.io/root"}])
    assert world.chosen() == [["y", "z"]]


@pytest.mark.parametrize(("minor", "expected"), [("1.36", [["x", "y", "z"]]), ("1.37", None)])
def test_distinct_attribute_forgets_within_a_request_before_1_37(world: Little, minor: str, expected: object) -> None:
    world.minor = minor
    world.slice(with_root("x", "0"), with_root("y", "1"), with_root("z", "0"))
    world.claim({"count": 3}, constraints=[{"distinctAttribute": "k.io/root"}])
    assert world.chosen() == expected


def test_first_available_prefers_the_first_that_fits(world: Little) -> None:
    world.slice("x")
    subs = [{"name": "two", "deviceClassName": "any", "count": 2}, {"name": "one", "deviceClassName": "any"}]
    world.claim({"name": "r", "firstAvailable": subs})
    found = world.allocate()
    assert found is not None
    assert found.results[0].devices.results[0].request == "r/one"


def test_a_selector_that_fails_at_run_time_is_fatal_and_1_37_names_the_device(world: Little) -> None:
    world.slice("x")
    world.claim(select('device.attributes["d.io"].nope == 1'))
    with pytest.raises(AllocationError) as caught:
        world.allocate()
    assert caught.value.what == "claim ns/c0: selector #0: CEL runtime error: no such key: nope"
    world.minor = "1.37"
    with pytest.raises(
        AllocationError, match=r"selector #0 on device d.io/a/x: CEL runtime error: no such key: nope. con"
    ):
        world.allocate()


def test_a_selector_is_not_asked_about_a_device_in_use(world: Little) -> None:
    world.slice("x")
    world.hold("x")
    world.claim(select('device.attributes["d.io"].nope == 1'))
    assert world.chosen() is None


def test_a_missing_class_is_fatal(world: Little) -> None:
    world.claim({"deviceClassName": "nope"})
    with pytest.raises(AllocationError, match=r'could not retrieve device class nope: .* "nope" not found'):
        world.allocate()


def test_taints_keep_devices_away_unless_tolerated(world: Little) -> None:
    world.slice({"name": "x", "taints": [{"key": "k", "effect": "NoSchedule"}]})
    world.claim({})
    assert world.chosen() is None
    world.claims.clear()
    world.claim({"tolerations": [{"key": "k", "operator": "Exists"}]})
    assert world.chosen() == [["x"]]
    world.claims.clear()
    world.claim({})
    world.gates = {"DRADeviceTaints": False}
    assert world.chosen() == [["x"]]


def test_counters_are_shared_by_the_devices_of_a_pool(world: Little) -> None:
    takes = {"consumesCounters": [{"counterSet": "s", "counters": {"m": {"value": "2"}}}]}
    world.slice({"name": "x", **takes}, {"name": "y", **takes}, count=2)
    world.slice(count=2, sharedCounters=[{"name": "s", "counters": {"m": {"value": "3"}}}])
    world.claim({})
    assert world.chosen() == [["x"]]
    world.hold("x")
    assert world.chosen() is None


def test_a_shared_device_is_taken_until_its_capacity_is_used_up(world: Little) -> None:
    world.slice({"name": "x", "allowMultipleAllocations": True, "capacity": {"m": {"value": "4"}}})
    for _ in range(2):
        world.claim({"capacity": {"requests": {"m": "2"}}})
    found = world.allocate()
    assert found is not None
    assert [result.devices.results[0].consumed_capacity for result in found.results] == [{"m": "2"}] * 2
    assert found.results[0].devices.results[0].share_id == "share"
    world.claim({"capacity": {"requests": {"m": "1"}}})
    assert world.allocate() is None


def test_a_request_policy_rounds_up(world: Little) -> None:
    policy = {"validRange": {"min": "1Gi", "step": "2Gi"}}
    world.slice(
        {"name": "x", "allowMultipleAllocations": True, "capacity": {"m": {"value": "8Gi", "requestPolicy": policy}}}
    )
    world.claim({"capacity": {"requests": {"m": "2Gi"}}})
    found = world.allocate()
    assert found is not None
    assert found.results[0].devices.results[0].consumed_capacity == {"m": "3Gi"}


def test_an_absurd_capacity_wraps_around_in_1_36_and_is_fatal_in_1_37(world: Little) -> None:
    policy = {"validRange": {"min": "1", "step": "2"}}
    world.slice(
        {"name": "x", "allowMultipleAllocations": True, "capacity": {"m": {"value": "8", "requestPolicy": policy}}}
    )
    world.claim({"capacity": {"requests": {"m": "1e30"}}})
    found = world.allocate()
    assert found is not None
    assert found.results[0].devices.results[0].consumed_capacity == {"m": "3"}
    world.minor = "1.37"
    with pytest.raises(AllocationError, match="capacity request cannot be represented"):
        world.allocate()


def test_more_than_32_devices_are_refused(world: Little) -> None:
    world.slice(*[f"x{number}" for number in range(40)])
    world.claim({"count": 33})
    with pytest.raises(AllocationError, match="number of requested devices 33 exceeds the claim limit of 32"):
        world.allocate()


def test_binding_conditions_come_with_the_result_and_put_their_pool_last(world: Little) -> None:
    conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
    world.slice({"name": "bound", **conditions}, pool="a")
    world.slice("plain", pool="b")
    world.claim({"count": 2})
    found = world.allocate()
    assert found is not None
    plain, bound = found.results[0].devices.results
    assert (plain.device, bound.device, bound.binding_conditions) == ("plain", "bound", ("ready",))


def test_the_node_selector_is_that_of_the_slices(world: Little) -> None:
    world.labels = {"zone": "z"}
    requirement = {"key": "zone", "operator": "In", "values": ["z"]}
    world.slice("x", nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [requirement]}]})
    world.claim({})
    found = world.allocate()
    assert found is not None
    selector = found.results[0].node_selector
    assert selector is not None
    assert selector.node_selector_terms[0].match_expressions[0].key == "zone"


@pytest.mark.parametrize(("minor", "copies", "requests"), [("1.36", 2, ("r0", "r1")), ("1.37", 1, ())])
def test_claim_config_for_two_requests(world: Little, minor: str, copies: int, requests: tuple[str, ...]) -> None:
    world.minor = minor
    world.slice("x", "y")
    world.claim({}, {}, config=[{"requests": ["r0", "r1"], "opaque": {"driver": "d.io", "parameters": {}}}])
    found = world.allocate()
    assert found is not None
    assert [entry.requests for entry in found.results[0].devices.config] == [requests] * copies


def test_a_budget_ends_a_search_without_an_answer(world: Little) -> None:
    world.slice(*[with_root(f"x{number}", str(number)) for number in range(20)])
    world.claim({"count": 10}, constraints=[{"distinctAttribute": "k.io/root"}])
    world.claim({"count": 12})
    with pytest.raises(BudgetError, match="stopped after 100 steps"):
        world.allocate(Budget(steps=100))


def test_a_budget_of_seconds_looks_at_the_clock(world: Little) -> None:
    times = iter(range(1000))
    world.slice(*[f"x{number}" for number in range(20)])
    world.claim({"count": 10})
    world.claim({"count": 12})
    with pytest.raises(BudgetError, match="stopped after 3 s"):
        world.allocate(Budget(seconds=3, clock=lambda: next(times)))


def test_a_pod_with_very_many_devices_does_not_exhaust_the_stack(world: Little) -> None:
    world.slice(*[f"x{number}" for number in range(100)], pool="a")
    for index in range(1, 16):
        world.slice(*[f"x{number}" for number in range(100)], pool=f"p{index:02d}")
    for _ in range(48):
        world.claim({"count": 32})
    found = world.chosen()
    assert found is not None
    assert sum(map(len, found)) == 48 * 32


def test_a_default_outside_its_own_range_is_taken_only_as_it_was_written(world: Little) -> None:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "max": "8", "step": "1"}}
    world.slice({"name": "x", "capacity": {"m": {"value": "4Gi", "requestPolicy": policy}}})
    world.claim({})
    assert world.chosen() == [["x"]]
    world.claims.clear()
    world.claim({"capacity": {"requests": {"m": "1Gi"}}})
    assert world.chosen() is None
