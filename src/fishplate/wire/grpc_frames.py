"""What of a peer's HTTP/2 frames may come in, without I/O (RFC 9113): the gate in front of the `h2` package.

h2 checks a frame when it is whole, so an announced 16 MiB would be collected first; it keeps every setting that it is
told, known or not; and frames that carry nothing (PING, RST_STREAM, empty DATA) cost it time and the peer nothing. So
bytes pass this gate first:

- a frame longer than `MAX_FRAME`, a header block longer than `MAX_BLOCK` and SETTINGS longer than `MAX_SETTINGS` are
  refused when their nine bytes of header are read;
- every frame costs a credit. A peer earns credits by letting itself be answered, by payload, and slowly by time. Who
  only talks runs out. grpc-go sends one PING for each message that it reads: that is far within.

GOAWAY does not pass: h2 would not speak on after it, though the calls under way shall be finished. It is read here.
"""

from __future__ import annotations

import enum
import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

PREFACE = 24  # bytes that a client sends before its first frame; h2 compares them
MAX_FRAME = 1 << 14  # payload; what a peer must keep to while we announce nothing else
MAX_BLOCK = 1 << 14  # one request's headers, compressed, HEADERS and CONTINUATION together
MAX_SETTINGS = 6 * 16  # six bytes a setting; RFC 9113 and its extensions know fewer than ten
CREDIT = 1000.0  # frames, at the start and at most
EARNED_BY_ANSWER = 10.0
SETTINGS_COST = 50.0  # h2 keeps settings it does not know: 20 frames of 16 are all that a connection can make it keep

_HEADER = struct.Struct(">BHBBI")  # length in two parts, type, flags, stream
_GOAWAY = struct.Struct(">II")
_END_HEADERS = 0x4


class Kind(enum.IntEnum):
    """Frame types that the gate tells apart."""

    DATA = 0x0
    HEADERS = 0x1
    SETTINGS = 0x4
    PUSH_PROMISE = 0x5
    GOAWAY = 0x7
    CONTINUATION = 0x9


class Reason(enum.IntEnum):
    """Error codes of RFC 9113, section 7, those that we send."""

    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    FRAME_SIZE_ERROR = 0x6
    REFUSED_STREAM = 0x7
    CANCEL = 0x8
    ENHANCE_YOUR_CALM = 0xB


class FrameRefused(Exception):
    """Bytes that end the connection; `code` is what GOAWAY shall say."""

    def __init__(self, code: int, what: str) -> None:
        super().__init__(what)
        self.code = code


class Goaway(NamedTuple):
    last_stream: int  # streams above were not looked at
    code: int


def encode_goaway(last_stream: int, code: int, text: bytes = b"") -> bytes:
    body = _GOAWAY.pack(last_stream, code) + text
    return _HEADER.pack(0, len(body), Kind.GOAWAY, 0, 0) + body


class FrameGate:
    """Takes pieces of one byte stream; gives what h2 shall see of it. `goaway` is set when the peer wants to leave."""

    def __init__(self, *, preface: bool, clock: Callable[[], float]) -> None:
        self.goaway: Goaway | None = None
        self._left = PREFACE if preface else 0  # bytes before the next frame's header
        self._head = bytearray()
        self._leaving: bytearray | None = None  # a GOAWAY that is coming in
        self._block = 0
        self._credit = CREDIT
        self._clock = clock
        self._at = clock()

    def feed(self, data: memoryview) -> bytes:
        """Raises FrameRefused."""
        passed = bytearray()
        at, end = 0, len(data)
        while at < end:
            if self._left:
                piece = data[at : at + self._left]
                self._left -= len(piece)
                if self._leaving is None:
                    passed += piece
                else:
                    self._leaving += piece
            else:
                piece = data[at : at + _HEADER.size - len(self._head)]
                self._head += piece
                if len(self._head) == _HEADER.size:
                    self._begin(passed)
            at += len(piece)
            if not self._left and self._leaving is not None:
                self._take_goaway()
        return bytes(passed)

    def earn(self, amount: float) -> None:
        self._credit = min(CREDIT, self._credit + amount)

    def _begin(self, passed: bytearray) -> None:
        """A frame's header is whole."""
        high, low, kind, flags, _ = _HEADER.unpack(self._head)
        length = high << 16 | low
        if length > MAX_FRAME:
            raise FrameRefused(Reason.FRAME_SIZE_ERROR, f"a frame of {length} bytes, where {MAX_FRAME} are allowed")
        if kind in (Kind.HEADERS, Kind.PUSH_PROMISE, Kind.CONTINUATION):
            self._count_block(length, ends=bool(flags & _END_HEADERS))
        elif kind == Kind.SETTINGS and length > MAX_SETTINGS:
            raise FrameRefused(Reason.ENHANCE_YOUR_CALM, f"settings of {length} bytes")
        self._charge(kind, length)
        self._left = length
        if kind == Kind.GOAWAY:
            self._leaving = bytearray()
        else:
            passed += self._head
        self._head.clear()

    def _count_block(self, length: int, *, ends: bool) -> None:
        self._block += length
        if self._block > MAX_BLOCK:
            raise FrameRefused(Reason.ENHANCE_YOUR_CALM, f"headers of more than {MAX_BLOCK} bytes")
        if ends:
            self._block = 0

    def _charge(self, kind: int, length: int) -> None:
        now = self._clock()
        self.earn(now - self._at)
        self._at = now
        if kind == Kind.DATA:
            self.earn(length / 1024)
        self._credit -= SETTINGS_COST if kind == Kind.SETTINGS else 1.0
        if self._credit < 0:
            raise FrameRefused(Reason.ENHANCE_YOUR_CALM, "too many frames for the calls made")

    def _take_goaway(self) -> None:
        body, self._leaving = self._leaving, None
        if body is None or len(body) < _GOAWAY.size:
            raise FrameRefused(Reason.FRAME_SIZE_ERROR, "a GOAWAY that is too short")
        last, code = _GOAWAY.unpack_from(body)
        self.goaway = Goaway(last & 0x7FFFFFFF, code)
