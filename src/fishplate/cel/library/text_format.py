"""`"…".format([…])`: version 2 of cel-go's strings extension, with its locale-flavoured numbers.

The same walk over the clauses serves twice: at compile time it checks literal formats against the types of their
arguments, at run time it formats.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from fishplate.cel import gotext
from fishplate.cel.library.conversions import to_string
from fishplate.cel.values import CelMap, Duration, Err, Timestamp, Value, type_name

if TYPE_CHECKING:
    from collections.abc import Callable

_PRECISION = 6
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SCALARS = (
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "bytes",
    "google.protobuf.Timestamp",
    "google.protobuf.Duration",
    "type",
)
_STRING_COMPLAINT = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
    "and timestamps, was given {}"
)
_HEX = (
    ("int", "uint", "string", "bytes"),
    "only integers, byte buffers, and strings can be formatted as hex, was given {}",
)
# Which types a clause takes, and what it says about others.
ACCEPTED = {
    "s": (("list", "map", "null_type", *_SCALARS), _STRING_COMPLAINT),
    "d": (("int", "uint"), "decimal clause can only be used on integers, was given {}"),
    "f": (("double", "string"), "fixed-point clause can only be used on doubles, was given {}"),
    "e": (("double", "string"), "scientific clause can only be used on doubles, was given {}"),
    "b": (("int", "uint", "bool"), "only integers and bools can be formatted as binary, was given {}"),
    "x": _HEX,
    "X": _HEX,
    "o": (("int", "uint"), "octal clause can only be used on integers, was given {}"),
}


class FormatError(ValueError):
    pass


class Clause(NamedTuple):
    kind: str
    precision: int


def interpolate(text: str, count: int, fill: Callable[[int, Clause], str]) -> str:
    """Replace each clause by what `fill` makes of the argument with that index."""
    out: list[str] = []
    position, argument = 0, 0
    while position < len(text):
        if text[position] != "%":
            out.append(text[position])
            position += 1
        elif text[position + 1 : position + 2] == "%":
            out.append("%")
            position += 2
        else:
            if position + 1 >= len(text):
                raise FormatError("unexpected end of string" if argument < count else f"index {argument} out of range")
            if argument >= count:
                raise FormatError(f"index {argument} out of range")
            clause, position = _read_clause(text, position + 1)
            out.append(fill(argument, clause))
            argument += 1
    return "".join(out)


def _read_clause(text: str, position: int) -> tuple[Clause, int]:
    head = "could not parse formatting clause: "
    precision = _PRECISION
    if text[position] == ".":
        end = position + 1
        while end < len(text) and text[end] in "0123456789":
            end += 1
        if end >= len(text):
            raise FormatError(f"{head}error while parsing precision: could not find end of precision specifier")
        digits = text[position + 1 : end]
        if not digits:
            number = f"strconv.Atoi: parsing {gotext.quote(digits)}: invalid syntax"
            message = f"error while converting precision to integer: {number}"
            raise FormatError(f"{head}error while parsing precision: {message}")
        precision, position = int(digits), end
    kind = text[position]
    if kind not in ACCEPTED:
        raise FormatError(f'{head}unrecognized formatting clause "{kind}"')
    return Clause(kind, precision), position + 1


def format_text(text: str, arguments: tuple[Value, ...]) -> Value:
    def fill(index: int, clause: Clause) -> str:
        try:
            return _format(arguments[index], clause)
        except FormatError as error:
            raise FormatError(f"error during formatting: {error}") from error

    try:
        return interpolate(text, len(arguments), fill)
    except FormatError as error:
        return Err(str(error))


def _format(value: Value, clause: Clause) -> str:
    kind = clause.kind
    accepted, complaint = ACCEPTED[kind]
    special = kind in "fe" and isinstance(value, str)
    if type_name(value) not in accepted or (special and value not in ("NaN", "Infinity", "-Infinity")):
        raise FormatError(complaint.format(type_name(value)))
    if kind == "s":
        return _plain(value)
    if kind in "fe":
        number = float(str(value).replace("Infinity", "inf")) if special else value
        assert isinstance(number, float)
        return _fixed(number, clause.precision) if kind == "f" else _scientific(number, clause.precision)
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        return data.hex() if kind == "x" else data.hex().upper()
    assert isinstance(value, int)
    return format(int(value), kind)


def _fixed(value: float, precision: int) -> str:
    # A negative zero is written without its sign.
    return _special(value) or f"{value or 0.0:,.{precision}f}"


def _scientific(value: float, width: int) -> str:
    # Upstream takes the precision for a width, so there are always six digits.
    if special := _special(value):
        return special.rjust(width)
    mantissa, _, exponent = f"{value or 0.0:.6e}".partition("e")
    digits = exponent.lstrip("+-").rjust(2, "0")
    raised = ("-" if exponent.startswith("-") else "") + digits
    return f"{mantissa}×10{raised.translate(_SUPERSCRIPT)}".rjust(width)


def _special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return ("∞" if value > 0 else "-∞") if math.isinf(value) else ""


def _plain(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, tuple):
        return f"[{', '.join(_member(item) for item in value)}]"
    if isinstance(value, CelMap):
        pairs = sorted((_key(key), _member(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
    text = to_string(value)
    if isinstance(text, Err):
        raise FormatError(f"could not convert argument {gotext.quote(text.message)} to string")
    return str(text)


def _key(key: Value) -> str:
    if isinstance(key, bool | str):
        return _quoted(key, _plain(key))
    if isinstance(key, int):
        return str(int(key))
    raise FormatError(f"no formatting function for map key of type {type_name(key)}")


def _member(value: Value) -> str:
    """An element of a list or map, which shows its type where the bare text would not."""
    if isinstance(value, float):
        text = f"{value:.6f}"
        return gotext.quote({"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}[text]) if not math.isfinite(value) else text
    if isinstance(value, Timestamp | Duration):
        name = "timestamp" if isinstance(value, Timestamp) else "duration"
        return f"{name}({gotext.quote(_plain(value))})"
    if type_name(value) not in ("list", "map", "null_type", *_SCALARS):
        raise FormatError(f"no formatting function for {type_name(value)}")
    if type_name(value) == "type":
        return f"type({_plain(value)})"
    return _quoted(value, _plain(value))


def _quoted(value: Value, text: str) -> str:
    if isinstance(value, str):
        return gotext.quote(text)
    return f"b{gotext.quote(text)}" if isinstance(value, bytes) else text


OVERLOADS: dict[str, Callable[..., Value]] = {"string_format": format_text}
