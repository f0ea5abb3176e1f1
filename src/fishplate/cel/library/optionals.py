"""Optional values: `optional.of(x)`, `.hasValue()`, `.value()` and lists of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishplate.cel.values import NONE, CelMap, Duration, Err, Optional, Timestamp, Value

if TYPE_CHECKING:
    from collections.abc import Callable

_ZERO_SECONDS = -62135596800


def of(value: Value) -> Value:
    return Optional(value)


def of_non_zero(value: Value) -> Value:
    return NONE if _is_zero(value) else Optional(value)


def _is_zero(value: Value) -> bool:
    if isinstance(value, Duration):
        return value.nanos == 0
    if isinstance(value, Timestamp):
        return value.nanos == _ZERO_SECONDS * 10**9
    if isinstance(value, Optional):
        return not value.present or _is_zero(value.value)
    return value is None or (isinstance(value, bool | int | float | str | bytes | tuple | CelMap) and not value)


def none() -> Value:
    return NONE


def value_of(optional: Optional) -> Value:
    return optional.value if optional.present else Err("optional.none() dereference")


def has_value(optional: Optional) -> Value:
    return optional.present


def unwrap(items: tuple[Value, ...]) -> Value:
    out = []
    for item in items:
        if not isinstance(item, Optional):
            return Err(f"value {item} is not optional")
        if item.present:
            out.append(item.value)
    return tuple(out)


OVERLOADS: dict[str, Callable[..., Value]] = {
    "optional_of": of,
    "optional_ofNonZeroValue": of_non_zero,
    "optional_none": none,
    "optional_value": value_of,
    "optional_hasValue": has_value,
    "optional_unwrap": unwrap,
    "optional_unwrapOpt": unwrap,
}
