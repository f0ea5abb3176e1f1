"""Matching devices: look-up rules, types, absorbed errors, limits; by generated code and by the evaluator alike."""

import pytest

from fishplate.cel import COST_LIMIT, Device, decode_device, environment
from fishplate.errors import CelRuntimeError
from fishplate.k8s.resource import DeviceAttribute, DeviceCapacity

NIC = decode_device(
    "dra.net",
    {
        "rdma": {"bool": True},
        "rail": {"string": "rail0"},
        "speed": {"int": 400},
        "dra.net/firmware": {"version": "28.40.1"},
        "resource.kubernetes.io/numaNode": {"int": 1},
    },
    {"bandwidth": {"value": "400G"}},
)


def matches(source: str, device: Device = NIC, minor: str = "1.36") -> bool:
    program = environment(minor).compile(source)
    result = program.matches(device)
    assert program.run(device).value is result
    return result


def error_of(source: str, device: Device = NIC) -> str:
    with pytest.raises(CelRuntimeError) as caught:
        environment().compile(source).matches(device)
    return caught.value.what


def test_unknown_domain_is_an_empty_map() -> None:
    assert matches('device.attributes["nope.io"].size() == 0')
    assert not matches('"nope.io" in device.attributes')
    assert matches("has(device.attributes.nope)")
    assert matches('device.attributes[?"nope"].hasValue()')
    assert error_of('device.attributes["nope.io"].x == 1') == "no such key: x"


def test_unqualified_names_belong_to_the_driver() -> None:
    assert matches('device.attributes["dra.net"].rail == "rail0"')
    assert matches('device.attributes["dra.net"].firmware.isGreaterThan(semver("28.39.0"))')
    other = decode_device("other.io", {"rail": {"string": "rail0"}})
    assert matches('!has(device.attributes["dra.net"].rail)', other)


def test_a_qualified_name_wins_over_the_same_bare_one_on_both_paths() -> None:
    twice = decode_device("dra.net", {"dra.net/rail": {"string": "qualified"}, "rail": {"string": "bare"}})
    assert matches('device.attributes["dra.net"].rail == "qualified"', twice)
    assert matches("device.attributes.size() == 1", twice)


def test_types_never_mix_silently() -> None:
    assert not matches('device.attributes["dra.net"].rdma == 1')
    assert not matches('device.attributes["dra.net"].speed == "400"')
    assert matches('device.attributes["dra.net"].speed == 400.0')
    assert not matches('"28.40.1" == device.attributes["dra.net"].firmware')
    assert error_of('device.attributes["dra.net"].firmware == "28.40.1"') == "no such overload"
    assert error_of('device.attributes["dra.net"].rail > 1') == "no such overload"


def test_versions_are_strict_unless_told_otherwise() -> None:
    for text in ("1.2", "v1.2.3", "01.2.3", "1.2.3-", "1.2.3-01", ""):
        assert not matches(f'isSemver("{text}")')
        assert error_of(f'semver("{text}") == semver("1.2.3")')
    assert matches('isSemver("v1.2", true) && semver("v01.2", true) == semver("1.2.0")')
    assert matches('semver("1.2.3+a") == semver("1.2.3+b") && semver("1.2.3-rc.2").isLessThan(semver("1.2.3-rc.10"))')


def test_errors_are_absorbed_from_either_side() -> None:
    assert not matches('device.attributes["dra.net"].nope == 1 && false')
    assert matches('device.attributes["dra.net"].nope == 1 || true')
    assert error_of('device.attributes["dra.net"].nope == 1 || false') == "no such key: nope"


def test_a_result_that_is_no_bool_is_an_error() -> None:
    assert error_of('device.attributes["dra.net"].rail').startswith("CEL result of type string could not be converted")


def test_an_unusable_attribute_fails_every_selector() -> None:
    broken = decode_device("dra.net", {"good": {"int": 1}, "bad": {}})
    assert error_of("true", broken) == "attribute bad: unsupported attribute value"
    odd = decode_device("dra.net", {"v": {"version": "v1"}})
    assert error_of("true", odd) == "attribute v: parse semantic version: No Major.Minor.Patch elements found"


