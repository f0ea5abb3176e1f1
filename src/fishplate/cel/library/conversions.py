"""Conversions between types: `int(x)`, `string(x)` and so on, and the times and durations they make."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from fishplate.cel import gotext
from fishplate.cel.operators import (
    INT_OVERFLOW,
    MAX_SECONDS,
    MIN_SECONDS,
    TIME_OVERFLOW,
    UINT_OVERFLOW,
    check_uint,
)
from fishplate.cel.values import MAX_INT, MAX_UINT, MIN_INT, Duration, Err, Timestamp, TypeValue, Uint, Value, type_name

if TYPE_CHECKING:
    from collections.abc import Callable


def _failed(value: Value, wanted: str) -> Err:
    return Err(f"type conversion error from '{type_name(value)}' to '{wanted}'")


def to_int(value: Value) -> Value:
    if isinstance(value, str):
        parsed = gotext.parse_int(value)
        return parsed if parsed is not None and MIN_INT <= parsed <= MAX_INT else _failed(value, "int")
    if isinstance(value, Uint):
        return int(value) if value <= MAX_INT else INT_OVERFLOW
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and float(MIN_INT) < value < float(MAX_INT) else INT_OVERFLOW
    if isinstance(value, Duration):
        return value.nanos
    if isinstance(value, Timestamp):
        return value.nanos // 10**9
    return value


def to_uint(value: Value) -> Value:
    if isinstance(value, str):
        parsed = gotext.parse_int(value) if value[:1] not in ("+", "-") else None
        return Uint(parsed) if parsed is not None and parsed <= MAX_UINT else _failed(value, "uint")
    if isinstance(value, float):
        return Uint(int(value)) if math.isfinite(value) and 0 <= value < 2.0**64 else UINT_OVERFLOW
    if type(value) is int:
        return check_uint(value)
    return value


def to_double(value: Value) -> Value:
    if isinstance(value, str):
        parsed = gotext.parse_float(value)
        return _failed(value, "double") if parsed is None else parsed
    return float(value) if isinstance(value, int) else value


def to_bool(value: Value) -> Value:
    if isinstance(value, str):
        parsed = gotext.parse_bool(value)
        return _failed(value, "bool") if parsed is None else parsed
    return value


def to_bytes(value: Value) -> Value:
    return value.encode() if isinstance(value, str) else value


def to_string(value: Value) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return gotext.format_g(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return Err("invalid UTF-8 in bytes, cannot convert to string")
    if isinstance(value, Duration):
        return gotext.format_f(value.nanos // 10**9 + (value.nanos % 10**9) / 1e9) + "s"
    if isinstance(value, Timestamp):
        return gotext.format_time(value.nanos, value.offset)
    if isinstance(value, TypeValue):
        return value.name
    return value


def to_duration(value: Value) -> Value:
    if isinstance(value, str):
        parsed = gotext.parse_duration(value)
        return _failed(value, "google.protobuf.Duration") if parsed is None else Duration(parsed)
    return _failed(value, "google.protobuf.Duration") if type(value) is int else value


def to_timestamp(value: Value) -> Value:
    if isinstance(value, str):
        parsed = gotext.parse_time(value)
        if parsed is None:
            return _failed(value, "google.protobuf.Timestamp")
        return Timestamp(*parsed) if MIN_SECONDS <= parsed[0] // 10**9 <= MAX_SECONDS else TIME_OVERFLOW
    if type(value) is int:
        return Timestamp(value * 10**9) if MIN_SECONDS <= value <= MAX_SECONDS else TIME_OVERFLOW
    return value


def to_type(value: Value) -> Value:
    return TypeValue(type_name(value))


def identity(value: Value) -> Value:
    return value


def _in_zone(moment: Timestamp, zone: str) -> datetime | Err:
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=moment.nanos // 10**9)
    hours, colon, minutes = zone.partition(":")
    if not colon:
        if zone in ("", "UTC"):
            return when
        try:
            return when.astimezone(ZoneInfo(zone))
        except (OSError, ValueError, KeyError):
            return Err(f"unknown time zone {zone}")
    for part in (hours, minutes):
        if gotext.parse_int(part) is None:
            return Err(f"strconv.Atoi: parsing {gotext.quote(part)}: invalid syntax")
    offset = int(hours) * 60 + (-int(minutes) if zone.startswith("-") else int(minutes))
    try:
        return when.astimezone(timezone(timedelta(minutes=offset)))
    except (OverflowError, ValueError):
        return Err(f"unknown time zone {zone}")


def _field(read: Callable[[datetime], int]) -> Callable[..., Value]:
    def get(moment: Value, zone: Value = "UTC") -> Value:
        assert isinstance(moment, Timestamp)
        assert isinstance(zone, str)
        when = _in_zone(moment, zone)
        return when if isinstance(when, Err) else read(when)

    return get


def _milliseconds(moment: Value, zone: Value = "UTC") -> Value:
    assert isinstance(moment, Timestamp)
    return moment.nanos % 10**9 // 10**6


def _span(unit: int) -> Callable[[Value], Value]:
    def get(value: Value) -> Value:
        assert isinstance(value, Duration)
        return int(abs(value.nanos) // unit) * (1 if value.nanos >= 0 else -1)

    return get


_TIMES = {
    "year": _field(lambda when: when.year),
    "month": _field(lambda when: when.month - 1),
    "day_of_year": _field(lambda when: when.timetuple().tm_yday - 1),
    "day_of_month": _field(lambda when: when.day - 1),
    "day_of_month_1_based": _field(lambda when: when.day),
    "day_of_week": _field(lambda when: when.isoweekday() % 7),
    "hours": _field(lambda when: when.hour),
    "minutes": _field(lambda when: when.minute),
    "seconds": _field(lambda when: when.second),
    "milliseconds": _milliseconds,
}

OVERLOADS: dict[str, Callable[..., Value]] = {
    **{f"{name}_to_int64": to_int for name in ("int64", "double", "duration", "string", "timestamp", "uint64")},
    **{f"{name}_to_uint64": to_uint for name in ("uint64", "double", "int64", "string")},
    **{f"{name}_to_double": to_double for name in ("double", "int64", "string", "uint64")},
    **{f"{name}_to_bool": to_bool for name in ("bool", "string")},
    **{f"{name}_to_bytes": to_bytes for name in ("bytes", "string")},
    **{f"{name}_to_duration": to_duration for name in ("duration", "int64", "string")},
    **{f"{name}_to_timestamp": to_timestamp for name in ("timestamp", "int64", "string")},
    **{
        f"{name}_to_string": to_string
        for name in ("string", "bool", "bytes", "double", "duration", "int64", "timestamp", "uint64")
    },
    **{f"timestamp_to_{name}": get for name, get in _TIMES.items()},
    **{f"timestamp_to_{name}_with_tz": get for name, get in _TIMES.items()},
    "timestamp_to_seconds_tz": _TIMES["seconds"],
    "duration_to_hours": _span(3600 * 10**9),
    "duration_to_minutes": _span(60 * 10**9),
    "duration_to_seconds": _span(10**9),
    "duration_to_milliseconds": _span(10**6),
}
