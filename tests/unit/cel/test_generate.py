"""Generated code: it answers for the selectors people write, and leaves to the evaluator what it must not decide."""

from __future__ import annotations

import pytest

from fishplate.cel import COST_LIMIT, Device, decode_device, environment
from fishplate.errors import CelRuntimeError

NIC = 'device.attributes["dra.net"]'
ATTRIBUTES: dict[str, dict[str, object]] = {
    "rdma": {"bool": True},
    "rail": {"string": "rail3"},
    "address": {"string": "0010:00:00.0"},
    "speed": {"int": 400},
    "firmware": {"version": "28.40.1"},
    "resource.kubernetes.io/numaNode": {"int": 1},
}


def make_device(**more: dict[str, object]) -> Device:
    return decode_device("dra.net", {**ATTRIBUTES, **more}, {"bandwidth": {"value": "400G"}})


@pytest.mark.parametrize(
    "source",
    [
        f'cel.bind(v, {NIC}.firmware, v.compareTo(semver("28.39.0")) > 0 && v.compareTo(semver("29.0.0")) < 0)',
        f"{NIC}.firmware.major() == 28 && {NIC}.firmware.minor() >= 39",
        f"{NIC}.speed in [100, 400] && {NIC}.speed / 100 == 4",
        f'{NIC}.address.split(":")[1] == "00"',
        f'{NIC}.rail.upperAscii().startsWith("RAIL")',
        f"int({NIC}.rail.substring(4)) == 3",
        f'{NIC}.rail.replace("rail", "ib") == "ib" + {NIC}.rail.substring(4)',
        f'{NIC}.rail.find("[0-9]+") == "3"',
        f'{NIC}.speed > 200 ? {NIC}.rail == "rail3" : {NIC}.nope == 1',
        f'{NIC}.?zone.orValue({NIC}.rail) == "rail3"',
        f'{NIC}.?rail.optMap(r, r.endsWith("3")).orValue(false)',
        'device.attributes[?"dra.net"].?rail.orValue("") == "rail3"',
        'device.attributes[?"nope.io"].?rail.orValue("none") == "none"',
        'device.capacity["dra.net"].bandwidth.asInteger() == 400000000000',
        f'["a", "b"].exists(x, ["rail3"].exists(y, x + y == "b" + {NIC}.rail))',
        f'["rail3", "rail1"].map(x, x + "!").filter(y, y == {NIC}.rail + "!").size() == 1',
        f"[1, 2, 3].exists_one(x, x * 200 == {NIC}.speed)",
        f'["x", "rail3"].exists(i, r, i == 1 && r == {NIC}.rail)',
        '"dra.net" in device.attributes && !("nope.io" in device.attributes)',
        f'{NIC}.exists(id, id == "rail") && {NIC}.all(id, value, value != 7)',
        'device.attributes.exists(d, d == "resource.kubernetes.io") && device.attributes.size() == 2',
        f'{NIC}.nope == "x" || {NIC}.rdma',
        f'!({NIC}.nope == "x" && {NIC}.rail == "rail0")',
        f"{NIC} != {{}} && has({NIC}.rail) && !has({NIC}.nope)",
        'device.capacity["dra.net"].bandwidth == quantity("400000M")',
    ],
)
@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_it_answers_as_the_evaluator_does(source: str, minor: str) -> None:
    program = environment(minor).compile(source)
    assert program.matches_fast(make_device()) is True
    assert program.run(make_device()).value is True


@pytest.mark.parametrize("selector", ["true", 'device.driver == "dra.net"', f'{NIC}.rail.lowerAscii() == "rail3"'])
@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ({}, "attribute bad: unsupported attribute value"),
        ({"version": "1.02.3"}, "attribute bad: parse semantic version: Minor number must not contain leading zeroes"),
        ({"version": "1.2"}, "attribute bad: parse semantic version: No Major.Minor.Patch elements found"),
    ],
)
def test_an_attribute_that_nobody_reads_still_fails_the_selector(
    selector: str, attribute: dict[str, object], message: str
) -> None:
    program = environment().compile(selector)
    device = make_device(bad=attribute)
    assert program.matches_fast(device) is None
    with pytest.raises(CelRuntimeError) as caught:
        program.matches(device)
    assert caught.value.what.startswith(message)
    # Asked again, it is no better.
    assert program.matches_fast(device) is None


