"""NRI's mux frames, without I/O: one socket carries several byte streams, told apart by a connection number.

A frame is `uint32 connection | uint32 length | length bytes`, big endian (containerd/nri, pkg/net/multiplex/mux.go).
What a frame carries is a piece of a stream: frame borders say nothing about message borders, so `Reader` hands pieces
on as they come and keeps nothing but the rest of a header. A hostile peer can make it hold 7 bytes.

Writing to a Go peer has two rules that no document tells:

- A frame may not be larger than the buffer that the peer happens to read into, or its connection dies of ENOMEM. At the
  start of a message that buffer is bufio's, 4096 bytes. Once the message's header is read, the rest is read straight
  into the message's own buffer if it is 4096 bytes or more, and through bufio's if it is less.
- The peer queues 256 frames of a connection; one more closes the socket.

So a message goes out as Go's own writer would cut it: at most 4096 bytes, then all the rest in one frame. Two frames at
most; with `calls.MAX_UNDER_WAY` messages under way the queue cannot overflow.
"""

from __future__ import annotations

import struct

from fishplate.errors import OutsideError

PLUGIN_SERVICE = 1  # the plugin serves, the runtime calls
RUNTIME_SERVICE = 2  # the runtime serves, the plugin calls

FIRST_FRAME = 4096  # bufio.NewReader's default size
# NRI v0.7 and later send at most a whole ttrpc message (10 + 4 MiB); v0.6 could send 16 MiB, but never has that much.
MAX_PAYLOAD = 10 + (4 << 20)

_HEADER = struct.Struct(">II")


class FrameError(OutsideError):
    """Bytes that cannot be a frame. The stream has lost its borders: only closing helps."""


def frame_message(connection: int, message: bytes) -> bytes:
    """A whole ttrpc message as the frames that a Go peer can read."""
    size = len(message)
    if size <= FIRST_FRAME:
        return _HEADER.pack(connection, size) + message
    head = _HEADER.pack(connection, FIRST_FRAME) + message[:FIRST_FRAME]
    return head + _HEADER.pack(connection, size - FIRST_FRAME) + message[FIRST_FRAME:]


class Reader:
    """Takes what the socket gives, in any pieces; gives (connection, piece). Pieces are views into what was fed."""

    def __init__(self) -> None:
        self._header = b""
        self._connection = 0
        self._left = 0

    def feed(self, data: bytes) -> list[tuple[int, memoryview]]:
        pieces: list[tuple[int, memoryview]] = []
        view = memoryview(data)
        at, end = 0, len(view)
        while at < end:
            if not self._left:
                at = self._read_header(view, at)
                continue
            stop = min(at + self._left, end)
            self._left -= stop - at
            pieces.append((self._connection, view[at:stop]))
            at = stop
        return pieces

    def _read_header(self, view: memoryview, at: int) -> int:
        stop = at + _HEADER.size - len(self._header)
        self._header += view[at:stop]
        if len(self._header) == _HEADER.size:
            self._connection, self._left = _HEADER.unpack(self._header)
            self._header = b""
            if self._left > MAX_PAYLOAD:
                raise FrameError(f"a frame of {self._left} bytes, where {MAX_PAYLOAD} is the most")
        return stop
