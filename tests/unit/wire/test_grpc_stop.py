"""The end of the gRPC server: what may finish, what is cut short, and who cannot hold it up."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest
from h2.events import DataReceived
from h2.settings import SettingCodes

from fishplate.wire.grpc_client import Channel
from fishplate.wire.grpc_frames import Reason
from fishplate.wire.ttrpc import Code, StatusError
from tests.raw_grpc import RawPeer, serving, transport_of
from tests.recording import until

if TYPE_CHECKING:
    from pathlib import Path


def test_a_stop_lets_unary_calls_finish_ends_streams_and_refuses_new_ones(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as (server, path, service), RawPeer.connect(path) as peer:
            waits, counts = peer.ask(b"", path="/t.T/Wait"), peer.ask(b"", path="/t.T/Count")
            await peer.wait(DataReceived, stream=counts)
            await until(lambda: service.waiting == 1)
            stop = asyncio.create_task(server.stop(30))
            ended = await peer.answer(counts)
            assert (ended.code, ended.text) == (Code.UNAVAILABLE, "the server is stopping")
            assert peer.gate.goaway == (counts, Reason.NO_ERROR)
            assert service.waiting == 1
            with pytest.raises(OSError, match=r"refused|No such file"):
                await asyncio.open_unix_connection(str(path))
            assert (await peer.answer(peer.ask(b"late"))).reset == Reason.REFUSED_STREAM
            service.go_on.set()
            assert (await peer.answer(waits)).messages == [b"done"]
            await stop

    asyncio.run(test())


def test_our_client_gets_the_answer_of_a_call_that_a_stop_waits_for(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as (server, path, service), Channel(path) as channel:
            waits = asyncio.create_task(channel.call("/t.T/Wait", b"", timeout=30))
            await until(lambda: service.waiting == 1)
            stop = asyncio.create_task(server.stop(30))
            await asyncio.sleep(0)
            service.go_on.set()
            assert await waits == b"done"
            await stop

    asyncio.run(test())


def test_a_stop_without_grace_cancels(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as (server, path, service), Channel(path) as channel:
            waits = asyncio.create_task(channel.call("/t.T/Wait", b"", timeout=30))
            await until(lambda: service.waiting == 1)
            await server.stop(0)
            assert (service.waiting, service.cancelled) == (0, 1)
            with pytest.raises(StatusError) as caught:
                await waits
            assert caught.value.code == Code.UNAVAILABLE

    asyncio.run(test())


def test_a_stop_does_not_wait_for_a_peer_that_reads_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as (server, path, service), contextlib.AsyncExitStack() as stack:
            peer = await stack.enter_async_context(RawPeer.connect(path))
            service.size = 100_000
            peer.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: (1 << 31) - 1})
            peer.h2.increment_flow_control_window((1 << 31) - 1 - 65_535)
            peer.ask(b"", path="/t.T/Count")
            transport = await transport_of(server)
            await until(lambda: not transport.is_reading())
            async with asyncio.timeout(20):
                await server.stop(30)
            assert service.counting == 0

    asyncio.run(test())
