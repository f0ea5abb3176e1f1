"""List attributes: what the gate DRAListTypeAttributes changes before 1.37, and what 1.37 does without it."""

from __future__ import annotations

import pytest

from fishplate.cel import Device, Environment, decode_device, environment
from fishplate.errors import CelCompileError, CelRuntimeError

GATE = {"DRAListTypeAttributes": True}
ACCEPTING = [environment("1.36", GATE), environment("1.37"), environment("1.37", GATE)]
LISTS = decode_device(
    "dra.net",
    {
        "ints": {"ints": [1, 3]},
        "bools": {"bools": [True, False]},
        "strings": {"strings": ["a", "b"]},
        "versions": {"versions": ["1.2.3", "2.0.0"]},
        "one": {"string": "a"},
    },
)


def lists_of(count: int) -> Device:
    return decode_device("dra.net", {"names": {"strings": [f"n{index}" for index in range(count)]}})


@pytest.mark.parametrize(
    ("env", "kind"),
    [
        (environment("1.35"), "google.protobuf.Any"),
        (environment("1.36"), "google.protobuf.Any"),
        (environment("1.36", GATE), "dyn"),
        (environment("1.37"), "dyn"),
        (environment("1.37", GATE), "dyn"),
        (environment("1.35", GATE), "google.protobuf.Any"),
    ],
)
def test_attributes_are_any_or_dyn(env: Environment, kind: str) -> None:
    assert env.compile('device.attributes["dra.net"].x').output_type == kind


@pytest.mark.parametrize("env", ACCEPTING)
@pytest.mark.parametrize(
    "source",
    [
        'device.attributes["dra.net"].ints == [1, 3]',
        'device.attributes["dra.net"].ints.includes(3)',
        'device.attributes["dra.net"].ints.exists(n, n > 2)',
        "3 in device.attributes['dra.net'].ints",
        'device.attributes["dra.net"].bools[0] && !device.attributes["dra.net"].bools[1]',
        'device.attributes["dra.net"].strings.all(s, s < "c")',
        'device.attributes["dra.net"].strings.size() == 2',
        'device.attributes["dra.net"].versions.includes(semver("2.0.0"))',
        'device.attributes["dra.net"].versions.exists(v, v.major() == 2)',
        'device.attributes["dra.net"].one.includes("a")',
        'type(device.attributes["dra.net"].versions[0]) == type(semver("0.0.0"))',
        "type(device.attributes['dra.net'].ints) == list",
    ],
)
def test_values_of_lists_have_their_types(env: Environment, source: str) -> None:
    program = env.compile(source)
    assert program.run(LISTS).value is True
    assert program.matches(LISTS)


def test_a_list_on_any_attribute_fails_every_selector_without_the_gate() -> None:
    for minor in ("1.34", "1.35", "1.36"):
        with pytest.raises(CelRuntimeError, match="attribute ints: unsupported attribute value"):
            environment(minor).compile('device.driver == "dra.net"').matches(LISTS)


def test_a_bad_version_in_a_list_fails_every_selector_where_lists_are_read() -> None:
    device = decode_device("dra.net", {"v": {"versions": ["1.0.0", "v2"]}})
    for env in ACCEPTING:
        with pytest.raises(CelRuntimeError, match="attribute v: parse semantic version"):
            env.compile("true").matches(device)


def test_of_a_list_and_a_plain_value_the_list_counts_only_where_lists_are_read() -> None:
    """The API allows one of them; upstream looks for lists first where the gate is on, and not at all where not."""
    device = decode_device("dra.net", {"x": {"int": 1, "ints": [2]}})
    assert environment("1.36").compile('device.attributes["dra.net"].x == 1').matches(device)
    assert environment("1.36", GATE).compile('device.attributes["dra.net"].x == [2]').matches(device)
    assert environment("1.37").compile('device.attributes["dra.net"].x == [2]').matches(device)


def test_one_device_may_be_asked_with_and_without_the_gate() -> None:
    device = decode_device("dra.net", {"x": {"ints": [2]}})
    source = "true"
    assert environment("1.37").compile(source).matches(device)
    with pytest.raises(CelRuntimeError, match="unsupported attribute value"):
        environment("1.36").compile(source).matches(device)
    assert environment("1.37").compile(source).matches(device)


def test_includes_takes_48_values_in_1_36_and_any_number_in_1_37() -> None:
    source = 'device.attributes["dra.net"].names.includes("n48")'
    old, new = environment("1.36", GATE).compile(source), environment("1.37").compile(source)
    assert not old.matches(lists_of(48))
    with pytest.raises(CelRuntimeError, match="cannot be applied to lists longer than 48 values"):
        old.matches(lists_of(49))
    assert new.matches(lists_of(49))


def test_a_list_is_no_answer() -> None:
    with pytest.raises(CelRuntimeError, match="CEL result of type list could not be converted to bool"):
        environment("1.37").compile('device.attributes["dra.net"].ints').matches(LISTS)


def test_dyn_is_an_answer_only_where_attributes_are_dyn() -> None:
    with pytest.raises(CelCompileError, match="not dyn"):
        environment("1.36").compile("dyn(true)")
    for env in ACCEPTING:
        assert env.compile("dyn(true)").matches(LISTS)
