"""One NRI connection as an asyncio protocol: serves the calls of one side, makes the calls of the other.

A call is served inside the socket's own callback: read, decode, handler, encode, write, with no task in between. Only a
handler that returns an awaitable gets a task, and a deadline.

What it refuses to do: to hold what a peer does not fetch (while our answers are not read we serve and read nothing), to
run more than `calls.MAX_UNDER_WAY` handlers at once, and to let a failing handler be silent: every failure is answered
with an error status, which makes the runtime refuse the container.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, cast

from fishplate.errors import FishplateError, OutsideError
from fishplate.wire import mux, ttrpc
from fishplate.wire.calls import MAX_UNDER_WAY, Call, Incoming, Outgoing, Refusal
from fishplate.wire.ttrpc import Code, StatusError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

log = logging.getLogger(__name__)

# Of the time the caller waits, how much a handler may take: the answer must be there before the caller gives up.
HEADROOM = 0.8
LINGER = 1.0  # seconds that a peer has to fetch our last words


class Trunk(asyncio.Protocol):
    def __init__(
        self,
        *,
        serves_on: int,
        asks_on: int,
        serve: Callable[[ttrpc.Request], ttrpc.Served],
        on_lost: Callable[[str], None],
    ) -> None:
        self.patience: float | None = None  # seconds the other side waits, for calls that do not say
        self._serves_on = serves_on
        self._asks_on = asks_on
        self._serve = serve
        self._on_lost = on_lost
        self._reader = mux.Reader()
        self._incoming = Incoming()
        self._outgoing = Outgoing()
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._backlog: deque[Call | Refusal] = deque()
        self._paused = False
        self._transport: asyncio.Transport | None = None
        self._reason = "the other side closed the connection"

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            pieces = self._reader.feed(data)
        except mux.FrameError as error:
            self.close(str(error))
            return
        for connection, piece in pieces:
            if connection == self._serves_on:
                self._backlog.extend(self._incoming.feed(piece))
                self._serve_backlog()
            elif connection == self._asks_on:
                for answer in self._outgoing.feed(piece):
                    self._settle(answer.stream, answer.outcome)
            # Go drops frames of connections that nobody opened; so do we.

    def pause_writing(self) -> None:
        self._paused = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._paused = False
        self._serve_backlog()
        if self._transport is not None and not self._paused:
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._backlog.clear()
        if exc is not None:
            self._reason = str(exc)
        for task in self._under_way:
            task.cancel()
        for stream in list(self._waiting):
            self._settle(stream, OutsideError(f"the connection was closed before an answer came: {self._reason}"))
        self._on_lost(self._reason)

    # What we are asked.

    def _serve_backlog(self) -> None:
        """Serve until our answers are not fetched; what was read by then, one read of the socket at most, waits."""
        while self._backlog and not self._paused:
            found = self._backlog.popleft()
            if isinstance(found, Call):
                self._answer(found)
            else:
                self._send(self._serves_on, found.message)

    def _answer(self, call: Call) -> None:
        try:
            result = self._serve(call.request)
        except Exception as error:  # whatever a handler raises must become a refusal
            self._refuse(call, error)
            return
        if isinstance(result, bytes):
            self._send(self._serves_on, ttrpc.encode_answer(call.stream, result))
        else:
            self._start(call, result)

    def _start(self, call: Call, result: Coroutine[object, object, bytes]) -> None:
        if len(self._under_way) >= MAX_UNDER_WAY:
            result.close()
            self._refuse(call, StatusError(Code.RESOURCE_EXHAUSTED, f"{MAX_UNDER_WAY} calls are under way"))
            return
        task = asyncio.get_running_loop().create_task(self._finish(call, result))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _finish(self, call: Call, result: Coroutine[object, object, bytes]) -> None:
        wait = self.patience if call.request.timeout is None else call.request.timeout
        limit = None if wait is None else wait * HEADROOM
        timer = asyncio.timeout(limit)
        try:
            async with timer:
                payload = await result
        except Exception as error:  # as in _answer
            if isinstance(error, TimeoutError) and timer.expired():
                error = StatusError(Code.ABORTED, f"{call.request.method} was not done within {limit:.2g} s")
            self._refuse(call, error)
        else:
            self._send(self._serves_on, ttrpc.encode_answer(call.stream, payload))

    def _refuse(self, call: Call, error: Exception) -> None:
        if isinstance(error, StatusError):
            code, reason = error.code, error.what
        elif isinstance(error, FishplateError):
            code, reason = int(Code.UNKNOWN), str(error)
        else:
            log.error("%s failed", call.request.method, exc_info=error)
            code, reason = int(Code.UNKNOWN), f"internal error: {type(error).__name__}: {error}"
        self._send(self._serves_on, ttrpc.encode_refusal(call.stream, code, reason))

    # What we ask.

    async def call(self, service: str, method: str, payload: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109
        """The answer; StatusError for a refusal, OutsideError when none came. The peer is told of the timeout."""
        if self._transport is None:
            raise OutsideError(f"{method}: there is no connection")
        future = asyncio.get_running_loop().create_future()
        stream, message = self._outgoing.ask(ttrpc.Request(service, method, payload, timeout))
        self._waiting[stream] = future
        try:
            self._send(self._asks_on, message)
            async with asyncio.timeout(timeout):
                return cast("bytes", await future)
        except TimeoutError:
            raise OutsideError(f"{method}: no answer within {timeout:g} s") from None
        finally:
            self._waiting.pop(stream, None)
            self._outgoing.forget(stream)

    def _settle(self, stream: int, outcome: bytes | Exception) -> None:
        future = self._waiting.pop(stream, None)
        if future is None or future.done():
            return
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    def _send(self, connection: int, message: bytes) -> None:
        if self._transport is not None:
            self._transport.write(mux.frame_message(connection, message))

    def close(self, reason: str) -> None:
        """What was written is still sent, if the peer fetches it soon; `on_lost` follows, with this reason."""
        if self._transport is not None and not self._transport.is_closing():
            self._reason = reason
            self._transport.close()
            if self._transport.get_write_buffer_size():
                asyncio.get_running_loop().call_later(LINGER, self._transport.abort)
