"""ttrpc's messages, without I/O (containerd/ttrpc, PROTOCOL.md): header, limits, status codes, request and response.

A message is `uint32 length | uint32 stream | uint8 type | uint8 flags`, big endian, then `length` bytes. NRI makes
unary calls only: a request with flags 0, a response with flags 0. There is no handshake, no ping and no flow control.

`Reader` holds at most one message, 4 MiB and its header. A longer one is skipped while it comes in and reported once,
with its header, so that it can be answered; the bytes are never kept.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Coroutine
from typing import NamedTuple

from google.protobuf.message import DecodeError

from fishplate.errors import OutsideError
from fishplate.wire.proto import ttrpc_pb2 as pb

MAX_LENGTH = 4 << 20

_HEADER = struct.Struct(">IIBB")


class Kind(enum.IntEnum):
    REQUEST = 1
    RESPONSE = 2
    DATA = 3


class Code(enum.IntEnum):
    """gRPC's codes, which ttrpc has too."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class StatusError(OutsideError):
    """A call that the other side refused; also raised by those who serve, to refuse."""

    def __init__(self, code: int, message: str, *, where: str = "") -> None:
        super().__init__(message, where=where)
        self.code = code


class Message(NamedTuple):
    """A tuple, since one is made for every call. `payload` is None for a message that was too long."""

    stream: int
    kind: int
    flags: int
    length: int
    payload: bytes | None


# What serving a request gives: the answer's payload, now or later.
Served = bytes | Coroutine[object, object, bytes]


class Request(NamedTuple):
    service: str
    method: str
    payload: bytes
    timeout: float | None  # seconds


def encode_message(stream: int, kind: Kind, payload: bytes) -> bytes:
    if len(payload) > MAX_LENGTH:
        raise StatusError(Code.RESOURCE_EXHAUSTED, describe_oversize(len(payload)))
    return _HEADER.pack(len(payload), stream, kind, 0) + payload


def encode_request(stream: int, request: Request) -> bytes:
    nano = 0 if request.timeout is None else max(1, int(request.timeout * 1e9))
    envelope = pb.Request(service=request.service, method=request.method, payload=request.payload, timeout_nano=nano)
    return encode_message(stream, Kind.REQUEST, envelope.SerializeToString())


def encode_answer(stream: int, payload: bytes) -> bytes:
    """A success. An answer too long to send becomes the error that says so."""
    response = pb.Response(payload=payload)
    response.status.SetInParent()  # Go always sends a status, empty for OK
    try:
        return encode_message(stream, Kind.RESPONSE, response.SerializeToString())
    except StatusError as error:
        return encode_refusal(stream, error.code, error.what)


def encode_refusal(stream: int, code: int, message: str) -> bytes:
    status = pb.Status(code=code, message=message.encode("utf-8", "replace")[:_MAX_TEXT].decode("utf-8", "ignore"))
    return encode_message(stream, Kind.RESPONSE, pb.Response(status=status).SerializeToString())


_MAX_TEXT = 16 << 10  # a reason is read by people


def decode_request(payload: bytes) -> Request:
    """Raises StatusError for bytes that are no request."""
    try:
        envelope = pb.Request.FromString(payload)
    except DecodeError as error:
        raise StatusError(Code.INVALID_ARGUMENT, f"unmarshal request error: {error}") from error
    timeout = envelope.timeout_nano / 1e9 if envelope.timeout_nano > 0 else None
    return Request(envelope.service, envelope.method, envelope.payload, timeout)


def decode_response(payload: bytes) -> bytes:
    """What was answered; raises StatusError for a refusal and for bytes that are no response."""
    try:
        envelope = pb.Response.FromString(payload)
    except DecodeError as error:
        raise StatusError(Code.INTERNAL, f"unmarshal response error: {error}") from error
    if envelope.status.code != Code.OK:
        raise StatusError(envelope.status.code, envelope.status.message)
    return envelope.payload


def describe_oversize(length: int) -> str:
    return f"message length {length} exceed maximum message size of {MAX_LENGTH}"


class Reader:
    """Takes pieces of one byte stream, gives whole messages."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._skip = 0

    @property
    def held(self) -> int:
        """Bytes kept for a message that is not whole yet."""
        return len(self._held)

    def feed(self, piece: memoryview) -> list[Message]:
        messages: list[Message] = []
        if self._skip:
            skipped = min(self._skip, len(piece))
            self._skip -= skipped
            piece = piece[skipped:]
        if not self._held:
            # The common case: a piece holds whole messages, and nothing is copied but their payloads.
            self._held += piece[self._take(piece, messages) :]
            return messages
        self._held += piece
        with memoryview(self._held) as view:
            taken = self._take(view, messages)
        del self._held[:taken]
        return messages

    def _take(self, view: memoryview, messages: list[Message]) -> int:
        """Append what is whole; how many bytes are dealt with."""
        at, end = 0, len(view)
        while end - at >= _HEADER.size:
            length, stream, kind, flags = _HEADER.unpack_from(view, at)
            start = at + _HEADER.size
            if length > MAX_LENGTH:
                at = min(start + length, end)
                self._skip = start + length - at
                messages.append(Message(stream, kind, flags, length, None))
                continue
            if start + length > end:
                break
            at = start + length
            messages.append(Message(stream, kind, flags, length, bytes(view[start:at])))
        return at
