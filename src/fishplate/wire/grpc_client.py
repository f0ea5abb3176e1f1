"""The other end of grpc_server: one connection, any number of calls, deadlines; for the simulation and for tests.

A connection that is lost, or whose server is leaving, is not used again: the next call makes a new one. A call is never
made twice.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING

from h2.events import DataReceived, ResponseReceived, StreamEnded, StreamReset, TrailersReceived
from h2.exceptions import ProtocolError

from fishplate.wire import grpc_messages as messages
from fishplate.wire.grpc_connection import LINGER, Connection
from fishplate.wire.grpc_frames import EARNED_BY_ANSWER, Reason
from fishplate.wire.ttrpc import Code, StatusError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from h2.events import Event

    from fishplate.wire.grpc_frames import Goaway

MAX_CALLS = 64  # at once; more wait
MAX_ANSWER = 4 << 20  # bytes of a message; what grpc's own clients take

_BACKLOG = 16  # messages of a stream that wait for whoever reads it; then the server waits
_WINDOW = (
    MAX_CALLS << 16
)  # bytes of the connection: as many as its streams together, so that one does not hold up others


class Channel:
    """A server's socket.

    async with Channel(path) as channel:
        answer = await channel.call("/package.Service/Method", request, timeout=5)
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: _ClientConnection | None = None
        self._connecting = asyncio.Lock()
        self._slots = asyncio.Semaphore(MAX_CALLS)

    async def __aenter__(self) -> Channel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.leave()

    async def call(self, path: str, request: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109
        """The one answer; StatusError for anything else."""
        timer = asyncio.timeout(timeout)
        try:
            async with timer:
                answers = [answer async for answer in self.stream(path, request, timeout=timeout)]
        except TimeoutError:
            raise StatusError(Code.DEADLINE_EXCEEDED, f"no answer within {timeout:g} s") from None
        if len(answers) != 1:
            raise StatusError(Code.INTERNAL, f"{len(answers)} answers to one question")
        return answers[0]

    async def stream(
        self,
        path: str,
        request: bytes,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the server is told; `call` enforces it
    ) -> AsyncGenerator[bytes, None]:
        """Answers until the server ends them; StatusError when it does so with another status than OK."""
        async with self._slots:
            connection = await self._connect()
            asked = connection.ask(path, timeout)
            try:
                await connection.finish_asking(asked, messages.write_message(request))
                while (answer := await connection.next_answer(asked)) is not None:
                    yield answer
            finally:
                connection.forget(asked)

    async def _connect(self) -> _ClientConnection:
        async with self._connecting:
            if self._connection is None or not self._connection.is_usable:
                loop = asyncio.get_running_loop()
                try:
                    _, self._connection = await loop.create_unix_connection(_ClientConnection, path=str(self._path))
                except OSError as error:
                    raise StatusError(Code.UNAVAILABLE, f"cannot connect: {error}", where=str(self._path)) from error
            return self._connection


class _Asked:
    """A call of ours."""

    def __init__(self, stream: int) -> None:
        self.stream = stream
        self.reader = messages.MessageReader(MAX_ANSWER)
        self.answers: deque[bytes] = deque()
        self.outcome: tuple[int, str] | None = None  # the status, once there is one
        self.is_asked = False  # we have said all
        self.has_ended = False  # the server has, or will not
        self.unread = 0  # bytes whose room the server has not got back
        self.changed = asyncio.Event()

    def end(self, code: int, text: str) -> None:
        """What the server said first stays."""
        if self.outcome is None:
            self.outcome = code, text
        self.has_ended = True
        self.changed.set()


class _ClientConnection(Connection):
    def __init__(self) -> None:
        super().__init__(client=True)
        self._asked: dict[int, _Asked] = {}
        self._lost = asyncio.Event()
        self._leaving = False

    @property
    def is_usable(self) -> bool:
        return self.transport is not None and not self.transport.is_closing() and not self._leaving

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.h2.increment_flow_control_window(_WINDOW)
        self.flush()

    async def leave(self) -> None:
        self.close(Reason.NO_ERROR)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2 * LINGER):
                await self._lost.wait()

    def on_lost(self, reason: str) -> None:
        for asked in self._asked.values():
            asked.end(Code.UNAVAILABLE, reason)
        self._lost.set()

    def on_goaway(self, goaway: Goaway) -> None:
        self._leaving = True
        for asked in self._asked.values():
            if asked.stream > goaway.last_stream:
                asked.end(Code.UNAVAILABLE, "the server is stopping")

    def is_over(self, stream: int) -> bool:
        asked = self._asked.get(stream)
        return asked is None or asked.has_ended

    # Asking.

    def ask(self, path: str, timeout: float | None) -> _Asked:
        asked = _Asked(self.h2.get_next_available_stream_id())
        try:
            self.h2.send_headers(asked.stream, messages.write_head(path, timeout))
        except ProtocolError as error:
            raise StatusError(Code.UNAVAILABLE, str(error)) from error
        self._asked[asked.stream] = asked
        return asked

    async def finish_asking(self, asked: _Asked, request: bytes) -> None:
        # A server may answer before it has heard all, and then hear no more.
        with contextlib.suppress(ProtocolError, ConnectionResetError):
            await self.send(asked.stream, request)
            self.h2.end_stream(asked.stream)
            asked.is_asked = True
        self.flush()

    async def next_answer(self, asked: _Asked) -> bytes | None:
        """None at the end, if it was a good one."""
        while not asked.answers and not asked.has_ended:
            asked.changed.clear()
            await asked.changed.wait()
        if asked.answers:
            answer = asked.answers.popleft()
            self._give_room(asked)
            return answer
        code, text = asked.outcome or (Code.UNKNOWN, "the server ended without a status")
        if code != Code.OK:
            raise StatusError(code, text)
        return None

    def forget(self, asked: _Asked) -> None:
        del self._asked[asked.stream]
        asked.answers.clear()
        self._give_room(asked)  # the connection's, which others need
        if not asked.has_ended or not asked.is_asked:
            self.reset(asked.stream, Reason.CANCEL)
            self.flush()

    # What is answered.

    def on_event(self, event: Event) -> None:
        if isinstance(event, DataReceived):
            self._collect(event)
            return
        stream = getattr(event, "stream_id", None)
        asked = self._asked.get(stream) if isinstance(stream, int) else None
        if asked is None:
            return
        if isinstance(event, ResponseReceived | TrailersReceived):
            asked.outcome = messages.read_status(event.headers) or asked.outcome
            if isinstance(event, ResponseReceived) and dict(event.headers).get(b":status") != b"200":
                asked.outcome = asked.outcome or (Code.UNKNOWN, f"HTTP status {dict(event.headers)[b':status']!r}")
        elif isinstance(event, StreamEnded):
            self.gate.earn(EARNED_BY_ANSWER)
            asked.end(Code.UNKNOWN, "the server ended without a status")
        elif isinstance(event, StreamReset):
            refused = event.error_code == Reason.REFUSED_STREAM
            asked.end(
                Code.UNAVAILABLE if refused else Code.CANCELLED, f"the server reset the call ({event.error_code})"
            )
        self._wake(asked.stream)

    def _collect(self, event: DataReceived) -> None:
        asked = self._asked.get(event.stream_id)
        if asked is None or asked.has_ended:
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            return
        asked.unread += event.flow_controlled_length
        try:
            found = asked.reader.feed(event.data)
        except StatusError as error:
            asked.end(error.code, error.what)
            self.reset(asked.stream, Reason.CANCEL)
            found = []
        asked.answers.extend(found)
        if found:
            self.gate.earn(EARNED_BY_ANSWER)
            asked.changed.set()
        self._give_room(asked)

    def _give_room(self, asked: _Asked) -> None:
        if asked.unread and len(asked.answers) < _BACKLOG and self.transport is not None:
            self.h2.acknowledge_received_data(asked.unread, asked.stream)
            asked.unread = 0
            self.flush()
