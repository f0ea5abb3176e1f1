"""Numbers, strings, durations and times as Go reads and writes them, since messages and conversions show them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

_ESCAPES = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    '"': r"\"",
    "\\": r"\\",
}
_FLOAT = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)"
    r"[pP][+-]?[0-9]+|(?i:inf|infinity|nan))"
)
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_DURATION_PART = re.compile(r"([0-9]*)(\.[0-9]*)?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)(?![a-z\u00b5\u03bc])")
# Go takes an hour of one digit, too.
_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})([.,][0-9]+)?(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))"
)
# strconv switches to the exponent form here when it prints as few digits as possible.
_LONGEST_PLAIN = 6
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def quote(text: str) -> str:
    """strconv.Quote."""
    out = []
    for char in text:
        code = ord(char)
        if char in _ESCAPES:
            out.append(_ESCAPES[char])
        elif char.isprintable() or char == " ":
            out.append(char)
        elif code < 0x80:
            out.append(f"\\x{code:02x}")
        else:
            out.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return f'"{"".join(out)}"'


def format_g(value: float) -> str:
    """fmt's %g: shortest digits, exponent form below 1e-4 and from 1e6 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent_text = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent_text or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0") or "0"
    exponent = point - 1
    if exponent < -4 or exponent >= _LONGEST_PLAIN:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"


def format_f(value: float) -> str:
    """strconv.FormatFloat with 'f' and as many digits as needed."""
    text = format_g(value)
    if "e" not in text:
        return text
    mantissa, _, exponent = text.partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    shift = int(exponent)
    if shift >= len(fraction):
        return sign + whole + fraction.ljust(shift, "0")
    if shift >= 0:
        return f"{sign}{whole}{fraction[:shift]}.{fraction[shift:]}"
    return f"{sign}0.{'0' * (-shift - 1)}{whole}{fraction}"


def parse_float(text: str) -> float | None:
    """strconv.ParseFloat; None where it fails, which includes values too large."""
    plain = text.replace("_", "") if text[:3].lower().lstrip("+-").startswith("0x") else text
    if not _FLOAT.fullmatch(plain):
        return None
    lowered = plain.lower().lstrip("+-")
    if lowered.startswith("0x"):
        value = float.fromhex(plain)
    elif lowered in ("inf", "infinity", "nan"):
        return float(plain)
    else:
        value = float(plain)
    return None if math.isinf(value) else value


def parse_int(text: str) -> int | None:
    """strconv.ParseInt with base 10, without the range check."""
    return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else None


def parse_bool(text: str) -> bool | None:
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    return False if text in ("0", "f", "F", "FALSE", "false", "False") else None


def parse_duration(text: str) -> int | None:
    """time.ParseDuration, in nanoseconds."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0
    if not body:
        return None
    total, position = 0, 0
    while position < len(body):
        match = _DURATION_PART.match(body, position)
        if match is None or not (match[1] or (match[2] and len(match[2]) > 1)):
            return None
        unit = _UNITS[match[3]]
        total += int(match[1] or 0) * unit
        fraction = (match[2] or ".")[1:]
        if fraction:
            total += int(fraction) * unit // 10 ** len(fraction)
        position = match.end()
    nanos = -total if text[0] == "-" else total
    return nanos if -(2**63) <= nanos < 2**63 else None


def parse_time(text: str) -> tuple[int, int] | None:
    """time.Parse with RFC 3339: nanoseconds since the epoch, and the offset from UTC in seconds."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
    offset = 0
    if match[8] is None:
        if int(match[10]) > 24 or int(match[11]) > 60:
            return None
        offset = (int(match[10]) * 3600 + int(match[11]) * 60) * (-1 if match[9] == "-" else 1)
    try:
        base = datetime(max(year, 1), month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    seconds = int((base - _EPOCH).total_seconds()) - offset
    if year == 0:
        seconds -= 366 * 86400
    fraction = (match[7] or ".")[1:10].ljust(9, "0")
    return seconds * 10**9 + int(fraction), offset


def format_time(nanos: int, offset: int) -> str:
    """RFC 3339 with as many fractional digits as needed."""
    seconds, rest = divmod(nanos, 10**9)
    when = _EPOCH + timedelta(seconds=seconds + offset)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    zone = (
        "Z" if offset == 0 else f"{'-' if offset < 0 else '+'}{abs(offset) // 3600:02d}:{abs(offset) % 3600 // 60:02d}"
    )
    return f"{when:%Y-%m-%dT%H:%M:%S}{fraction}{zone}"
