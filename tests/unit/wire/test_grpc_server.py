"""The gRPC server with a peer that keeps the rules: calls, statuses, deadlines, windows, cancellation, the end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest
from h2.events import DataReceived, StreamReset
from h2.settings import SettingCodes

from fishplate.errors import OutsideError
from fishplate.wire.grpc_client import MAX_CALLS, Channel
from fishplate.wire.grpc_frames import Reason
from fishplate.wire.grpc_messages import write_message
from fishplate.wire.grpc_server import MAX_MESSAGE, GrpcServer
from fishplate.wire.ttrpc import Code
from tests.raw_grpc import RawPeer, Service, serving, transport_of
from tests.recording import until

if TYPE_CHECKING:
    from pathlib import Path

Body = Callable[[GrpcServer, RawPeer, Service], Awaitable[None]]


def run(folder: Path, body: Body, *, grace: float = 0.0) -> None:
    async def test() -> None:
        async with serving(folder, grace=grace) as (server, path, service), RawPeer.connect(path) as peer:
            await body(server, peer, service)

    asyncio.run(test())


def test_a_call_is_answered_with_head_message_and_status(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        assert await peer.answer(peer.ask(b"hello")) == ("200", 0, "", [b"hello"], None, False)

    run(tmp_path, body)


@pytest.mark.parametrize(
    "authority",
    ["localhost", "%2Fvar%2Flib%2Fkubelet%2Fplugins_registry%2Fdra.net-reg.sock", "/var/run/x.sock", "a b", ""],
)
def test_any_authority_is_served(tmp_path: Path, authority: str) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        assert (await peer.answer(peer.ask(b"x", authority=authority))).messages == [b"x"]

    run(tmp_path, body)


def test_an_unknown_method_is_unimplemented_with_trailers_only(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        answer = await peer.answer(peer.ask(b"x", path="/t.T/Nothing%"))
        assert (answer.http, answer.code, answer.text) == ("200", 12, "unknown method /t.T/Nothing%25")
        assert answer.only_trailers
        assert (await peer.answer(peer.ask(b"and on it goes"))).code == 0

    run(tmp_path, body)


def test_what_is_not_grpc_is_refused_by_http_status(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        answer = await peer.answer(peer.ask(b"x", content_type="text/html"))
        assert (answer.http, answer.code, answer.only_trailers) == ("415", 3, True)
        assert (await peer.answer(peer.ask(b"x", content_type=None))).http == "415"
        assert (await peer.answer(peer.ask(b"x", method="PUT"))).http == "405"
        assert (await peer.answer(peer.ask(b"x", grpc_timeout="soon"))).code == Code.INTERNAL

    run(tmp_path, body)


def test_what_a_handler_raises_becomes_a_status(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        refused = await peer.answer(peer.ask("50 % für".encode(), path="/t.T/Refuse"))
        assert (refused.code, refused.text) == (9, "50 %25 f%C3%BCr")
        service.failure = OutsideError("no claim", where="ns/nic")
        failed = await peer.answer(peer.ask(b"", path="/t.T/Fail"))
        assert (failed.code, failed.text) == (2, "ns/nic: no claim")
        assert not caplog.records
        service.failure = ZeroDivisionError("oh")
        failed = await peer.answer(peer.ask(b"", path="/t.T/Fail"))
        assert (failed.code, failed.text) == (2, "internal error: ZeroDivisionError: oh")
        assert "a call failed" in caplog.text
        service.failure = asyncio.CancelledError()
        assert (await peer.answer(peer.ask(b"", path="/t.T/Fail"))).code == Code.CANCELLED

    run(tmp_path, body)


def test_a_request_without_a_message_or_with_two_is_refused(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        for data, code in [(b"", 13), (b"\0\0", 13), (b"\0\0\0\0\5half", 13), (write_message(b"a") * 2, 12)]:
            stream = peer.ask(None)
            peer.h2.send_data(stream, data, end_stream=True)
            peer.flush()
            assert (await peer.answer(stream)).code == code
        stream = peer.ask(None)
        peer.h2.send_data(stream, write_message(b"whole") + b"\0", end_stream=True)
        peer.flush()
        assert (await peer.answer(stream)).code == Code.INTERNAL

    run(tmp_path, body)


def test_a_compressed_request_is_unimplemented(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        stream = peer.ask(None, grpc_encoding="gzip")
        peer.h2.send_data(stream, b"\1\0\0\0\3abc", end_stream=True)
        peer.flush()
        assert (await peer.answer(stream)).code == Code.UNIMPLEMENTED
        assert (await peer.answer(peer.ask(b"plain", grpc_encoding="gzip"))).messages == [b"plain"]

    run(tmp_path, body)


@pytest.mark.parametrize("size", [0, 1, 16_379, 16_380, 65_530, 65_531, MAX_MESSAGE - 1, MAX_MESSAGE])
def test_messages_of_every_allowed_size_go_both_ways(tmp_path: Path, size: int) -> None:
    async def test() -> None:
        async with serving(tmp_path) as (_, path, _), Channel(path) as channel:
            sent = bytes(index % 251 for index in range(1000)) * (size // 1000 + 1)
            assert await channel.call("/t.T/Echo", sent[:size], timeout=30) == sent[:size]

    asyncio.run(test())


def test_a_longer_message_is_refused_when_it_is_announced(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        stream = peer.ask(None)
        peer.h2.send_data(stream, b"\0" + (MAX_MESSAGE + 1).to_bytes(4) + b"begins")
        peer.flush()
        answer = await peer.answer(stream)
        assert (answer.code, answer.only_trailers) == (Code.RESOURCE_EXHAUSTED, True)
        await peer.wait(StreamReset, stream=stream)  # it need not send the rest
        assert server.held == 0
        assert (await peer.answer(peer.ask(b"x"))).code == 0

    run(tmp_path, body)


def test_many_calls_at_once_each_get_their_own_answer(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as (server, path, service), Channel(path) as channel:
            waits = [asyncio.create_task(channel.call("/t.T/Wait", b"", timeout=30)) for _ in range(MAX_CALLS // 2)]
            await until(lambda: service.waiting == MAX_CALLS // 2)
            asked = [b"%d" % number * 100 for number in range(500)]
            assert await asyncio.gather(*(channel.call("/t.T/Echo", one, timeout=30) for one in asked)) == asked
            service.go_on.set()
            assert set(await asyncio.gather(*waits)) == {b"done"}
            assert len(server.connections) == 1

    asyncio.run(test())


def test_a_deadline_cancels_the_handler_and_is_told(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        answer = await peer.answer(peer.ask(b"", path="/t.T/Wait", grpc_timeout="20m"))
        assert (answer.code, answer.text) == (Code.DEADLINE_EXCEEDED, "the call was not done in time")
        await until(lambda: service.waiting == 0)
        assert service.cancelled == 1
        assert (await peer.answer(peer.ask(b"x", grpc_timeout="10S"))).code == 0

    run(tmp_path, body)


def test_a_deadline_is_kept_by_a_handler_that_does_not_listen(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        service.deaf = True
        answer = await peer.answer(peer.ask(b"", path="/t.T/Wait", grpc_timeout="20m"))
        assert answer.code == Code.DEADLINE_EXCEEDED
        assert service.waiting == 1
        service.go_on.set()
        await until(lambda: not server.tasks)
        await peer.ping()
        assert (await peer.answer(peer.ask(b"x"))).code == 0

    run(tmp_path, body)


def test_a_deadline_ends_a_stream_in_the_middle(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        stream = peer.ask(b"", path="/t.T/Count", grpc_timeout="50m")
        answer = await peer.answer(stream)
        assert (answer.code, answer.only_trailers) == (Code.DEADLINE_EXCEEDED, False)
        await until(lambda: service.counting == 0)

    run(tmp_path, body)


def test_a_reset_cancels_the_handler(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        waits, counts = peer.ask(b"", path="/t.T/Wait"), peer.ask(b"", path="/t.T/Count")
        await peer.wait(DataReceived, stream=counts)
        await until(lambda: service.waiting == 1)
        for stream in (waits, counts):
            peer.h2.reset_stream(stream, Reason.CANCEL)
        peer.flush()
        await until(lambda: not server.tasks)
        assert (service.waiting, service.cancelled, service.counting) == (0, 1, 0)

    run(tmp_path, body)


def test_a_lost_connection_cancels_its_handlers(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        peer.ask(b"", path="/t.T/Wait")
        peer.ask(b"half", path="/t.T/Echo", end=False)
        await until(lambda: service.waiting == 1)
        peer.writer.close()
        await until(lambda: not server.tasks and not server.connections)
        assert service.cancelled == 1
        assert server.held == 0

    run(tmp_path, body)


def test_a_stream_gives_all_its_messages_and_ends_well(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as (_, path, service), Channel(path) as channel:
            service.size = 5000
            answers = [answer async for answer in channel.stream("/t.T/Count", b"300")]
            assert [int(answer.rstrip(b"\0")) for answer in answers] == list(range(1, 301))

    asyncio.run(test())


def test_a_reader_that_gives_no_window_stops_the_producer(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        peer.h2.acknowledge_received_data = lambda *_: None  # type: ignore[method-assign]
        stream = peer.ask(b"", path="/t.T/Count")
        received = 0
        while received < 65_535:
            await peer.read()
            received = sum(len(event.data) for event in peer.events if isinstance(event, DataReceived))
        await peer.ping()
        assert received == 65_535
        assert service.produced <= 66
        produced = service.produced
        peer.h2.increment_flow_control_window(10_000, stream)
        peer.h2.increment_flow_control_window(10_000)
        peer.flush()
        await until(lambda: service.produced > produced)
        assert service.produced <= produced + 10

    run(tmp_path, body)


def test_a_window_of_the_settings_counts(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        peer.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
        stream = peer.ask(b"x" * 100)
        await peer.ping()
        assert not [event for event in peer.events if isinstance(event, DataReceived)]
        peer.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 50})
        await peer.ping()
        assert sum(len(event.data) for event in peer.events if isinstance(event, DataReceived)) == 50
        peer.h2.increment_flow_control_window(1000, stream)
        peer.flush()
        assert (await peer.answer(stream)).messages == [b"x" * 100]

    run(tmp_path, body)


def test_a_reader_that_reads_nothing_stops_the_producer(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        service.size = 10_000
        peer.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: (1 << 31) - 1})
        peer.h2.increment_flow_control_window((1 << 31) - 1 - 65_535)
        peer.ask(b"", path="/t.T/Count")
        transport = await transport_of(server)
        await until(lambda: not transport.is_reading())
        produced = service.produced
        for _ in range(100):
            await asyncio.sleep(0)
        assert service.produced == produced
        assert transport.get_write_buffer_size() < 200_000
        while service.produced < produced + 100:  # it goes on when we read again
            await peer.reader.read(1 << 16)

    run(tmp_path, body)


def test_an_idle_connection_stays_and_a_ping_is_answered(tmp_path: Path) -> None:
    async def body(server: GrpcServer, peer: RawPeer, service: Service) -> None:
        for _ in range(20):
            await peer.ping()
        assert (await peer.answer(peer.ask(b"x"))).code == 0
        assert len(server.connections) == 1

    run(tmp_path, body)


def test_thousands_of_calls_leave_nothing_on_their_connection(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as (server, path, _), Channel(path) as channel:
            for number in range(3000):
                assert await channel.call("/t.T/Echo", b"x", timeout=30) == b"x"
                if number == 1000:
                    gc.collect()
                    before = len(gc.get_objects())
            gc.collect()
            assert len(gc.get_objects()) - before < 200
            (connection,) = server.connections
            assert len(connection.h2._closed_streams) <= 256

    asyncio.run(test())


def test_a_thousand_connections_leave_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as (server, path, _):
            for number in range(1000):
                async with Channel(path) as channel:
                    assert await channel.call("/t.T/Echo", b"x", timeout=30) == b"x"
                if number == 100:
                    await until(lambda: not server.connections)
                    gc.collect()
                    before = len(gc.get_objects())
            await until(lambda: not server.connections)
            gc.collect()
            assert len(gc.get_objects()) - before < 200

    asyncio.run(test())
