"""One connection over a real socket pair: order, limits, deadlines, and peers that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import TYPE_CHECKING

import pytest

from fishplate.errors import OutsideError
from fishplate.wire import ttrpc
from fishplate.wire.calls import MAX_UNDER_WAY
from fishplate.wire.mux import MAX_PAYLOAD, frame_message
from fishplate.wire.trunk import Trunk
from fishplate.wire.ttrpc import Code, Request, StatusError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

SERVED, ASKED = 1, 2


class Ends:
    """A trunk, and the raw other end of its socket."""

    def __init__(self, trunk: Trunk, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.trunk = trunk
        self.reader = reader
        self.writer = writer
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def request(self, stream: int, method: str = "M", *, timeout: float | None = None) -> None:
        message = ttrpc.encode_request(stream, Request("s", method, b"", timeout))
        self.writer.write(frame_message(SERVED, message))

    async def answer(self) -> tuple[int, bytes | int]:
        """The number of the next answer, and its payload or code."""
        reader = ttrpc.Reader()
        while not (found := reader.feed(memoryview(await self._frame()))):
            pass
        [message] = found
        assert message.payload is not None
        try:
            return message.stream, ttrpc.decode_response(message.payload)
        except StatusError as error:
            return message.stream, error.code

    async def _frame(self) -> bytes:
        _, length = struct.unpack(">II", await self.reader.readexactly(8))
        return await self.reader.readexactly(length)


@contextlib.asynccontextmanager
async def connected(serve: Callable[[Request], ttrpc.Served]) -> AsyncIterator[Ends]:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_unix_connection(sock=theirs, limit=4096)
    trunk = Trunk(serves_on=SERVED, asks_on=ASKED, serve=serve, on_lost=lambda why: ends.lost.set_result(why))
    ends = Ends(trunk, reader, writer)
    await asyncio.get_running_loop().create_unix_connection(lambda: trunk, sock=ours)
    try:
        yield ends
    finally:
        trunk.close("the test is over")
        await ends.lost
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def echo(request: Request) -> bytes:
    return request.method.encode()


def test_calls_are_answered_in_order_while_they_come_in() -> None:
    async def test() -> None:
        async with connected(echo) as ends:
            for stream, method in ((1, "a"), (3, "b"), (5, "c")):
                ends.request(stream, method)
            assert [await ends.answer() for _ in range(3)] == [(1, b"a"), (3, b"b"), (5, b"c")]

    asyncio.run(test())


def test_frames_of_a_connection_nobody_opened_are_dropped() -> None:
    async def test() -> None:
        async with connected(echo) as ends:
            ends.writer.write(frame_message(7, b"x" * 5000))
            ends.request(1)
            assert await ends.answer() == (1, b"M")

    asyncio.run(test())


def test_a_frame_that_cannot_be_closes_the_connection() -> None:
    async def test() -> None:
        async with connected(echo) as ends:
            ends.writer.write(struct.pack(">II", 1, MAX_PAYLOAD + 1))
            assert "a frame of 4194315 bytes" in await ends.lost

    asyncio.run(test())


def test_a_message_too_long_is_refused_and_the_next_is_served() -> None:
    async def test() -> None:
        async with connected(echo) as ends:
            huge = struct.pack(">IIBB", 5 << 20, 1, 1, 0) + bytes(5 << 20)
            for at in range(0, len(huge), 1 << 20):
                ends.writer.write(frame_message(SERVED, huge[at : at + (1 << 20)]))
                await ends.writer.drain()
            ends.request(3)
            assert await ends.answer() == (1, Code.RESOURCE_EXHAUSTED)
            assert await ends.answer() == (3, b"M")

    asyncio.run(test())


def test_an_awaitable_holds_up_nobody() -> None:
    async def test() -> None:
        release = asyncio.Event()

        async def slow() -> bytes:
            await release.wait()
            return b"slow"

        async with connected(lambda request: slow() if request.method == "slow" else b"quick") as ends:
            ends.request(1, "slow")
            ends.request(3, "quick")
            assert await ends.answer() == (3, b"quick")
            release.set()
            assert await ends.answer() == (1, b"slow")

    asyncio.run(test())


@pytest.mark.parametrize(("told", "patience"), [(0.05, None), (None, 0.05), (0.05, 60.0)])
def test_an_awaitable_is_cancelled_and_refused_before_the_caller_gives_up(
    told: float | None, patience: float | None
) -> None:
    async def test() -> None:
        cancelled = asyncio.Event()

        async def never() -> bytes:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return b""

        async with connected(lambda _: never()) as ends:
            ends.trunk.patience = patience
            ends.request(1, timeout=told)
            assert await ends.answer() == (1, Code.ABORTED)
            assert cancelled.is_set()

    asyncio.run(test())


def test_a_timeout_of_the_handlers_own_is_its_own_failure() -> None:
    async def test() -> None:
        async def fail() -> bytes:
            raise TimeoutError("of the handler's own")

        async with connected(lambda _: fail()) as ends:
            ends.request(1, timeout=9.0)
            assert await ends.answer() == (1, Code.UNKNOWN)

    asyncio.run(test())


def test_more_awaitables_than_agreed_are_refused() -> None:
    async def test() -> None:
        async def never() -> bytes:
            await asyncio.Event().wait()
            return b""

        async with connected(lambda _: never()) as ends:
            for number in range(MAX_UNDER_WAY + 1):
                ends.request(2 * number + 1)
            assert await ends.answer() == (2 * MAX_UNDER_WAY + 1, Code.RESOURCE_EXHAUSTED)

    asyncio.run(test())


def test_a_peer_that_does_not_read_is_not_served_until_it_does() -> None:
    """Answers would pile up without end: a small request can have a large answer."""

    async def test() -> None:
        served, began = 0, asyncio.Event()

        def serve(request: Request) -> bytes:
            nonlocal served
            served += 1
            began.set()
            return bytes(1 << 20)

        async with connected(serve) as ends:
            asks = 40
            for number in range(asks):
                ends.request(2 * number + 1)
            await began.wait()
            for _ in range(50):
                await asyncio.sleep(0)
            assert served <= 2
            for _ in range(asks):
                await ends.answer()
            assert served == asks

    asyncio.run(test())


def test_closing_does_not_wait_for_a_peer_that_does_not_read() -> None:
    async def test() -> None:
        began = asyncio.Event()

        def serve(request: Request) -> bytes:
            began.set()
            return bytes(4_000_000)

        async with connected(serve) as ends:
            ends.request(1)
            await began.wait()
            ends.trunk.close("enough")
            assert await asyncio.wait_for(ends.lost, 20) == "enough"

    asyncio.run(test())


def test_a_lost_connection_fails_who_waits_and_cancels_what_runs() -> None:
    async def test() -> None:
        cancelled = asyncio.Event()

        async def never() -> bytes:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return b""

        async with connected(lambda _: never()) as ends:
            ends.request(1)
            call = asyncio.create_task(ends.trunk.call("s", "Waiting", b"", timeout=30))
            await ends.reader.readexactly(8)  # the question is out
            ends.writer.close()
            with pytest.raises(OutsideError, match="closed before an answer came"):
                await call
            await cancelled.wait()
            assert await ends.lost == "the other side closed the connection"
            with pytest.raises(OutsideError, match="no connection"):
                await ends.trunk.call("s", "Late", b"", timeout=30)

    asyncio.run(test())


def test_a_call_that_nobody_answers_ends() -> None:
    async def test() -> None:
        async with connected(echo) as ends:
            with pytest.raises(OutsideError, match=r"Waiting: no answer within 0\.05 s"):
                await ends.trunk.call("s", "Waiting", b"", timeout=0.05)

    asyncio.run(test())
