"""gRPC as it is written into HTTP/2, without I/O (grpc/grpc, doc/PROTOCOL-HTTP2.md): heads, messages, statuses.

A message is `uint8 compressed | uint32 length`, big endian, then `length` bytes. A request is a head and messages; an
answer is a head, messages and a status in the trailers, or a status alone. We compress nothing and take nothing
compressed.

`MessageReader` holds what has come of one message and no more; the announced length is checked before anything is kept.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes

from fishplate.wire.ttrpc import Code, StatusError

if TYPE_CHECKING:
    from collections.abc import Iterable

Headers = list[tuple[bytes, bytes]]

MAX_TEXT = 2 << 10  # bytes of a status' text before encoding: it is read by people, and a peer's header space is short

_PREFIX = struct.Struct(">BI")
_CONTENT_TYPE = b"application/grpc"
_TIMEOUT = re.compile(rb"([0-9]{1,8})([HMSmun])")
_UNITS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}


class Head(NamedTuple):
    """What a request's headers say that matters here. Who asks for which host is not looked at."""

    path: str
    timeout: float | None  # seconds


class HeadRefused(StatusError):
    """A request that is not gRPC; `http` is the HTTP status for it."""

    def __init__(self, http: int, code: Code, message: str) -> None:
        super().__init__(code, message)
        self.http = http


def read_head(headers: Iterable[tuple[bytes, bytes]]) -> Head:
    """Raises HeadRefused."""
    fields = dict(headers)
    if fields.get(b":method") != b"POST":
        raise HeadRefused(405, Code.INTERNAL, "a gRPC call is a POST")
    kind = fields.get(b"content-type", b"")
    if kind[: len(_CONTENT_TYPE)] != _CONTENT_TYPE or kind[len(_CONTENT_TYPE) :][:1] not in (b"", b"+", b";"):
        raise HeadRefused(415, Code.INVALID_ARGUMENT, "the content type is not application/grpc")
    path = fields.get(b":path", b"").decode("utf-8", "replace")
    return Head(path, _read_timeout(fields.get(b"grpc-timeout")))


def _read_timeout(text: bytes | None) -> float | None:
    if text is None:
        return None
    found = _TIMEOUT.fullmatch(text)
    if found is None:
        raise HeadRefused(200, Code.INTERNAL, "malformed grpc-timeout")
    return int(found[1]) * _UNITS[found[2]]


def write_head(path: str, timeout: float | None) -> Headers:
    headers = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", path.encode()),
        (b":authority", b"localhost"),  # what grpc-go says for a unix: target
        (b"te", b"trailers"),
        (b"content-type", _CONTENT_TYPE),
    ]
    if timeout is not None:
        headers.append((b"grpc-timeout", b"%dm" % min(99_999_999, max(1, round(timeout * 1000)))))
    return headers


def write_answer_head(http: int = 200) -> Headers:
    return [(b":status", b"%d" % http), (b"content-type", _CONTENT_TYPE)]


def write_status(code: int, text: str) -> Headers:
    status = [(b"grpc-status", b"%d" % code)]
    if text:
        status.append((b"grpc-message", _quote(text)))
    return status


def read_status(headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str] | None:
    """None where there is no status: then more comes, or should have come."""
    fields = dict(headers)
    number = fields.get(b"grpc-status")
    if number is None:
        return None
    text = unquote_to_bytes(fields.get(b"grpc-message", b"")).decode("utf-8", "replace")
    return (int(number) if number.isdigit() and len(number) < 4 else int(Code.UNKNOWN)), text


def _quote(text: str) -> bytes:
    """Printable ASCII stays, but the percent sign; all else is %XX of its UTF-8. HTTP forbids spaces at the ends."""
    cut = text.encode("utf-8", "replace")[:MAX_TEXT].decode("utf-8", "ignore").strip().encode()
    return b"".join(b"%c" % byte if 0x20 <= byte <= 0x7E and byte != 0x25 else b"%%%02X" % byte for byte in cut)


def write_message(payload: bytes) -> bytes:
    return _PREFIX.pack(0, len(payload)) + payload


class MessageReader:
    """Takes pieces of one stream's data; gives whole messages."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()

    @property
    def held(self) -> int:
        """Bytes kept for a message that is not whole yet."""
        return len(self._held)

    def feed(self, piece: bytes) -> list[bytes]:
        """Raises StatusError for a message that is too long or compressed."""
        self._held += piece
        messages: list[bytes] = []
        at = 0
        while len(self._held) - at >= _PREFIX.size:
            flag, length = _PREFIX.unpack_from(self._held, at)
            if flag:
                raise StatusError(Code.UNIMPLEMENTED, "messages may not be compressed")
            if length > self._limit:
                raise StatusError(
                    Code.RESOURCE_EXHAUSTED, f"a message of {length} bytes, where {self._limit} are allowed"
                )
            start = at + _PREFIX.size
            if len(self._held) < start + length:
                break
            at = start + length
            messages.append(bytes(self._held[start:at]))
        del self._held[:at]
        return messages
