"""A small gRPC server on a unix socket: unary calls and server streaming, which is all that the kubelet asks for.

Why not grpcio: it takes 12 MB and eight threads of a process that may have 58 MB. Why not grpclib: it collects a
message of any announced length. The peers are programs of root (the socket's mode says so), but a broken one must not
take the driver's memory or time, so each thing a peer can make us hold has a bound: connections, calls, bytes of
requests, headers, frames that carry nothing (grpc_frames), and answers that it does not read (the handler then waits).

A call is over when its last words are written: by its handler, its deadline, the peer's reset or the end of the
connection, whichever is first. The handler's task is then cancelled, and counts until it has really ended.

What it refuses to do: compression, client streaming, metadata, TLS.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, NamedTuple

from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError

from fishplate.errors import FishplateError
from fishplate.wire import grpc_messages as messages
from fishplate.wire.grpc_connection import LINGER, MAX_STREAMS, Connection
from fishplate.wire.grpc_frames import EARNED_BY_ANSWER, Reason
from fishplate.wire.ttrpc import Code, StatusError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
    from pathlib import Path

    from h2.events import Event

__all__ = ["MAX_CONNECTIONS", "MAX_HELD", "MAX_MESSAGE", "REQUEST_S", "GrpcServer", "Method", "Streaming", "Unary"]

log = logging.getLogger(__name__)

MAX_MESSAGE = 1 << 20  # the kubelet sends a pod's claims, some hundred bytes each
MAX_HELD = 4 << 20  # bytes of requests, of all calls of a server together
MAX_CONNECTIONS = 32  # the kubelet has one, and one more for a moment
REQUEST_S = 10.0  # a request must be whole by then


class Unary(NamedTuple):
    handler: Callable[[bytes], Awaitable[bytes]]


class Streaming(NamedTuple):
    handler: Callable[[bytes], AsyncGenerator[bytes, None]]


Method = Unary | Streaming


class GrpcServer:
    """Methods by path (`/package.Service/Method`).

    A handler refuses with StatusError; what else it raises is answered with UNKNOWN.
    """

    def __init__(self, methods: Mapping[str, Method], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.methods = methods
        self.clock = clock
        self.held = 0  # bytes of requests
        self.tasks: set[asyncio.Task[None]] = set()
        self.connections: set[ServerConnection] = set()
        self._gone = asyncio.Event()  # no connection is left
        self._listener: asyncio.Server | None = None

    async def listen(self, path: Path) -> None:
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_unix_server(lambda: ServerConnection(self), path=str(path))

    async def stop(self, grace: float) -> None:
        """Take nothing new. Unary calls may finish within `grace` seconds; streams, which have no end, end at once."""
        if self._listener is not None:
            self._listener.close()
        for connection in list(self.connections):
            connection.drain()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while self.connections:
                    self._gone.clear()
                    await self._gone.wait()
        for connection in list(self.connections):
            connection.abort()
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=LINGER)

    def take_in(self, connection: ServerConnection) -> bool:
        """Whether there is room for one more; the one that has been idle for longest makes it."""
        if len(self.connections) >= MAX_CONNECTIONS:
            idle = min((one for one in self.connections if one.idle), key=lambda one: one.quiet_since, default=None)
            if idle is None:
                return False
            self.connections.discard(idle)
            idle.close(Reason.NO_ERROR, "too many connections")
        self.connections.add(connection)
        return True

    def leave(self, connection: ServerConnection) -> None:
        self.connections.discard(connection)
        self._gone.set()


class _Call:
    """A stream from its headers to its last words."""

    def __init__(self, method: Method | None, deadline: float | None) -> None:
        self.method = method
        self.deadline = deadline
        self.reader = messages.MessageReader(MAX_MESSAGE)
        self.request: bytes | None = None
        self.held = 0
        self.is_whole = False  # the peer has said all
        self.is_answering = False  # our headers are out
        self.timer: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None


class ServerConnection(Connection):
    def __init__(self, server: GrpcServer) -> None:
        super().__init__(client=False, clock=server.clock)
        self.quiet_since = server.clock()
        self._server = server
        self._calls: dict[int, _Call] = {}
        self._tasks = 0  # handlers that have not ended, also those of calls that are over
        self._draining = False

    @property
    def idle(self) -> bool:
        return not self._calls and not self._tasks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self._server.take_in(self):
            self.close(Reason.ENHANCE_YOUR_CALM, "too many connections")

    def on_lost(self, reason: str) -> None:
        for stream in list(self._calls):
            self._drop(stream)
        self._server.leave(self)

    def is_over(self, stream: int) -> bool:
        return stream not in self._calls

    def pause_writing(self) -> None:
        """The peer does not read: whatever it asked now, the answer would pile up here."""
        super().pause_writing()
        if self.transport is not None:
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def drain(self) -> None:
        """No new calls; those under way go on, but for streams."""
        self._draining = True
        self.say_goaway(Reason.NO_ERROR)
        for stream, call in list(self._calls.items()):
            if isinstance(call.method, Streaming):
                self._end(stream, Code.UNAVAILABLE, "the server is stopping")
        self._close_if_drained()

    def _close_if_drained(self) -> None:
        if self._draining and not self._calls:
            self.close(None)

    # The request.

    def on_event(self, event: Event) -> None:
        if isinstance(event, RequestReceived):
            self._open(event.stream_id, event.headers)
        elif isinstance(event, DataReceived):
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self._collect(event.stream_id, event.data)
        elif isinstance(event, StreamEnded):
            self._complete(event.stream_id)
        elif isinstance(event, StreamReset):
            self._drop(event.stream_id)

    def _open(self, stream: int, headers: messages.Headers) -> None:
        if self._draining or self._tasks >= MAX_STREAMS:
            self.reset(stream, Reason.REFUSED_STREAM)  # tells the peer that nothing was done, and that it may retry
            return
        now = asyncio.get_running_loop().time()
        try:
            head = messages.read_head(headers)
        except messages.HeadRefused as error:
            self._calls[stream] = _Call(None, None)
            self._end(stream, error.code, error.what, http=error.http)
            return
        deadline = None if head.timeout is None else now + head.timeout
        call = self._calls[stream] = _Call(self._server.methods.get(head.path), deadline)
        if call.method is None:
            self._end(stream, Code.UNIMPLEMENTED, f"unknown method {head.path}")
            return
        self._set_timer(stream, call, now + REQUEST_S if deadline is None else min(deadline, now + REQUEST_S))

    def _set_timer(self, stream: int, call: _Call, when: float | None) -> None:
        if call.timer is not None:
            call.timer.cancel()
        call.timer = None if when is None else asyncio.get_running_loop().call_at(when, self._expire, stream)

    def _expire(self, stream: int) -> None:
        call = self._calls.get(stream)
        late = "the call was not done in time" if call and call.is_whole else "the request did not come in time"
        self._end(stream, Code.DEADLINE_EXCEEDED, late)

    def _collect(self, stream: int, data: bytes) -> None:
        call = self._calls.get(stream)
        if call is None:
            return
        call.held += len(data)
        self._server.held += len(data)
        try:
            if self._server.held > MAX_HELD:
                raise StatusError(Code.RESOURCE_EXHAUSTED, f"requests of more than {MAX_HELD} bytes are under way")
            for message in call.reader.feed(data):
                if call.request is not None:
                    raise StatusError(Code.UNIMPLEMENTED, "more than one message in a request")
                call.request = message
        except StatusError as error:
            self._end(stream, error.code, error.what)

    def _complete(self, stream: int) -> None:
        call = self._calls.get(stream)
        if call is None:
            return
        call.is_whole = True
        if call.request is None or call.reader.held:
            self._end(stream, Code.INTERNAL, "the request ended before its message")
            return
        self._set_timer(stream, call, call.deadline)
        call.task = asyncio.get_running_loop().create_task(self._serve(stream, call, call.request))
        self._tasks += 1
        self._server.tasks.add(call.task)
        call.task.add_done_callback(lambda task: self._finish(stream, call, task))

    # The answer.

    async def _serve(self, stream: int, call: _Call, request: bytes) -> None:
        try:
            if isinstance(call.method, Unary):
                await self._answer(stream, call, await call.method.handler(request))
            elif isinstance(call.method, Streaming):
                async with contextlib.aclosing(call.method.handler(request)) as answers:
                    async for answer in answers:
                        await self._answer(stream, call, answer)
                        self.flush()
        except Exception as error:  # whatever a handler raises must become an answer
            if not self.is_over(stream):
                self._end(stream, *_describe(error))
        else:
            self._end(stream, Code.OK, "")

    async def _answer(self, stream: int, call: _Call, answer: bytes) -> None:
        if not call.is_answering and not self.is_over(stream):
            call.is_answering = True
            self.h2.send_headers(stream, messages.write_answer_head())
        await self.send(stream, messages.write_message(answer))
        self.gate.earn(EARNED_BY_ANSWER)

    def _end(self, stream: int, code: int, text: str, *, http: int = 200) -> None:
        """The last words of a call, unless they are said."""
        call = self._calls.get(stream)
        if call is None:
            return
        head = [] if call.is_answering else messages.write_answer_head(http)
        try:
            self.h2.send_headers(stream, head + messages.write_status(code, text), end_stream=True)
        except ProtocolError as error:
            log.debug("an answer had no stream any more: %s", error)
        if not call.is_whole:
            self.reset(stream, Reason.NO_ERROR)  # whatever the peer still wants to send, it need not
        self.gate.earn(EARNED_BY_ANSWER)
        self._drop(stream)
        self.flush()
        self._close_if_drained()

    def _drop(self, stream: int) -> None:
        """Nothing more will be said on this stream."""
        call = self._calls.pop(stream, None)
        if call is None:
            return
        if call.timer is not None:
            call.timer.cancel()
        self._server.held -= call.held
        if call.task is not None and call.task is not asyncio.current_task():
            call.task.cancel()
        self.quiet_since = self._server.clock()

    def _finish(self, stream: int, call: _Call, task: asyncio.Task[None]) -> None:
        """The handler's task has ended; one that was cancelled by its own doing has not answered."""
        self._tasks -= 1
        self._server.tasks.discard(task)
        if self._calls.get(stream) is call:
            self._end(stream, Code.CANCELLED, "the call was cancelled")


def _describe(error: Exception) -> tuple[int, str]:
    if isinstance(error, StatusError):
        return error.code, error.what
    if isinstance(error, FishplateError):
        return Code.UNKNOWN, str(error)
    log.error("a call failed", exc_info=error)
    return Code.UNKNOWN, f"internal error: {type(error).__name__}: {error}"
