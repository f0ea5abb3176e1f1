"""The gRPC server with peers that break rules, waste or hold: only their connection suffers, and memory is bounded."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest
from h2.events import StreamEnded
from h2.settings import SettingCodes
from hpack import Encoder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fishplate.wire import grpc_server
from fishplate.wire.grpc_client import Channel
from fishplate.wire.grpc_connection import MAX_STREAMS
from fishplate.wire.grpc_frames import MAX_BLOCK, MAX_FRAME, Reason
from fishplate.wire.grpc_server import MAX_CONNECTIONS, MAX_HELD, MAX_MESSAGE, GrpcServer
from fishplate.wire.ttrpc import Code
from tests.raw_grpc import HEAD, PREFACE, RawPeer, Service, frame, request_frames, serving
from tests.recording import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Body = Callable[[GrpcServer, RawPeer, Service], Awaitable[None]]
HELLO = PREFACE + frame(4)


def run(folder: Path, body: Body, *, hello: bool = True) -> None:
    """Another connection is there all the time, and must go on."""

    async def test() -> None:
        async with serving(folder) as (server, path, service), Channel(path) as friend:
            assert await friend.call("/t.T/Echo", b"before", timeout=30) == b"before"
            async with RawPeer.connect(path, hello=hello) as peer:
                await body(server, peer, service)
                assert await friend.call("/t.T/Echo", b"after", timeout=30) == b"after"

    asyncio.run(test())


async def other(server: GrpcServer) -> grpc_server.ServerConnection:
    """The connection that is not the friend's."""
    await until(lambda: len(server.connections) == 2)
    return max(server.connections, key=lambda one: one.quiet_since)


def request_headers() -> bytes:
    return Encoder().encode(list(HEAD.items()))


@pytest.mark.parametrize(
    "bytes_sent",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0" * 100,
        PREFACE + frame(0, b"data before settings", stream=1),
        HELLO + frame(1, b"\xff" * 50, flags=0x5, stream=1),  # no HPACK
        HELLO + frame(1, b"", flags=0x5, stream=1),  # no headers
        HELLO + frame(1, request_headers(), flags=0x5, stream=2),  # a number of ours
        HELLO + frame(1, request_headers(), flags=0x5, stream=0),
        HELLO + frame(5, struct.pack(">I", 2) + request_headers(), flags=0x4, stream=1),  # PUSH_PROMISE
        HELLO + frame(9, b"", flags=0x4, stream=1),  # CONTINUATION of nothing
        HELLO + frame(1, request_headers(), stream=1) + frame(6, bytes(8)),  # something within a header block
        HELLO + frame(6, bytes(7)),
        HELLO + frame(8, struct.pack(">I", 0x7FFFFFFF)),  # a window that overflows
        HELLO + frame(8, struct.pack(">I", 0)),
        HELLO + frame(4, struct.pack(">HI", 4, 0x80000000)),
        HELLO + frame(3, bytes(4), stream=7),  # a reset of nothing
        HELLO + frame(1, request_headers(), flags=0x4 | 0x8, stream=1),  # padding that is not there
    ],
)
def test_what_is_no_http2_ends_that_connection_alone(tmp_path: Path, bytes_sent: bytes) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        peer.flush(bytes_sent)
        if bytes_sent.startswith(HELLO + frame(3, bytes(4), stream=7)):
            peer.writer.write_eof()  # harmless: h2 passes over it
        while await peer.reader.read(1 << 16):
            pass
        await until(lambda: len(server.connections) == 1)

    run(tmp_path, body, hello=False)


