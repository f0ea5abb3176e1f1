"""Random and mangled bytes: nothing crashes, nothing grows, and a good peer is served right after."""

from __future__ import annotations

import asyncio
import contextlib
import random
import resource
import socket
import struct
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from fishplate.wire import mux, ttrpc
from fishplate.wire.kubelet import ClaimRef
from fishplate.wire.kubelet_client import Kubelet
from fishplate.wire.kubelet_server import KubeletServer, plan_socket_paths
from fishplate.wire.nri import Container, Pod
from fishplate.wire.nri_plugin import Phase
from fishplate.wire.nri_runtime import Runtime
from fishplate.wire.nri_service import EVENT_METHODS, PLUGIN
from fishplate.wire.proto import nri_pb2 as pb
from fishplate.wire.ttrpc import Request, StatusError
from tests.hostile import feed_cores, finish, new_service
from tests.recording import Claims, Recorder, running_plugin

METHODS = [*EVENT_METHODS, "Configure", "Synchronize", "StateChange", "Shutdown", "Nonsense"]
CREATE = pb.ContainerRequest(pod=pb.PodSandbox(id="s", uid="u"), container=pb.Container(id="c", env=["A=b"]))


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """Bytes that look like frames to some depth: a header, a message, a request, a payload, each perhaps wrong."""
    if draw(st.booleans()):
        return draw(st.binary(max_size=64))
    payload = draw(st.one_of(st.binary(max_size=64), st.just(CREATE.SerializeToString())))
    request = Request(draw(st.sampled_from([PLUGIN, "x"])), draw(st.sampled_from(METHODS)), payload, None)
    message = bytearray(ttrpc.encode_request(draw(st.integers(0, 2**32 - 1)), request))
    for place in draw(st.lists(st.integers(0, len(message) - 1), max_size=3)):
        message[place] = draw(st.integers(0, 255))
    frame = bytearray(mux.frame_message(draw(st.integers(0, 3)), bytes(message)))
    for place in draw(st.lists(st.integers(0, len(frame) - 1), max_size=2)):
        frame[place] = draw(st.integers(0, 255))
    return bytes(frame)


@given(st.lists(frames(), max_size=6), st.integers(1, 40))
@settings(max_examples=150)
def test_the_cores_survive_any_bytes(pieces: list[bytes], step: int) -> None:
    feed_cores(b"".join(pieces), step)


@given(st.sampled_from(METHODS), st.binary(max_size=200))
@settings(max_examples=200)
def test_any_payload_of_any_method_is_served_or_refused(method: str, payload: bytes) -> None:
    with contextlib.suppress(StatusError):
        assert isinstance(finish(new_service().serve(Request(PLUGIN, method, payload, None))), bytes)


def knock(path: Path, data: bytes) -> None:
    """Write to a socket and leave, whatever it thinks of that."""
    with socket.socket(socket.AF_UNIX) as client, contextlib.suppress(OSError):
        client.settimeout(5)
        client.connect(str(path))
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        while client.recv(1 << 16):
            pass


async def knock_all(path: Path, blobs: list[bytes]) -> None:
    for blob in blobs:
        await asyncio.to_thread(knock, path, blob)


@given(st.lists(frames(), min_size=1, max_size=3))
@settings(max_examples=10)
def test_a_plugin_survives_a_runtime_that_speaks_nonsense(pieces: list[bytes]) -> None:
    async def test(folder: Path) -> None:
        path = folder / "nri.sock"
        came = asyncio.Event()

        async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readexactly(8)
            with contextlib.suppress(ConnectionError):
                writer.write(b"".join(pieces))
                writer.close()
                await writer.wait_closed()
            came.set()

        handler = Recorder()
        async with running_plugin(handler, path, ready=False) as plugin:
            async with await asyncio.start_unix_server(nonsense, str(path)):
                await came.wait()
            path.unlink()
            async with Runtime(path) as runtime:
                await plugin.wait_until(Phase.SYNCHRONISED)
                await runtime.wait_for_plugins(1)
                assert await runtime.create_container(Pod(id="s", uid="good"), Container(id="c"))

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(test(Path(folder)))


HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = struct.pack(">BHBBI", 0, 0, 4, 0, 0)


def http2_frames(blob: bytes) -> bytes:
    return HTTP2 + SETTINGS + blob


def test_the_kubelets_sockets_survive_any_bytes(tmp_path: Path) -> None:
    """One server for all examples: what an earlier one broke, a later one would see."""

    async def test() -> None:
        paths = plan_socket_paths("dra.net", plugins=tmp_path / "p", registry=tmp_path / "r")
        claim = ClaimRef(namespace="ns", name="c", uid="u")
        async with KubeletServer(Claims(), driver="dra.net", paths=paths):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            async with await Kubelet.register(paths.registration) as kubelet:
                for path in (paths.service, paths.registration):
                    await knock_all(path, BLOBS)
                assert await kubelet.prepare([claim])
            async with await Kubelet.register(paths.registration) as kubelet:
                assert await kubelet.prepare([claim])
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            assert grown < 64 << 10  # KiB

    asyncio.run(test())


def make_blobs() -> list[bytes]:
    """The same hundred each time: garbage, garbage behind a good preface, and frames that announce too much."""
    dice = random.Random(7)
    blobs = [b"", b"\0" * 1000, HTTP2, http2_frames(b""), http2_frames(b"\xff\xff\xff" + b"\0" * 6 + b"x" * 4000)]
    for _ in range(45):
        noise = dice.randbytes(dice.randrange(1, 2000))
        blobs += [noise, http2_frames(noise)]
    return blobs


BLOBS = make_blobs()


def test_a_flood_at_the_runtimes_socket_does_not_grow_the_plugin(tmp_path: Path) -> None:
    """A message of 4 MiB that never ends, then one that is too long, a hundred times over: all of it is dropped."""

    async def test() -> None:
        path = tmp_path / "nri.sock"
        done = asyncio.Event()

        async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            huge = struct.pack(">IIBB", 0xFFFF_FFFF, 1, 1, 0)
            with contextlib.suppress(ConnectionError):
                writer.write(mux.frame_message(mux.PLUGIN_SERVICE, huge))
                for _ in range(100):
                    writer.write(struct.pack(">II", mux.PLUGIN_SERVICE, 1 << 20) + bytes(1 << 20))
                    await writer.drain()
                writer.close()
                await writer.wait_closed()
            done.set()

        async with await asyncio.start_unix_server(flood, str(path)):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            async with running_plugin(Recorder(), path, ready=False):
                await done.wait()
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10  # KiB

    asyncio.run(test())
