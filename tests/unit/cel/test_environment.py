"""Compiling: what is accepted in which version, and how errors are placed and worded."""

import pytest

from fishplate.cel import COST_LIMIT, Device, environment
from fishplate.errors import CelCompileError, UnknownNameError


def failure(source: str, minor: str = "1.36") -> CelCompileError:
    with pytest.raises(CelCompileError) as caught:
        environment(minor).compile(source)
    return caught.value


def test_errors_carry_place_line_and_caret() -> None:
    error = failure('device.driver == "x" &&\n  device.nope')
    assert error.issues == ((2, 9, "undefined field 'nope'"),)
    assert error.what == (
        "compilation failed: ERROR: <input>:2:9: undefined field 'nope'\n |   device.nope\n | ........^"
    )


def test_every_type_error_is_reported_in_order() -> None:
    error = failure("foo == 1 && bar == 2")
    assert [issue[:2] for issue in error.issues] == [(1, 1), (1, 13)]


def test_wide_characters_move_the_caret_with_them() -> None:
    assert failure('"ü" == nope').what.endswith("\n | .．.....^")


def test_the_result_must_be_a_bool_or_an_attribute() -> None:
    assert failure("1").what == "must evaluate to bool or the unknown type, not int"
    assert failure('duration("1s")').what.endswith("not google.protobuf.Duration")
    assert environment().compile('device.attributes["a"].b').output_type == "google.protobuf.Any"


def test_a_constant_that_cannot_be_converted_is_refused_when_the_program_is_built() -> None:
    assert failure('int("x") == 1').what.startswith("program instantiation failed: type conversion error")


def test_a_bad_pattern_is_refused() -> None:
    assert "invalid matches argument" in failure('"a".matches("(")').what


def test_includes_came_with_1_36() -> None:
    source = 'device.attributes["a"].b.includes("x")'
    assert "undeclared reference to 'includes'" in failure(source, "1.35").what
    assert environment("1.36").compile(source).cost > 0


def test_the_list_gate_makes_attributes_dynamic() -> None:
    source = "dyn(true)"
    assert "not dyn" in failure(source).what
    assert environment("1.36", {"DRAListTypeAttributes": True}).compile(source).output_type == "dyn"
    assert environment("1.37").compile(source).output_type == "dyn"


def test_an_unknown_minor_names_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"1\.33"):
        environment("1.33")


def test_a_text_of_too_many_characters_is_refused() -> None:
    assert "expression code point size exceeds limit: size: 100001, limit 100000" in failure(" " * 99_997 + "true").what
    assert environment().compile(" " * 99_996 + "true").cost == 0


def test_deep_nesting_is_refused_and_does_not_overflow() -> None:
    assert "expression recursion limit exceeded: 250" in failure("(" * 300 + "true" + ")" * 300).what
    assert environment().compile("(" * 249 + "true" + ")" * 249).cost == 0
    assert "max recursion depth exceeded" in failure("1" + "+1" * 250 + " > 0").what
    assert environment().compile("1" + "+1" * 249 + " > 0").run(Device("d", {})).value is True


# Estimates in the test table of k8s.io/dynamic-resource-allocation v0.37.2 (cel/compile_test.go).
NIC = 'device.attributes["dra.example.com"]'
TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
SEVENFOLD = (
    "".join(f"{TEN}.all({name}, " for name in ("x", "y", "z", "z2", "z3", "z4", "z5"))
    + "int('1'.find('[0-9]*')) < 100"
    + ")" * 7
)
REFERENCE_COSTS = [
    ('device.driver == ""', 2),
    ('device.driver == "dra.example.com"', 4),
    (f"{NIC}.name", 4),
    (f'{NIC}["name"]', 4),
    (f"{NIC}.name > 0", 5),
    (f'{NIC}.name == "fish"', 5),
    (f'{NIC}.name.isGreaterThan(semver("0.0.1"))', 6),
    (f'{NIC}.name.isGreaterThan(semver("v0.0.1", true)) && isSemver("v1.0.0", true)', 7),
    ('"no-such-domain" in device.attributes', 3),
    (f"cel.bind(dra, {NIC}, dra.name)", 15),
    (f"{NIC}.a && {NIC}.b && {NIC}.c", 12),
    ('device.attributes.exists_one(x, x == "dra.example.com")', 164),
    (f'{NIC}.exists_one(x, x == "services")', 133),
    ('device.capacity.exists_one(x, x == "dra.example.com")', 164),
    ('device.capacity["dra.example.com"].exists_one(x, x == "memory")', 133),
    ('device.capacity["dra.example.com"].name.isGreaterThan(quantity("1Ki"))', 6),
    (f'{NIC}.services.split("example").size() >= 2', 19),
    (f'{NIC}.services.matches("[^a]?sym")', 18),
    (f"{NIC}.names.size() == 2", 6),
    (f'{NIC}.name.includes("fish")', 4 + 64),
    (f'{NIC}.name.includes(semver("1.0.0"))', 4 + 64 + 1),
    (f"1 in {NIC}.names", 4 + 64),
    (f"{NIC}.names.exists(x, x > 0)", 5 + (3 + 3) * 64),
    (f'{NIC}.names.all(x, x != "")', 5 + (2 + 2) * 64),
    ("device.allowMultipleAllocations == false", 3),
    (SEVENFOLD, 85_555_551),
]


@pytest.mark.parametrize(("source", "cost"), REFERENCE_COSTS)
def test_reference_costs_are_exact(source: str, cost: int) -> None:
    program = environment("1.37").compile(source)
    assert program.cost == cost
    assert program.too_expensive is (cost > COST_LIMIT)


def test_what_the_api_would_refuse_is_marked_and_still_compiles() -> None:
    loops = "".join(f"device.attributes.all({name}, " for name in "abcdefg")
    program = environment().compile(f"{loops}true{')' * 7}")
    assert program.cost > COST_LIMIT
    assert program.too_expensive
