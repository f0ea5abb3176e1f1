"""Our gRPC client with servers that fail it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import Event, RequestReceived, StreamEnded, StreamReset

from fishplate.wire.grpc_client import MAX_ANSWER, Channel
from fishplate.wire.grpc_frames import Reason, encode_goaway
from fishplate.wire.grpc_messages import write_message
from fishplate.wire.ttrpc import Code, StatusError
from tests.raw_grpc import serving
from tests.recording import until

if TYPE_CHECKING:
    from pathlib import Path

HEAD = [(":status", "200"), ("content-type", "application/grpc")]
Say = Callable[[H2Connection, int], bytes | None]


class BadServer:
    """Answers each whole request with what `say` does; None closes the connection."""

    def __init__(self, say: Say) -> None:
        self.say = say
        self.events: list[Event] = []

    @contextlib.asynccontextmanager
    async def serve(self, path: Path) -> AsyncIterator[Channel]:
        server = await asyncio.start_unix_server(self._connection, str(path))
        async with server, Channel(path) as channel:
            yield channel

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        h2 = H2Connection(H2Configuration(client_side=False, validate_outbound_headers=False))
        h2.initiate_connection()
        with contextlib.closing(writer), contextlib.suppress(OSError):
            while True:
                writer.write(h2.data_to_send())
                data = await reader.read(1 << 16)
                if not data:
                    return
                for event in h2.receive_data(data):
                    self.events.append(event)
                    if isinstance(event, StreamEnded):
                        more = self.say(h2, event.stream_id)
                        if more is None:
                            return
                        writer.write(h2.data_to_send() + more)


def error_of(folder: Path, say: Say, *, timeout: float = 30.0) -> tuple[int, str, list[Event]]:
    async def test() -> tuple[int, str, list[Event]]:
        server = BadServer(say)
        async with server.serve(folder / "s.sock") as channel:
            with pytest.raises(StatusError) as caught:
                await channel.call("/t.T/Echo", b"question", timeout=timeout)
            if timeout < 1:
                await until(lambda: any(isinstance(event, StreamReset) for event in server.events))
        return caught.value.code, caught.value.what, server.events

    return asyncio.run(test())


def test_an_end_without_status_is_unknown(tmp_path: Path) -> None:
    def say(h2: H2Connection, stream: int) -> bytes:
        h2.send_headers(stream, HEAD)
        h2.send_data(stream, write_message(b"x"), end_stream=True)
        return b""

    assert error_of(tmp_path, say)[:2] == (Code.UNKNOWN, "the server ended without a status")


def test_another_http_status_is_unknown(tmp_path: Path) -> None:
    def say(h2: H2Connection, stream: int) -> bytes:
        h2.send_headers(stream, [(":status", "503")], end_stream=True)
        return b""

    assert error_of(tmp_path, say)[:2] == (Code.UNKNOWN, "HTTP status b'503'")


def test_two_answers_to_one_question_are_an_error(tmp_path: Path) -> None:
    def say(h2: H2Connection, stream: int) -> bytes:
        h2.send_headers(stream, HEAD)
        h2.send_data(stream, write_message(b"x") * 2)
        h2.send_headers(stream, [("grpc-status", "0")], end_stream=True)
        return b""

    assert error_of(tmp_path, say)[:2] == (Code.INTERNAL, "2 answers to one question")


def test_an_answer_that_is_too_long_is_refused_when_it_is_announced(tmp_path: Path) -> None:
    def say(h2: H2Connection, stream: int) -> bytes:
        h2.send_headers(stream, HEAD)
        h2.send_data(stream, b"\0" + (MAX_ANSWER + 1).to_bytes(4))
        return b""

    assert error_of(tmp_path, say)[0] == Code.RESOURCE_EXHAUSTED


def test_a_reset_is_told_apart_from_a_refusal(tmp_path: Path) -> None:
    def reset(h2: H2Connection, stream: int) -> bytes:
        h2.reset_stream(stream, Reason.ENHANCE_YOUR_CALM)
        return b""

    def refuse(h2: H2Connection, stream: int) -> bytes:
        h2.reset_stream(stream, Reason.REFUSED_STREAM)
        return b""

    assert error_of(tmp_path, reset)[0] == Code.CANCELLED
    assert error_of(tmp_path, refuse)[0] == Code.UNAVAILABLE


def test_a_connection_that_breaks_is_unavailable(tmp_path: Path) -> None:
    assert error_of(tmp_path, lambda h2, stream: None)[0] == Code.UNAVAILABLE
    assert error_of(tmp_path, lambda h2, stream: b"\xff" * 40)[0] == Code.UNAVAILABLE


def test_a_call_that_the_leaving_server_did_not_look_at_is_unavailable(tmp_path: Path) -> None:
    assert error_of(tmp_path, lambda h2, stream: encode_goaway(0, 0))[:2] == (
        Code.UNAVAILABLE,
        "the server is stopping",
    )


def test_a_deadline_ends_the_call_and_tells_the_server(tmp_path: Path) -> None:
    code, _, events = error_of(tmp_path, lambda h2, stream: b"", timeout=0.05)
    assert code == Code.DEADLINE_EXCEEDED
    (asked,) = [event for event in events if isinstance(event, RequestReceived)]
    assert dict(asked.headers)[b"grpc-timeout"] == b"50m"
    assert dict(asked.headers)[b":authority"] == b"localhost"
    assert [event.error_code for event in events if isinstance(event, StreamReset)] == [Reason.CANCEL]


def test_nobody_there_is_unavailable(tmp_path: Path) -> None:
    async def test() -> None:
        async with Channel(tmp_path / "nobody") as channel:
            with pytest.raises(StatusError, match="cannot connect") as caught:
                await channel.call("/t.T/Echo", b"", timeout=5)
            assert caught.value.code == Code.UNAVAILABLE

    asyncio.run(test())


def test_a_channel_finds_the_successor_of_its_server(tmp_path: Path) -> None:
    async def test() -> None:
        async with Channel(tmp_path / "s.sock") as channel:
            for _ in range(3):
                async with serving(tmp_path, grace=5):
                    assert await channel.call("/t.T/Echo", b"x", timeout=5) == b"x"

    asyncio.run(test())


def test_an_answer_before_the_whole_question_is_taken(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as (_, path, _), Channel(path) as channel:
            with pytest.raises(StatusError, match="unknown method") as caught:
                await channel.call("/t.T/Nothing", bytes(3 << 20), timeout=30)
            assert caught.value.code == Code.UNIMPLEMENTED

    asyncio.run(test())


def test_a_stream_that_nobody_reads_waits_at_the_server_and_holds_up_no_other_call(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as (_, path, service), Channel(path) as channel:
            async with contextlib.aclosing(channel.stream("/t.T/Count", b"")) as answers:
                await anext(answers)
                assert await channel.call("/t.T/Echo", b"x" * 500_000, timeout=10) == b"x" * 500_000
                assert service.produced * service.size < 3 * 65_536
            await until(lambda: service.counting == 0)

    asyncio.run(test())


def test_data_for_nobody_gives_its_room_back(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as (_, path, service), Channel(path) as channel:
            for _ in range(150):  # more than the connection's window in all
                service.produced = 0
                async with contextlib.aclosing(channel.stream("/t.T/Count", b"")) as answers:
                    await anext(answers)
                    await until(lambda: service.produced > 60)
                    assert await channel.call("/t.T/Echo", b"x", timeout=10) == b"x"  # what was sent before it is here

    asyncio.run(test())
