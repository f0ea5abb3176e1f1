"""The operators: arithmetic with overflow checks, ordering, membership. Errors are returned, not raised."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fishplate.cel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    NO_SUCH_OVERLOAD,
    CelMap,
    Duration,
    Err,
    GrowingList,
    Timestamp,
    Uint,
    Value,
    comparable,
    compare,
    equal,
)

if TYPE_CHECKING:
    from collections.abc import Callable

INT_OVERFLOW = Err("integer overflow")
UINT_OVERFLOW = Err("unsigned integer overflow")
TIME_OVERFLOW = Err("timestamp overflow")
MIN_SECONDS = -62135596800
MAX_SECONDS = 253402300799

_RECEIVERS = (str, Duration, Timestamp)


def check_int(value: int) -> int | Err:
    return value if MIN_INT <= value <= MAX_INT else INT_OVERFLOW


def check_uint(value: int) -> Uint | Err:
    return Uint(value) if 0 <= value <= MAX_UINT else UINT_OVERFLOW


def check_time(nanos: int, offset: int) -> Timestamp | Err:
    return Timestamp(nanos, offset) if MIN_SECONDS <= nanos // 10**9 <= MAX_SECONDS else TIME_OVERFLOW


def _duration(nanos: int) -> Duration | Err:
    return Duration(nanos) if MIN_INT <= nanos <= MAX_INT else INT_OVERFLOW


def unsupported(name: str, value: Value) -> Err:
    """What a call says when its first operand cannot do it: strings and times are asked by name and answer shortly."""
    return NO_SUCH_OVERLOAD if isinstance(value, _RECEIVERS) else Err(f"no such overload: {name}")


def add(left: Value, right: Value) -> Value:
    kind = type(left)
    if isinstance(left, GrowingList) and isinstance(right, tuple):
        left.items.extend(right)
        return left
    if kind is not type(right):
        if isinstance(left, Timestamp) and isinstance(right, Duration):
            return check_time(left.nanos + right.nanos, left.offset)
        if isinstance(left, Duration) and isinstance(right, Timestamp):
            return check_time(left.nanos + right.nanos, right.offset)
        if kind in _ADDERS or isinstance(left, Duration | Timestamp):
            return NO_SUCH_OVERLOAD
        return unsupported("_+_", left)
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, bytes) and isinstance(right, bytes):
        return left + right
    if isinstance(left, tuple) and isinstance(right, tuple):
        return left + right
    if isinstance(left, Duration) and isinstance(right, Duration):
        return _duration(left.nanos + right.nanos)
    if isinstance(left, Timestamp):
        return NO_SUCH_OVERLOAD
    return _arithmetic("_+_", left, right, lambda one, two: one + two, lambda one, two: one + two)


_ADDERS = (int, Uint, float, str, bytes, tuple)


def subtract(left: Value, right: Value) -> Value:
    if isinstance(left, Timestamp):
        if isinstance(right, Duration):
            return check_time(left.nanos - right.nanos, left.offset)
        return _duration(left.nanos - right.nanos) if isinstance(right, Timestamp) else NO_SUCH_OVERLOAD
    if isinstance(left, Duration):
        return _duration(left.nanos - right.nanos) if isinstance(right, Duration) else NO_SUCH_OVERLOAD
    return _arithmetic("_-_", left, right, lambda one, two: one - two, lambda one, two: one - two)


def multiply(left: Value, right: Value) -> Value:
    return _arithmetic("_*_", left, right, lambda one, two: one * two, _multiply_doubles)


def divide(left: Value, right: Value) -> Value:
    if type(right) in (int, Uint) and right == 0 and type(left) is type(right):
        return Err("division by zero")
    return _arithmetic("_/_", left, right, _truncated, _divide_doubles)


def modulo(left: Value, right: Value) -> Value:
    if type(left) not in (int, Uint):
        return unsupported("_%_", left)
    if type(left) is type(right) and right == 0:
        return Err("modulus by zero")
    if left == MIN_INT and right == -1:
        return INT_OVERFLOW
    return _arithmetic("_%_", left, right, lambda one, two: one - two * _truncated(one, two), _divide_doubles)


def _arithmetic(
    name: str,
    left: Value,
    right: Value,
    whole: Callable[[int, int], int],
    double: Callable[[float, float], float],
) -> Value:
    kind = type(left)
    if kind not in (int, Uint, float):
        return unsupported(name, left)
    if type(right) is not kind:
        return NO_SUCH_OVERLOAD
    if isinstance(left, float) and isinstance(right, float):
        return double(left, right)
    assert isinstance(left, int)
    assert isinstance(right, int)
    result = whole(int(left), int(right))
    return check_uint(result) if kind is Uint else check_int(result)


def _truncated(left: int, right: int) -> int:
    """Division towards zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _multiply_doubles(left: float, right: float) -> float:
    return left * right


def _divide_doubles(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def negate(value: Value) -> Value:
    if isinstance(value, bool):
        return NO_SUCH_OVERLOAD
    if isinstance(value, float):
        return -value
    if isinstance(value, Duration):
        return _duration(-value.nanos)
    return check_int(-value) if type(value) is int else unsupported("-_", value)


def logical_not(value: Value) -> Value:
    return not value if isinstance(value, bool) else NO_SUCH_OVERLOAD


def not_strictly_false(value: Value) -> Value:
    return value if isinstance(value, bool) else True


def _ordering(name: str, accepted: tuple[int, ...]) -> Callable[[Value, Value], Value]:
    def order(left: Value, right: Value) -> Value:
        if not comparable(left):
            return unsupported(name, left)
        result = compare(left, right)
        return result if isinstance(result, Err) else result in accepted

    return order


less = _ordering("_<_", (-1,))
less_equal = _ordering("_<=_", (-1, 0))
greater = _ordering("_>_", (1,))
greater_equal = _ordering("_>=_", (1, 0))


def contains(element: Value, container: Value) -> Value:
    if isinstance(container, tuple):
        return any(equal(element, item) is True for item in container)
    if isinstance(container, CelMap):
        return container.contains(element)
    return NO_SUCH_OVERLOAD