def test_list_attributes_need_their_gate_before_1_37() -> None:
    device = decode_device("dra.net", {"names": {"strings": ["a", "b"]}})
    assert error_of("true", device) == "attribute names: unsupported attribute value"
    source = 'device.attributes["dra.net"].names.includes("b")'
    assert environment("1.36", {"DRAListTypeAttributes": True}).compile(source).matches(device)
    assert environment("1.37").compile(source).matches(device)


def test_the_cost_limit_stops_long_loops_and_nothing_absorbs_it() -> None:
    endless = "lists.range(1000).all(x, lists.range(1000).all(y, true)) || true"
    assert error_of(endless) == "operation cancelled: actual cost limit exceeded"
    outcome = environment().compile(endless).run(NIC)
    assert outcome.cost is not None
    assert outcome.cost > COST_LIMIT


def test_long_strings_take_the_counted_path() -> None:
    device = decode_device("dra.net", {"text": {"string": "x" * 5_000_000}})
    source = " || ".join(['device.attributes["dra.net"].text.contains("yyyyyyyyyyyyyyyyyyyyy")'] * 2)
    program = environment().compile(source)
    assert program.is_fast
    assert program.matches_fast(device) is None
    assert error_of(source, device) == "operation cancelled: actual cost limit exceeded"


@pytest.mark.parametrize(
    "source",
    [
        'device.driver == "dra.net"',
        'device.attributes["dra.net"].rdma',
        '!(device.attributes["dra.net"].rail != "rail0")',
        'device.attributes["resource.kubernetes.io"].numaNode in [1, 2] || device.attributes["dra.net"].speed >= 100',
        'device.attributes["dra.net"].rail in ["rail0", "rail1"]',
        'device.attributes["dra.net"].?nope.orValue("x") == "x"',
        'cel.bind(a, device.attributes["dra.net"], a.rdma && a.rail.startsWith("rail") && has(a.speed))',
        'device.capacity["dra.net"].bandwidth.compareTo(quantity("400G")) == 0',
        'device.capacity["dra.net"].bandwidth == quantity("400000M")',
        '["rail0", "rail1"].exists(r, device.attributes["dra.net"].rail == r)',
        'device.attributes["dra.net"].rail.matches("^rail[0-9]$")',
        'device.attributes["dra.net"].firmware == semver("28.40.1+x")',
    ],
)
def test_common_selectors_match_by_generated_code_as_by_the_evaluator(source: str) -> None:
    program = environment().compile(source)
    assert program.run(NIC).value is True
    assert program.matches(NIC)


def test_generated_code_does_not_run_text_from_literals() -> None:
    source = 'device.driver == "\\" or 1 / 0 or \\"" || true'
    assert matches(source)


def test_reads_name_what_the_text_tells() -> None:
    reads = (
        environment()
        .compile(
            'cel.bind(a, device.attributes["dra.net"], has(a.rail) && a.speed > 1)'
            ' && device.capacity["c.io"].m.isInteger() && device.driver != ""'
        )
        .reads
    )
    assert reads.items == {
        ("attribute", "dra.net", "rail"),
        ("attribute", "dra.net", "speed"),
        ("capacity", "c.io", "m"),
        ("driver", "", ""),
    }
    assert not reads.everything
    assert environment().compile("device.attributes.exists(d, true)").reads.everything


def test_devices_are_views_of_what_a_slice_holds() -> None:
    attributes, capacity = {"v": DeviceAttribute(version="1.0.0")}, {"m": DeviceCapacity(value=1024)}
    device = Device("dra.net", attributes, capacity, allow_multiple_allocations=True)
    assert matches('device.allowMultipleAllocations && device.attributes["dra.net"].v.major() == 1', device)
    assert matches('device.capacity["dra.net"].m == quantity("1Ki")', device)