def test_an_announced_frame_of_16_mib_is_refused_at_once(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        peer.flush(frame(0, stream=1, length=(1 << 24) - 1))
        assert await peer.goaway() == Reason.FRAME_SIZE_ERROR

    run(tmp_path, body)


def test_a_flood_of_continuations_is_refused(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        peer.flush(frame(1, bytes(1000), stream=1) + frame(9, bytes(1000), stream=1) * (MAX_BLOCK // 1000))
        assert await peer.goaway() == Reason.ENHANCE_YOUR_CALM

    run(tmp_path, body)


DEFAULT = 64 << 10  # what h2 takes when nobody says otherwise


def test_headers_that_grow_when_they_are_unpacked_are_refused(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        encoder = Encoder()
        large = encoder.encode([*HEAD.items(), ("x-bomb", "b" * 3000)])
        again = encoder.encode([("x-bomb", "b" * 3000)]) * 8  # a byte or two each
        assert len(large + again) < MAX_BLOCK < 9 * 3000 < DEFAULT
        peer.flush(frame(1, large + again, flags=0x5, stream=1))
        assert await peer.goaway() == Reason.ENHANCE_YOUR_CALM

    run(tmp_path, body)


def test_rapid_resets_end_the_connection_and_leave_no_handler(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        encoder = Encoder()
        for number in range(1000):
            stream = 2 * number + 1
            peer.flush(request_frames(encoder, stream, path="/t.T/Wait") + frame(3, bytes(4), stream=stream))
        assert await peer.goaway() == Reason.ENHANCE_YOUR_CALM
        await until(lambda: not server.tasks)
        assert service.waiting == 0

    run(tmp_path, body)


def test_a_flood_of_pings_ends_the_connection(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        peer.flush(frame(6, bytes(8)) * 2000)
        assert await peer.goaway() == Reason.ENHANCE_YOUR_CALM

    run(tmp_path, body)


def test_settings_that_nobody_knows_do_not_pile_up(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        connection = await other(server)
        for first in range(100, 60_000, 16):
            peer.flush(frame(4, b"".join(struct.pack(">HI", first + more, 1) for more in range(16))))
        assert await peer.goaway() == Reason.ENHANCE_YOUR_CALM
        assert len(connection.h2.remote_settings) < 500

    run(tmp_path, body)


def test_a_peer_cannot_make_us_remember_headers(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        connection = await other(server)
        peer.h2.update_settings({SettingCodes.HEADER_TABLE_SIZE: (1 << 32) - 1})
        for number in range(100):
            assert (await peer.answer(peer.ask(b"", path=f"/nothing/{number}/{'x' * 200}"))).code == 12
        assert connection.h2.encoder.header_table_size == 4096
        assert connection.h2.encoder.header_table._current_size <= 4096

    run(tmp_path, body)


def test_more_calls_at_once_than_announced_end_the_connection(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        encoder = Encoder()
        for number in range(MAX_STREAMS + 1):
            peer.flush(request_frames(encoder, 2 * number + 1, path="/t.T/Wait"))
        await peer.goaway()
        await until(lambda: not server.tasks)

    run(tmp_path, body)


def test_handlers_that_do_not_end_count_though_their_calls_are_over(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        service.deaf = True
        for number in range(MAX_STREAMS):
            stream = peer.ask(b"", path="/t.T/Wait")
            await until(lambda number=number: service.waiting == number + 1)  # type: ignore[misc]
            peer.h2.reset_stream(stream, Reason.CANCEL)
            peer.flush()
        assert (await peer.answer(peer.ask(b"x"))).reset == Reason.REFUSED_STREAM
        service.go_on.set()
        await until(lambda: not server.tasks)
        assert (await peer.answer(peer.ask(b"x"))).code == 0

    run(tmp_path, body)


def test_who_asks_and_never_reads_is_not_served_on(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        transport = (await other(server)).transport
        assert transport is not None
        encoder, stream = Encoder(), 1
        while transport.is_reading():
            # Refusals: they wait for no window.
            peer.flush(b"".join(request_frames(encoder, stream + 2 * number, path="/no/such") for number in range(50)))
            stream += 100
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(peer.writer.drain(), 0.01)
            assert transport.get_write_buffer_size() < 100_000
        assert not transport.is_closing()
        peer.writer.transport.abort()
        await until(lambda: len(server.connections) == 1)

    run(tmp_path, body)


def test_requests_that_do_not_end_are_bounded_in_memory(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        begun = b"\0" + MAX_MESSAGE.to_bytes(4)
        streams, most = list[int](), 0
        for _ in range(2 * MAX_HELD // MAX_MESSAGE):
            stream = peer.ask(None)
            streams.append(stream)
            left = begun + bytes(MAX_MESSAGE - 1000)
            while left and not any(isinstance(one, StreamEnded) and one.stream_id == stream for one in peer.events):
                room = min(peer.h2.local_flow_control_window(stream), MAX_FRAME)
                if room:
                    peer.h2.send_data(stream, left[:room])
                    left = left[room:]
                    peer.flush()
                await peer.ping()
                most = max(most, server.held)
        assert MAX_HELD - MAX_MESSAGE < most <= MAX_HELD + MAX_FRAME
        assert (await peer.answer(streams[-1])).code == Code.RESOURCE_EXHAUSTED
        peer.h2.reset_stream(streams[0], Reason.CANCEL)
        assert (await peer.answer(peer.ask(b"x"))).code == 0

    run(tmp_path, body)


def test_a_request_that_does_not_come_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_server, "REQUEST_S", 0.05)

    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        answer = await peer.answer(peer.ask(b"half", end=False))
        assert (answer.code, answer.text) == (Code.DEADLINE_EXCEEDED, "the request did not come in time")
        assert server.held == 0

    run(tmp_path, body)


def test_a_window_that_overflows_ends_its_call_alone(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        stream = peer.ask(b"", path="/t.T/Wait")
        await until(lambda: service.waiting == 1)
        peer.flush(frame(8, struct.pack(">I", 0x7FFFFFFF), stream=stream))
        assert (await peer.answer(stream)).reset == 3
        await until(lambda: service.waiting == 0)
        assert (await peer.answer(peer.ask(b"x"))).code == 0

    run(tmp_path, body)


def test_the_longest_idle_connection_makes_room_for_a_new_one(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as (server, path, _), contextlib.AsyncExitStack() as stack:
            peers = [await stack.enter_async_context(RawPeer.connect(path)) for _ in range(MAX_CONNECTIONS)]
            for peer in peers:
                assert (await peer.answer(peer.ask(b"x"))).code == 0
            assert (await peers[0].answer(peers[0].ask(b"I am used"))).code == 0
            new = await stack.enter_async_context(RawPeer.connect(path))
            assert (await new.answer(new.ask(b"x"))).code == 0
            assert await peers[1].goaway() == Reason.NO_ERROR
            assert len(server.connections) == MAX_CONNECTIONS
            assert (await peers[0].answer(peers[0].ask(b"x"))).code == 0

    asyncio.run(test())


def test_a_connection_too_many_is_refused_when_all_are_busy(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as (server, path, service), contextlib.AsyncExitStack() as stack:
            for _ in range(MAX_CONNECTIONS):
                (await stack.enter_async_context(RawPeer.connect(path))).ask(b"", path="/t.T/Wait")
            await until(lambda: service.waiting == MAX_CONNECTIONS)
            new = await stack.enter_async_context(RawPeer.connect(path))
            assert await new.goaway() == Reason.ENHANCE_YOUR_CALM
            assert len(server.connections) == MAX_CONNECTIONS

    asyncio.run(test())


# One server for all examples: what an earlier one has done to it, a later one would show.
@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Path]]:
    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        folder = tmp_path_factory.mktemp("victim")
        _, path, _ = runner.run(stack.enter_async_context(serving(folder)))
        yield runner, path
        runner.run(stack.aclose())


kinds = st.integers(0, 12)
streams = st.sampled_from([0, 1, 1, 1, 3, 5, 2, 0x7FFFFFFF])
payloads = st.one_of(
    st.binary(max_size=60),
    st.just(request_headers()),
    st.builds(bytes.__add__, st.just(request_headers()), st.binary(max_size=8)),
    st.builds(lambda text: b"\0" + len(text).to_bytes(4) + text, st.binary(max_size=20)),
    st.builds(lambda value: struct.pack(">I", value), st.integers(0, (1 << 32) - 1)),
    st.builds(
        lambda pairs: b"".join(struct.pack(">HI", *pair) for pair in pairs),
        st.lists(st.tuples(st.integers(0, 10), st.integers(0, (1 << 32) - 1)), max_size=5),
    ),
)
frame_lists = st.lists(
    st.builds(
        lambda kind, payload, flags, stream: frame(kind, payload, flags=flags, stream=stream),
        kinds,
        payloads,
        st.sampled_from([0, 1, 4, 5, 5, 8, 13, 32, 255]),
        streams,
    ),
    max_size=12,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.one_of(
        st.binary(max_size=300),
        st.builds(bytes.__add__, st.just(HELLO), st.binary(max_size=300)),
        st.builds(lambda frames: HELLO + b"".join(frames), frame_lists),
    )
)
def test_no_bytes_harm_the_server(
    victim: tuple[asyncio.Runner, Path], caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    runner, path = victim

    async def attack() -> None:
        async with RawPeer.connect(path, hello=False) as peer:
            peer.writer.write(data)
            peer.writer.write_eof()
            with contextlib.suppress(OSError):
                while await peer.reader.read(1 << 16):
                    pass
        async with Channel(path) as channel:
            assert await channel.call("/t.T/Echo", b"well", timeout=30) == b"well"

    runner.run(attack())
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
