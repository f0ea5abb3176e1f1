"""One HTTP/2 connection as an asyncio protocol, whichever end it is: `h2` between a gate and a transport.

`h2` knows the protocol and does no I/O. This adds the gate (see grpc_frames), what h2 leaves to its user (waiting for
the peer's windows, the bounds below), and an end that does not hang on a peer that reads nothing.

Invariants: everything that h2 wants to say is written before control goes back to the loop or a sender waits; nobody
waits for room on a connection that is gone; whatever goes wrong ends this connection and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RemoteSettingsChanged, WindowUpdated
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

from fishplate.wire.grpc_frames import MAX_BLOCK, MAX_FRAME, FrameGate, FrameRefused, Reason, encode_goaway

if TYPE_CHECKING:
    from collections.abc import Callable

    from h2.events import Event

    from fishplate.wire.grpc_frames import Goaway

log = logging.getLogger(__name__)

MAX_STREAMS = 100  # calls at once; grpc-go opens no more before it has read our settings
LINGER = 1.0  # seconds that a peer has to fetch our last words

_READ = 1 << 14  # bytes at once: what one turn of the loop may cost is bounded by it
_TABLE = 4096  # bytes of header compression state, ours and theirs; the default of RFC 7541


class _BoundedH2(H2Connection):
    """h2 remembers how each stream ended, 65,536 of them: some 10 MB for a kubelet that stays connected. The latest are
    enough to tell a late frame from a wrong one."""

    MAX_CLOSED_STREAMS = 256


class Connection(asyncio.BufferedProtocol):
    def __init__(self, *, client: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.h2 = _BoundedH2(
            H2Configuration(
                client_side=client,
                header_encoding=None,  # bytes: a peer's headers need not be text
                validate_outbound_headers=False,  # ours are right
                normalize_outbound_headers=False,
            )
        )
        limits = {SettingCodes.MAX_CONCURRENT_STREAMS: MAX_STREAMS, SettingCodes.MAX_HEADER_LIST_SIZE: MAX_BLOCK}
        self.h2.local_settings = Settings(client=client, initial_values={**limits, SettingCodes.ENABLE_PUSH: 0})
        self.h2.decoder.max_header_list_size = MAX_BLOCK
        self.gate = FrameGate(preface=not client, clock=clock)
        self.transport: asyncio.Transport | None = None
        self._buffer = bytearray(_READ)
        self._paused = False
        self._room: dict[int, asyncio.Future[None]] = {}  # stream → who waits to send on it
        self._left = False

    # What each end does in its own way.

    def on_event(self, event: Event) -> None:
        raise NotImplementedError

    def on_goaway(self, goaway: Goaway) -> None:
        """The peer will open no stream, or serve none above `last_stream`."""

    def on_lost(self, reason: str) -> None:
        raise NotImplementedError

    def is_over(self, stream: int) -> bool:
        """Whether nobody wants more on this stream."""
        raise NotImplementedError

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.h2.initiate_connection()
        self.flush()

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        try:
            self._receive(memoryview(self._buffer)[:nbytes])
        except FrameRefused as error:
            self.close(error.code, str(error))
        except ProtocolError as error:
            self.flush()  # h2 has written the GOAWAY
            self.close(None, str(error))
        except Exception as error:  # h2 and hpack on bytes that nobody has thought of
            log.warning("a connection is closed for bytes that we could not read: %r", error)
            self.close(Reason.PROTOCOL_ERROR, "unreadable")

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._wake()
        self.on_lost(str(exc or "the connection was closed"))

    # Receiving.

    def _receive(self, data: memoryview) -> None:
        events = self.h2.receive_data(self.gate.feed(data))
        for event in events:
            if isinstance(event, WindowUpdated):
                self._wake(event.stream_id)
            elif isinstance(event, RemoteSettingsChanged):
                # A peer may allow more; what we then remember would be for it to decide.
                if self.h2.encoder.header_table_size > _TABLE:
                    self.h2.encoder.header_table_size = _TABLE
                self._wake()
            else:
                self.on_event(event)
        if self.gate.goaway is not None and not self._left:
            self._left = True
            self.on_goaway(self.gate.goaway)
        self.flush()

    # Sending.

    def flush(self) -> None:
        data = self.h2.data_to_send()
        if data and self.transport is not None:
            self.transport.write(data)

    async def send(self, stream: int, data: bytes) -> None:
        """As fast as the peer allows. The last piece is not flushed, so that what follows can travel with it."""
        view = memoryview(data)
        while view:
            if self.transport is None or self.is_over(stream):
                raise ConnectionResetError("nobody listens any more")
            room = 0 if self._paused else min(self.h2.local_flow_control_window(stream), MAX_FRAME, len(view))
            if room <= 0:
                await self._wait_for_room(stream)
                continue
            self.h2.send_data(stream, view[:room])
            self.gate.earn(room / 1024)  # the peer must give us as much room again, in frames of its own
            view = view[room:]
            if view:
                self.flush()

    async def _wait_for_room(self, stream: int) -> None:
        self.flush()
        if self.transport is None:
            return
        waiting = self._room[stream] = asyncio.get_running_loop().create_future()
        try:
            await waiting
        finally:
            self._room.pop(stream, None)

    def _wake(self, stream: int = 0) -> None:
        for waiting in [self._room[stream]] if stream in self._room else ([] if stream else self._room.values()):
            if not waiting.done():
                waiting.set_result(None)

    def reset(self, stream: int, reason: Reason) -> None:
        with contextlib.suppress(ProtocolError):  # it is closed already
            self.h2.reset_stream(stream, reason)

    # The end.

    def close(self, code: int | None, text: str = "") -> None:
        """`code` None: the peer knows why. What was written is still sent, if the peer fetches it soon."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        if code is not None:
            self.say_goaway(code, text)
        if code != Reason.NO_ERROR and text:
            log.info("a gRPC connection is closed: %s", text)
        transport.close()
        if transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(LINGER, transport.abort)

    def say_goaway(self, code: int, text: str = "") -> None:
        """By hand: h2 says nothing more after its own, not even the answers to calls under way."""
        if self.transport is not None:
            self.flush()
            self.transport.write(encode_goaway(self.h2.highest_inbound_stream_id, code, text.encode()[:256]))

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()
