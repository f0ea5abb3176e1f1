"""Kubernetes' quantity and semver libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishplate.cel.values import MAX_INT, Err, SumQuantity, Value
from fishplate.errors import InputError
from fishplate.k8s.quantity import Family, Quantity, parse_quantity
from fishplate.k8s.semver import Semver, normalize_semver, parse_semver

if TYPE_CHECKING:
    from collections.abc import Callable


def quantity(text: str) -> Value:
    try:
        return parse_quantity(text)
    except InputError as error:
        return Err(error.what)


def is_quantity(text: str) -> Value:
    return not isinstance(quantity(text), Err)


def as_integer(amount: Quantity) -> Value:
    whole = amount.as_integer()
    return Err("cannot convert value to integer") if whole is None else whole


def _summed(total: Quantity) -> SumQuantity:
    return SumQuantity(total.mantissa, total.exponent, total.family, small=total.small)


def add(left: Quantity, right: Quantity | int) -> Value:
    return _summed(left + _as_quantity(right))


def sub(left: Quantity, right: Quantity | int) -> Value:
    return _summed(left - _as_quantity(right))


def _as_quantity(value: Quantity | int) -> Quantity:
    return value if isinstance(value, Quantity) else Quantity(value, 0, Family.EXPONENT)


def semver(text: str, normalize: bool = False) -> Value:
    try:
        return parse_semver(normalize_semver(text) if normalize else text)
    except InputError as error:
        return Err(error.what)


def is_semver(text: str, normalize: bool = False) -> Value:
    return not isinstance(semver(text, normalize), Err)


def _compare(left: Quantity | Semver, right: Quantity | Semver) -> int:
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return (left.nanos > right.nanos) - (left.nanos < right.nanos)
    assert isinstance(left, Semver)
    assert isinstance(right, Semver)
    return (left.key > right.key) - (left.key < right.key)


def _component(index: int) -> Callable[[Semver], Value]:
    def get(version: Semver) -> Value:
        number = version.key[index]
        assert isinstance(number, int)
        # Upstream converts an unsigned number to a signed one without a check.
        return number if number <= MAX_INT else number - 2**64

    return get


def _comparisons(kind: str) -> dict[str, Callable[..., Value]]:
    return {
        f"{kind}_is_greater_than": lambda left, right: _compare(left, right) == 1,
        f"{kind}_is_less_than": lambda left, right: _compare(left, right) == -1,
        f"{kind}_compare_to": _compare,
    }


OVERLOADS: dict[str, Callable[..., Value]] = {
    "string_to_quantity": quantity,
    "is_quantity_string": is_quantity,
    "quantity_sign": lambda amount: amount.sign,
    "quantity_get_float": lambda amount: amount.approximate(),
    "quantity_get_int": as_integer,
    "quantity_is_integer": lambda amount: amount.as_integer() is not None,
    "quantity_add": add,
    "quantity_add_int": add,
    "quantity_sub": sub,
    "quantity_sub_int": sub,
    "string_to_semver": semver,
    "string_bool_to_semver": semver,
    "is_semver_string": is_semver,
    "is_semver_string_bool": is_semver,
    "semver_major": _component(0),
    "semver_minor": _component(1),
    "semver_patch": _component(2),
    **_comparisons("quantity"),
    **_comparisons("semver"),
}
