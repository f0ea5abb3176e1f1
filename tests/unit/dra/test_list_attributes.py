"""Constraints on attributes with several values, which need the gate DRAListTypeAttributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.dra.conftest import Little

MATCH = [{"matchAttribute": "d.io/rail"}]
DISTINCT = [{"distinctAttribute": "d.io/rail"}]


@pytest.fixture(params=["1.36", "1.37"])
def lists(world: Little, request: pytest.FixtureRequest) -> Little:
    world.minor = request.param
    world.gates = {"DRAListTypeAttributes": True}
    return world


def rails(name: str, *values: str, kind: int = 0) -> dict[str, Any]:
    return {"name": name, "attributes": {"rail": {"strings": list(values)}, "kind": {"int": kind}}}


def of_kind(kind: int) -> dict[str, Any]:
    return {"selectors": [{"cel": {"expression": f'device.attributes["d.io"].kind == {kind}'}}]}


def test_lists_match_if_they_have_a_value_in_common(lists: Little) -> None:
    lists.slice(rails("x", "a", "b"), rails("y", "c"), rails("z", "b", "c"))
    lists.claim({"count": 2}, constraints=MATCH)
    assert lists.chosen() == [["x", "z"]]


def test_three_lists_need_a_value_that_all_have(lists: Little) -> None:
    lists.slice(rails("x", "a", "b"), rails("y", "b", "c"), rails("z", "a", "c"))
    lists.claim({"count": 3}, constraints=MATCH)
    assert lists.chosen() is None


def test_a_plain_value_is_a_list_of_one(lists: Little) -> None:
    lists.slice({"name": "x", "attributes": {"rail": {"string": "a"}}}, rails("y", "b"), rails("z", "b", "a"))
    lists.claim({"count": 2}, constraints=MATCH)
    assert lists.chosen() == [["x", "z"]]


def test_values_of_another_type_never_match(lists: Little) -> None:
    lists.slice(
        {"name": "x", "attributes": {"rail": {"ints": [1]}}}, {"name": "y", "attributes": {"rail": {"bools": [True]}}}
    )
    lists.claim({"count": 2}, constraints=MATCH)
    assert lists.chosen() is None


def test_lists_are_distinct_if_they_have_nothing_in_common(lists: Little) -> None:
    lists.slice(rails("x", "a", "b"), rails("y", "b"), rails("z", "c"))
    lists.claim({}, {}, constraints=DISTINCT)
    assert lists.chosen() == [["x", "z"]]


@pytest.mark.parametrize(("minor", "fits"), [("1.36", False), ("1.37", True)])
def test_only_from_1_37_on_a_device_given_back_stops_narrowing(world: Little, minor: str, fits: bool) -> None:
    world.minor, world.gates = minor, {"DRAListTypeAttributes": True}
    world.slice(rails("x", "a", "b"), rails("y", "a", kind=1), rails("z", "b", kind=1), rails("w", "b", kind=2))
    world.claim(of_kind(0), of_kind(1), of_kind(2), constraints=MATCH)
    assert world.chosen() == ([["x", "z", "w"]] if fits else None)


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_without_the_gate_lists_have_no_known_type(world: Little, minor: str) -> None:
    world.minor = minor
    world.slice(rails("x", "a"), rails("y", "a"))
    world.claim({"count": 2}, constraints=MATCH)
    assert world.chosen() is None


@pytest.mark.parametrize(
    ("constraints", "told"),
    [
        (MATCH, "d.io/rail is 'c', devices already chosen have 'a' in common"),
        (DISTINCT, "which a device already chosen has"),
    ],
)
def test_a_refusal_tells_the_values(lists: Little, constraints: list[dict[str, Any]], told: str) -> None:
    lists.slice(rails("x", "a"), rails("y", "c") if constraints is MATCH else rails("y", "a", "c"))
    lists.claim({}, {}, constraints=constraints)
    assert any(told in obstacle.text for obstacle in lists.trace().blocked)
