"""A gRPC peer that can say anything: h2 where it helps, frames by hand where h2 would refuse; and a server for it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import struct
from typing import TYPE_CHECKING, NamedTuple

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    DataReceived,
    Event,
    PingAckReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)

from fishplate.wire.grpc_frames import FrameGate
from fishplate.wire.grpc_messages import MessageReader, write_message
from fishplate.wire.grpc_server import GrpcServer, Streaming, Unary
from fishplate.wire.ttrpc import StatusError
from tests.recording import until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from pathlib import Path

    from hpack import Encoder

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_PATIENCE_S = 15.0  # for the next bytes; a server that keeps silent fails the test and does not hang it
HEAD = {
    ":method": "POST",
    ":scheme": "http",
    ":path": "/t.T/Echo",
    ":authority": "localhost",
    "te": "trailers",
    "content-type": "application/grpc",
}


def frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream: int = 0, length: int | None = None) -> bytes:
    """A frame by hand; `length` is what it claims."""
    return (
        struct.pack(">I", len(payload) if length is None else length)[1:]
        + bytes([kind, flags])
        + struct.pack(">I", stream)
        + payload
    )


def request_frames(encoder: Encoder, stream: int, payload: bytes = b"x", *, path: str = "/t.T/Echo") -> bytes:
    """A whole request, whatever the peer thinks of its streams."""
    block = encoder.encode(list({**HEAD, ":path": path}.items()))
    message = write_message(payload)
    return frame(1, block, flags=0x4, stream=stream) + frame(0, message, flags=0x1, stream=stream)


class Answer(NamedTuple):
    http: str
    code: int | None  # None: reset
    text: str
    messages: list[bytes]
    reset: int | None
    only_trailers: bool


class RawPeer:
    """A connection to a server. Nothing is read unless it is asked for."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        config = H2Configuration(client_side=True, validate_outbound_headers=False, normalize_outbound_headers=False)
        self.h2 = H2Connection(config)
        # h2 would take a GOAWAY for the end; the calls under way go on.
        self.gate = FrameGate(preface=False, clock=itertools.count(step=1e9).__next__)
        self.events: list[Event] = []
        self.is_closed = False

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, path: Path, *, hello: bool = True) -> AsyncIterator[RawPeer]:
        peer = cls(*await asyncio.open_unix_connection(str(path)))
        if hello:
            peer.h2.initiate_connection()
            peer.flush()
        try:
            yield peer
        finally:
            peer.writer.close()
            with contextlib.suppress(OSError):
                await peer.writer.wait_closed()

    def flush(self, more: bytes = b"") -> None:
        self.writer.write(self.h2.data_to_send() + more)

    def ask(self, data: bytes | None = b"", *, end: bool = True, **headers: str | None) -> int:
        """Begin a call; `data` is put into one message. Underscores of names become dashes, `path` is :path."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        fields = {**HEAD, **{f":{name}" if f":{name}" in HEAD else name: value for name, value in given.items()}}
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, [(name, value) for name, value in fields.items() if value is not None])
        if data is not None:
            self.h2.send_data(stream, write_message(data), end_stream=end)
        self.flush()
        return stream

    async def read(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                data = await self.reader.read(1 << 16)
        except TimeoutError:
            raise  # it is an OSError too
        except OSError:
            data = b""
        self.is_closed = not data
        events = self.h2.receive_data(self.gate.feed(memoryview(data)))
        for event in events:
            if isinstance(event, DataReceived):
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        self.events += events
        self.flush()

    async def wait(self, *kinds: type[Event], stream: int = 0) -> Event:
        """The first event of these kinds, of `stream` if given; raises EOFError when the connection ends before."""
        while True:
            for event in self.events:
                if isinstance(event, kinds) and (not stream or getattr(event, "stream_id", None) == stream):
                    return event
            if self.is_closed:
                raise EOFError
            await self.read()

    async def answer(self, stream: int) -> Answer:
        await self.wait(StreamEnded, StreamReset, stream=stream)
        http, fields, reset, heads = "", dict[bytes, bytes](), None, 0
        reader, messages = MessageReader(64 << 20), list[bytes]()
        for event in self.events:
            if getattr(event, "stream_id", None) != stream:
                continue
            if isinstance(event, ResponseReceived | TrailersReceived):
                heads += 1
                fields |= dict(event.headers)
                http = fields[b":status"].decode()
            elif isinstance(event, DataReceived):
                messages += reader.feed(event.data)
            elif isinstance(event, StreamReset):
                reset = int(event.error_code)
        code = int(fields[b"grpc-status"]) if b"grpc-status" in fields else None
        return Answer(http, code, fields.get(b"grpc-message", b"").decode(), messages, reset, heads == 1)

    async def goaway(self) -> int:
        """Reads to the end of the connection; the code that the server gave for it."""
        while not self.is_closed:
            await self.read()
        assert self.gate.goaway is not None
        return self.gate.goaway.code

    async def ping(self) -> None:
        """Back when the server has dealt with all that was sent before."""
        self.events = [event for event in self.events if not isinstance(event, PingAckReceived)]
        self.h2.ping(b"12345678")
        self.flush()
        await self.wait(PingAckReceived)


class Service:
    """What the server does in these tests."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()  # what Wait waits for
        self.waiting = 0
        self.cancelled = 0
        self.deaf = False  # Wait does not listen to its cancellation
        self.produced = 0  # by Count
        self.size = 1000  # of what Count produces
        self.counting = 0
        self.failure: BaseException = ValueError("oh")

    async def echo(self, request: bytes) -> bytes:
        return request

    async def wait(self, request: bytes) -> bytes:
        self.waiting += 1
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            if not self.deaf:
                raise
            await self.go_on.wait()
        finally:
            self.waiting -= 1
        return b"done"

    async def count(self, request: bytes) -> AsyncGenerator[bytes, None]:
        """Without end, unless the request says how many."""
        self.counting += 1
        try:
            while not request or self.produced < int(request):
                self.produced += 1
                yield b"%d" % self.produced + bytes(self.size)
        finally:
            self.counting -= 1

    async def fail(self, request: bytes) -> bytes:
        raise self.failure

    async def refuse(self, request: bytes) -> bytes:
        raise StatusError(9, request.decode())


@contextlib.asynccontextmanager
async def serving(folder: Path, *, grace: float = 0.0) -> AsyncIterator[tuple[GrpcServer, Path, Service]]:
    """A server that must have nothing left when it has ended."""
    service = Service()
    server = GrpcServer(
        {
            "/t.T/Echo": Unary(service.echo),
            "/t.T/Wait": Unary(service.wait),
            "/t.T/Count": Streaming(service.count),
            "/t.T/Fail": Unary(service.fail),
            "/t.T/Refuse": Unary(service.refuse),
        }
    )
    path = folder / "s.sock"
    before = asyncio.all_tasks()
    await server.listen(path)
    try:
        yield server, path, service
    finally:
        await server.stop(grace)
    await until(lambda: not server.connections)
    assert not server.tasks
    assert server.held == 0
    assert asyncio.all_tasks() - {asyncio.current_task()} <= before


async def transport_of(server: GrpcServer) -> asyncio.Transport:
    """Of the one connection."""
    await until(lambda: len(server.connections) == 1)
    (connection,) = server.connections
    assert connection.transport is not None
    return connection.transport
