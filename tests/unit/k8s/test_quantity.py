"""Quantities: exact values, Kubernetes' spelling, its notion of an integer."""

import pytest

from fishplate.errors import InputError
from fishplate.k8s.quantity import MAX_INT64, Family, Quantity, parse_quantity


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1Ki", "1024"),
        ("1000m", "1"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1k"),
        ("1E3", "1000"),
        ("0.5Ki", "512"),
        ("+5", "5"),
    ],
)
def test_equal_amounts_are_equal_however_they_are_written(one: str, other: str) -> None:
    assert parse_quantity(one) == parse_quantity(other)
    assert hash(parse_quantity(one)) == hash(parse_quantity(other))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1.5Gi", "1536Mi"),
        ("1.5", "1500m"),
        ("0.5Gi", "512Mi"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("1000k", "1M"),
        ("0.0005", "500u"),
        ("100Ki", "100Ki"),
        ("0.5", "500m"),
        ("12e6", "12e6"),
        ("0.1Ki", "102400m"),
        ("-1.5Gi", "-1536Mi"),
        ("0", "0"),
    ],
)
def test_output_is_canonical_in_the_family_of_the_input(text: str, canonical: str) -> None:
    assert str(parse_quantity(text)) == canonical


@pytest.mark.parametrize("text", ["", "200K", "1 Gi", "1.2.3", "abc", "1e", "1ki", "1KiB", "e3x", "１"])
def test_what_kubernetes_refuses_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_quantity(text)


def test_digits_beyond_a_billionth_round_away_from_zero() -> None:
    assert parse_quantity("0.1n") == parse_quantity("1n")
    assert parse_quantity("-0.1n") == parse_quantity("-1n")


def test_binary_values_are_capped_and_decimal_ones_are_not() -> None:
    assert parse_quantity("16Ei").value == MAX_INT64
    assert parse_quantity("100E").value == 100 * 10**18


def test_integers_are_told_by_form_not_by_value() -> None:
    assert parse_quantity("1k").as_integer() == 1000
    assert parse_quantity("1.0").as_integer() is None
    assert parse_quantity("1000m").as_integer() is None
    assert parse_quantity("12345678901234567890").as_integer() is None


def test_value_rounds_up() -> None:
    assert parse_quantity("100m").value == 1
    assert parse_quantity("-100m").value == 0


def test_sums_keep_the_family_of_the_left_side_unless_it_is_zero() -> None:
    assert str(parse_quantity("1Gi") + parse_quantity("1024Mi")) == "2Gi"
    assert str(parse_quantity("0") + parse_quantity("2Gi")) == "2Gi"
    assert parse_quantity("1") - parse_quantity("1500m") == parse_quantity("-500m")


def test_sums_beyond_64_bits_are_exact() -> None:
    total = Quantity(MAX_INT64) + Quantity(1)
    assert total.nanos == 2**63 * 10**9
    assert total.as_integer() is None


def test_a_huge_exponent_costs_nothing_until_compared() -> None:
    assert parse_quantity("1e99999").mantissa == 1


def test_the_smallest_number_has_no_suffix() -> None:
    assert str(Quantity(-(2**63), 0, Family.BINARY)) == "-9223372036854775808"
    assert str(Quantity(-(2**63) + 2**60, 0, Family.BINARY)) == "-7Ei"
