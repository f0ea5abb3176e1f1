"""Unary ttrpc calls over one byte stream, without I/O: `Incoming` serves, `Outgoing` asks.

Rules of containerd/ttrpc (server.go, client.go): streams opened by a client are odd and strictly increase; an answer
carries the number of its request; what breaks a rule is answered with InvalidArgument on the number it came with, and
the connection goes on. Types nobody knows are ignored.
"""

from __future__ import annotations

from typing import NamedTuple

from fishplate.errors import OutsideError
from fishplate.wire import ttrpc
from fishplate.wire.ttrpc import Code, Kind, StatusError

# Calls that one side may have open. The peer queues 256 frames and a message is two: see mux.py.
MAX_UNDER_WAY = 64


class Call(NamedTuple):
    """A request to serve."""

    stream: int
    request: ttrpc.Request


class Refusal(NamedTuple):
    """A request that must not be served; `message` is the whole answer, ready to send."""

    message: bytes


class Incoming:
    """The serving side of a stream."""

    def __init__(self) -> None:
        self._reader = ttrpc.Reader()
        self._last = 0

    def feed(self, piece: memoryview) -> list[Call | Refusal]:
        found: list[Call | Refusal] = []
        for message in self._reader.feed(piece):
            try:
                call = self._admit(message)
            except StatusError as error:
                found.append(Refusal(ttrpc.encode_refusal(message.stream, error.code, error.what)))
            else:
                if call is not None:
                    found.append(call)
        return found

    def _admit(self, message: ttrpc.Message) -> Call | None:
        if message.payload is None:
            raise StatusError(Code.RESOURCE_EXHAUSTED, ttrpc.describe_oversize(message.length))
        if message.stream % 2 != 1:
            raise StatusError(Code.INVALID_ARGUMENT, "StreamID must be odd for client initiated streams")
        if message.kind == Kind.DATA:
            raise StatusError(Code.INVALID_ARGUMENT, "StreamID is no longer active")
        if message.kind != Kind.REQUEST:
            return None
        if message.stream <= self._last:
            raise StatusError(Code.INVALID_ARGUMENT, "StreamID cannot be re-used and must increment")
        self._last = message.stream
        return Call(message.stream, ttrpc.decode_request(message.payload))


class Answer(NamedTuple):
    """What came back for `stream`: bytes, or why not."""

    stream: int
    outcome: bytes | StatusError


class Outgoing:
    """The asking side of a stream. It knows which numbers are open; an answer to no question is dropped."""

    def __init__(self) -> None:
        self._reader = ttrpc.Reader()
        self._next = 1
        self._open: set[int] = set()

    def ask(self, request: ttrpc.Request) -> tuple[int, bytes]:
        """The number and the message of a new call; the caller sends messages in the order it got them."""
        if len(self._open) >= MAX_UNDER_WAY:
            raise OutsideError(f"{MAX_UNDER_WAY} calls are under way and none is answered", remedy="wait for answers")
        stream = self._next
        message = ttrpc.encode_request(stream, request)
        self._next += 2
        self._open.add(stream)
        return stream, message

    def forget(self, stream: int) -> None:
        """Nobody waits for this answer any more."""
        self._open.discard(stream)

    def feed(self, piece: memoryview) -> list[Answer]:
        answers: list[Answer] = []
        for message in self._reader.feed(piece):
            if message.stream in self._open:
                self._open.discard(message.stream)
                answers.append(Answer(message.stream, _read_answer(message)))
        return answers


def _read_answer(message: ttrpc.Message) -> bytes | StatusError:
    if message.payload is None:
        return StatusError(Code.RESOURCE_EXHAUSTED, ttrpc.describe_oversize(message.length))
    if message.kind != Kind.RESPONSE:
        return StatusError(Code.INTERNAL, f"an answer of type {message.kind}, where a response was due")
    try:
        return ttrpc.decode_response(message.payload)
    except StatusError as error:
        return error
