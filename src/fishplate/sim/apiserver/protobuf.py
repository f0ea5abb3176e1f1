"""Kubernetes' protobuf, as far as clients send it: kubectl's `create` and Go's typed clients write nothing else.

A body is four magic bytes and an envelope (k8s.io/apimachinery's runtime.Unknown: 1 is the type, 2 the object). The
object is read by the numbers in the table of types into the same plain values that JSON would have given; answers are
JSON, which every client that sends protobuf also accepts.
"""

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from fishplate.sim.apiserver.conform import DecodeError
from fishplate.sim.apiserver.types import Shape
from fishplate.sim.apiserver.values import Object, Value

MEDIA = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def read_envelope(data: bytes, shape: Shape) -> Object:
    """The object in the envelope, with its kind and version."""
    if not data.startswith(_MAGIC):
        raise DecodeError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = {number: value for number, value in _fields(data[len(_MAGIC) :]) if isinstance(value, bytes)}
    said = {number: value for number, value in _fields(envelope.get(1, b"")) if isinstance(value, bytes)}
    head = {"apiVersion": _text(said.get(1, b"")), "kind": _text(said.get(2, b""))}
    return {key: value for key, value in head.items() if value} | _message(shape, envelope.get(2, b""))


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise DecodeError("unexpected EOF")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        wire = key & 7
        if wire == _VARINT:
            value, place = _varint(data, place)
            yield key >> 3, value
            continue
        if wire == _BYTES:
            size, place = _varint(data, place)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise DecodeError(f"proto: illegal wireType {wire}")
        if place + size > len(data):
            raise DecodeError("unexpected EOF")
        yield key >> 3, data[place : place + size]
        place += size


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError("proto: a string is not UTF-8") from error


def _message(shape: Shape, data: bytes, prefix: str = "") -> Object:
    """A structure. What it embeds comes as a message of its own and goes beside the other fields. No type of ours holds
    itself, so the depth is that of the table."""
    out: Object = {}
    for number, value in _fields(data):
        path = f"{prefix}{number}"
        field = shape.numbers.get(path)
        if field is not None:
            _put(out, field.name, field.shape, value)
        elif isinstance(value, bytes) and any(known.startswith(f"{path}.") for known in shape.numbers):
            out |= _message(shape, value, f"{path}.")
    return out


def _put(out: Object, name: str, shape: Shape, value: int | bytes) -> None:
    if shape.kind == "list":
        out.setdefault(name, []).append(_value(shape.inner, value))
    elif shape.kind == "map":
        entry = dict(_fields(_raw(value)))
        inner = entry.get(2, b"" if shape.inner.kind not in ("bool", "int32", "int64") else 0)
        out.setdefault(name, {})[_text(_raw(entry.get(1, b"")))] = _value(shape.inner, inner)
    else:
        out[name] = _value(shape, value)


def _raw(value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    raise DecodeError("proto: wrong wireType")


def _value(shape: Shape, value: int | bytes) -> Value:
    match shape.kind:
        case "bool" | "int32" | "int64" | "uint8":
            if not isinstance(value, int):
                raise DecodeError("proto: wrong wireType")
            signed = value - (1 << 64) if value >= 1 << 63 else value
            return bool(value) if shape.kind == "bool" else signed
        case "float64":
            data = _raw(value)
            return struct.unpack("<d", data)[0] if len(data) == 8 else 0.0
        case "string":
            return _text(_raw(value))
        case "bytes":
            return base64.b64encode(_raw(value)).decode()
        case "struct":
            return _message(shape, _raw(value))
    return _special(shape.kind, _raw(value))


def _special(kind: str, data: bytes) -> Value:
    """Types that have a message in protobuf and a scalar in JSON."""
    parts = dict(_fields(data))
    match kind:
        case "time" | "microtime":
            return _time(parts, micro=kind == "microtime") if data else None
        case "quantity":
            return _text(_raw(parts.get(1, b""))) or "0"
        case "intstr":
            return _text(_raw(parts.get(3, b""))) if parts.get(1) else parts.get(2, 0)
        case "duration":
            nanoseconds = parts.get(1, 0)
            return f"{nanoseconds / 1e9:g}s" if isinstance(nanoseconds, int) else "0s"
    try:
        return msgspec.json.decode(_raw(parts[1])) if parts.get(1) else None
    except msgspec.DecodeError as error:
        raise DecodeError(str(error)) from error


def _time(parts: dict[int, int | bytes], *, micro: bool) -> str:
    seconds, nanoseconds = parts.get(1, 0), parts.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanoseconds, int):
        raise DecodeError("proto: wrong wireType")
    signed = seconds - (1 << 64) if seconds >= 1 << 63 else seconds
    try:
        moment = _EPOCH + timedelta(seconds=signed, microseconds=nanoseconds // 1000)
    except OverflowError as error:
        raise DecodeError("proto: a time out of range") from error
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")