def test_a_version_seen_beside_another_value_is_not_taken_for_sound() -> None:
    """Upstream parses a version only where nothing else is set."""
    program = environment("1.37").compile("true")
    assert program.matches(make_device(odd={"versions": ["1.0.0"], "version": "bad"}))
    with pytest.raises(CelRuntimeError, match="parse semantic version"):
        program.matches(make_device(odd={"version": "bad"}))


def test_the_first_value_in_upstreams_order_counts() -> None:
    device = make_device(x={"string": "s", "int": 1, "bool": True})
    assert environment().compile(f"{NIC}.x == 1").matches_fast(device) is True
    assert environment().compile(f"{NIC}.x == 1").run(device).value is True


def test_an_error_in_one_turn_does_not_hide_what_another_decides() -> None:
    source = f"[400, 0].exists(x, x == {NIC}.speed ? {NIC}.nope == 1 : true) && true"
    program = environment().compile(source)
    assert program.run(make_device()).value is True
    assert program.matches(make_device())


@pytest.mark.parametrize(
    "source",
    [
        f'{NIC}.nope == ({NIC}.firmware in ["1.2.3"]) || true',
        f'["a", "b"].exists(x, x == "a" ? {NIC}.nope == 1 : {NIC}.firmware in ["1.2.3"]) || true',
        f'{NIC}.nope == 1 || {NIC}.firmware in ["1.2.3"] || true',
        f"{NIC}.nope.distinct() == [] || true",
    ],
)
def test_nothing_absorbs_what_makes_upstream_panic(source: str) -> None:
    """Upstream goes on after an error, and may find there what nothing absorbs."""
    with pytest.raises(CelRuntimeError, match="internal error"):
        environment().compile(source).matches(make_device())


def test_what_is_bound_and_never_read_does_not_fail() -> None:
    source = f"cel.bind(x, {NIC}.nope, {NIC}.rdma || x == 1) && true"
    assert environment().compile(source).run(make_device()).value is True
    assert environment().compile(source).matches(make_device())


def test_an_error_that_nothing_absorbs_is_reported() -> None:
    with pytest.raises(CelRuntimeError, match="no such key: nope"):
        environment().compile(f'{NIC}.nope == "x" || {NIC}.rail == "rail0"').matches(make_device())


def test_values_beyond_the_limits_of_the_api_are_left_to_the_evaluator() -> None:
    """The estimate, by which code may skip the cost limit, holds for values that the API accepts."""
    program = environment().compile(f'{NIC}.text.replace("x", "yy").size() > 0')
    assert program.matches_fast(make_device(text={"string": "x" * 64})) is True
    assert program.matches_fast(make_device(text={"string": "x" * 65})) is None
    many: dict[str, dict[str, object]] = {f"a{index}": {"int": 1} for index in range(40)}
    crowded = make_device(text={"string": "x"}, **many)
    program = environment().compile(f"{NIC}.size() > 0")
    assert program.matches_fast(make_device()) is True
    assert program.matches_fast(crowded) is None
    assert program.matches(crowded)


def test_what_may_cost_too_much_gets_no_generated_code() -> None:
    cheap = "lists.range(10).all(x, lists.range(10).all(y, x < 10))"
    dear = "lists.range(1000).all(x, lists.range(1000).all(y, x < 1000))"
    assert environment().compile(cheap).is_fast
    program = environment().compile(dear)
    assert program.cost > COST_LIMIT
    assert not program.is_fast


def test_deep_expressions_are_left_to_the_evaluator() -> None:
    device = make_device()
    for depth in (40, 60, 249):
        program = environment().compile("1" + "+1" * depth + " > 0")
        assert program.matches(device)


def test_each_part_is_written_once() -> None:
    """A call is tried in two ways. Were its parts tried in two ways for each of them, this would never end."""
    program = environment("1.37").compile("dyn(" * 22 + "{'driver': device.driver}" + ").major()" * 22 + " == 1")
    assert not program.too_expensive
    assert not program.is_fast
