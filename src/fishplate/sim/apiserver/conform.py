"""From what a client wrote to what is stored: Go's decoder, played by the table of types.

kube-apiserver reads JSON into Go structures and writes those out again, so unknown fields vanish, empty ones are left
out or filled in, and quantities and times come back in canonical form. Everything after this step may rely on it:
no unknown field, every value of its type, nothing empty that Go would leave out.
"""

import base64
import binascii
from datetime import UTC, datetime
from typing import Any

from fishplate.errors import InputError
from fishplate.k8s.quantity import parse_quantity
from fishplate.sim.apiserver.types import Field, Shape
from fishplate.sim.apiserver.values import Object, Value

_LIMITS = {"int32": 2**31, "int64": 2**63, "uint8": 256}
_EMPTY: tuple[Any, ...] = ("", 0, False, None)


class Repeated(Object):
    """A JSON object in which some keys came more than once."""

    twice: tuple[str, ...] = ()


class DecodeError(Exception):
    """A value that Go could not read; the text is Go's."""


class Conformer:
    """One reading of one object. `problems` collects unknown and repeated fields in the order of the document."""

    def __init__(self, root: str) -> None:
        self.problems: list[str] = []
        self._root = root

    def read(self, shape: Shape, value: Value) -> Object:
        if not isinstance(value, dict):
            raise DecodeError(f"json: cannot unmarshal {_json_name(value)} into Go value of type {shape.go_name}")
        return self._struct(shape, value, "", "")

    def _struct(self, shape: Shape, value: Object, path: str, dotted: str) -> Object:
        if isinstance(value, Repeated):
            self.problems += [f'duplicate field "{path}{key}"' for key in value.twice]
        out: Object = {}
        fields = shape.fields
        for key, given in value.items():
            field = fields.get(key)
            if field is None:
                self.problems.append(f'unknown field "{path}{key}"')
                continue
            if given is None:
                continue
            read = self._value(field.shape, given, f"{path}{key}", f"{dotted}.{key}", shape)
            if not _is_left_out(field, read):
                out[key] = read
        for field in shape.filled:
            if field.name not in out:
                out[field.name] = zero(field.shape)
        return out

    def _value(self, shape: Shape, value: Value, path: str, dotted: str, owner: Shape) -> Value:
        kind = shape.kind
        if kind == "string" and type(value) is str:
            return value
        if kind == "struct" and isinstance(value, dict):
            return self._struct(shape, value, f"{path}.", dotted)
        if kind == "list" and isinstance(value, list):
            item = shape.inner
            if item.kind == "struct" or item.kind == "list":
                return [self._item(item, one, f"{path}[{i}]", dotted, owner) for i, one in enumerate(value)]
            return [self._item(item, one, path, dotted, owner) for one in value]
        if kind == "map" and isinstance(value, dict):
            item = shape.inner
            if isinstance(value, Repeated):
                self.problems += [f'duplicate field "{path}.{key}"' for key in value.twice]
            return {key: self._item(item, one, f"{path}.{key}", dotted, owner) for key, one in value.items()}
        if kind == "json":
            return _plain(value)
        return _scalar(shape, value, dotted, owner)

    def _item(self, shape: Shape, value: Value, path: str, dotted: str, owner: Shape) -> Value:
        if value is None:
            return zero(shape)
        return self._value(shape, value, path, dotted, owner)


def conform(shape: Shape, value: Object) -> Object:
    """The same for an object whose unknown fields have been dealt with."""
    return Conformer(shape.name).read(shape, value)


def zero(shape: Shape) -> Value:
    match shape.kind:
        case "struct":
            return {field.name: zero(field.shape) for field in shape.filled}
        case "string" | "duration":
            return ""
        case "bool":
            return False
        case "int32" | "int64" | "uint8" | "float64" | "intstr":
            return 0
        case "quantity":
            return "0"
    return None


def _is_left_out(field: Field, value: Value) -> bool:
    if field.omit != "?" or field.pointer:
        return False
    kind = field.shape.kind
    if kind in ("list", "map", "bytes"):
        return not value
    return kind not in ("struct", "time", "microtime", "json", "quantity") and value in _EMPTY


def _json_name(value: object) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float():
            return "number"
        case list():
            return "array"
        case dict():
            return "object"
    return "null"


def _mismatch(shape: Shape, value: object, dotted: str, owner: Shape) -> DecodeError:
    said = _json_name(value)
    if said == "number" and shape.kind in _LIMITS:
        said = f"number {value}"
    place = f"Go struct field {owner.name.rpartition('.')[2]}{dotted}"
    return DecodeError(f"json: cannot unmarshal {said} into {place} of type {shape.go_name}")


def _scalar(shape: Shape, value: Value, dotted: str, owner: Shape) -> Value:
    kind = shape.kind
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "bool" and isinstance(value, bool):
        return value
    if kind in _LIMITS and is_number and value == int(value) and -_LIMITS[kind] <= value < _LIMITS[kind]:
        return int(value)
    if kind == "float64" and is_number:
        return value
    if kind == "intstr" and isinstance(value, str | int):
        return value
    if kind == "quantity" and (isinstance(value, str) or is_number):
        return canonical_quantity(str(value))
    if kind in ("time", "microtime") and isinstance(value, str):
        return canonical_time(value, micro=kind == "microtime")
    if kind == "bytes" and isinstance(value, str):
        return _canonical_bytes(value)
    if kind == "duration" and isinstance(value, str):
        return value
    raise _mismatch(shape, value, dotted, owner)


def canonical_quantity(text: str) -> str:
    try:
        return str(parse_quantity(text))
    except InputError as error:
        raise DecodeError(error.what) from error


def _canonical_bytes(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error as error:
        good = next((i for i, c in enumerate(text) if not (c.isalnum() or c in "+/=")), len(text) // 4 * 4)
        raise DecodeError(f"illegal base64 data at input byte {good}") from error
    return text


def canonical_time(text: str, *, micro: bool = False) -> str:
    """RFC 3339 in UTC, in whole seconds or in microseconds."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None or "T" not in text:
            raise ValueError(text)
    except ValueError as error:
        layout = "2006-01-02T15:04:05.000000Z07:00" if micro else "2006-01-02T15:04:05Z07:00"
        said = f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"'
        raise DecodeError(said) from error
    moment = moment.astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


def _plain(value: Value) -> Value:
    """JSON as it was, without the marks of repeated keys."""
    match value:
        case dict():
            return {key: _plain(one) for key, one in value.items()}
        case list():
            return [_plain(one) for one in value]
    return value
