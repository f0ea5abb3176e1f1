"""The socket: permissions, ports, hostile clients and an orderly end."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fishplate.errors import OutsideError
from fishplate.sim.apiserver import http
from fishplate.sim.apiserver.server import ApiServer, serving

MAPS = "/api/v1/namespaces/default/configmaps"


class Wire:
    """A raw HTTP client: what goes over the socket is what the test says."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self.reader, self.writer, self._token = reader, writer, token

    async def send(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        said = {"authorization": f"Bearer {self._token}", "content-length": str(len(data)), **headers}
        head = "".join(f"{k}: {v}\r\n" for k, v in said.items())
        self.writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + data)
        return await self.receive()

    async def receive(self) -> tuple[int, Any]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        status = int(head.split(" ")[1])
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        if "content-length" not in fields:
            return status, head
        data = await self.reader.readexactly(int(fields["content-length"]))
        return status, json.loads(data) if "json" in fields["content-type"] else data

    async def event(self) -> Any:  # noqa: ANN401 - decoded JSON
        size = int(await self.reader.readline(), 16)
        data = await self.reader.readexactly(size + 2)
        return json.loads(data) if size else None


@contextlib.asynccontextmanager
async def connected(server: ApiServer) -> Any:  # noqa: ANN401 - an async context manager
    context = ssl.create_default_context(cafile=str(server.authority))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
    try:
        yield Wire(reader, writer, server.token())
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


async def test_several_requests_in_one_packet_are_answered_in_order(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, connected(server) as wire:
        head = f"authorization: Bearer {server.token()}\r\n\r\n"
        wire.writer.write(f"GET /version HTTP/1.1\r\n{head}GET /healthz HTTP/1.1\r\n{head}".encode())
        assert (await wire.receive())[1]["minor"] == "36"
        assert (await wire.receive())[1] == b"ok"


async def test_a_body_in_chunks_is_put_together(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, connected(server) as wire:
        data = json.dumps(_map("one", a="1")).encode()
        head = f"authorization: Bearer {server.token()}\r\ntransfer-encoding: chunked\r\n\r\n"
        wire.writer.write(f"POST {MAPS} HTTP/1.1\r\n{head}".encode())
        for part in (data[:7], data[7:]):
            wire.writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await wire.writer.drain()
        wire.writer.write(b"0\r\n\r\n")
        status, made = await wire.receive()
        assert (status, made["data"]) == (201, {"a": "1"})


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"POST /x HTTP/1.1\r\ncontent-length: -5\r\n\r\n", 400),
        (b"POST /x HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST /x HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nfffffff\r\n", 413),
        (b"POST /x HTTP/1.1\r\ncontent-length: 99999999\r\n\r\n", 413),
        (b"GET /" + b"x" * 70_000, 431),
    ],
)
async def test_what_is_no_http_is_refused_and_hung_up_on(sent: bytes, status: int, tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        async with connected(server) as wire:
            wire.writer.write(sent)
            assert (await wire.receive())[0] == status
        async with connected(server) as wire:
            assert (await wire.send("GET", "/version"))[0] == 200


async def test_a_watcher_that_does_not_read_is_cut_off_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_MAX_WAITING", 1 << 20)
    async with serving(tmp_path) as server, connected(server) as slow, connected(server) as writer:
        slow.writer.transport.pause_reading()
        head = f"authorization: Bearer {server.token()}\r\n\r\n"
        slow.writer.write(f"GET {MAPS}?watch=1 HTTP/1.1\r\n{head}".encode())
        await asyncio.sleep(0)
        for index in range(60):
            assert (await writer.send("POST", MAPS, _map(f"m-{index}", a="x" * 300_000)))[0] == 201
        shelf = server.service.store._shelves["ConfigMapv1"]
        assert not shelf.listeners
        slow.writer.transport.abort()
        assert (await writer.send("GET", "/version"))[0] == 200


async def test_a_watch_ends_with_its_connection(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        shelf = server.service.store._shelves["ConfigMapv1"]
        async with connected(server) as wire:
            assert (await wire.send("GET", f"{MAPS}?watch=1"))[0] == 200
            assert len(shelf.listeners) == 1
        async with connected(server) as wire:
            for _ in range(200):  # each answer gives the server's loop a turn
                await wire.send("GET", "/healthz")
        assert not shelf.listeners


async def test_bookmarks_come_as_time_goes_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_BOOKMARK_S", 0.05)
    async with serving(tmp_path) as server, connected(server) as wire, connected(server) as writer:
        await wire.send(
            "GET", f"{MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion={server.service.store.version}"
        )
        first = await wire.event()
        assert first["type"] == "BOOKMARK"
        made = (await writer.send("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}}))[1]
        while (seen := await wire.event())["object"]["metadata"]["resourceVersion"] != made["metadata"][
            "resourceVersion"
        ]:
            assert seen["type"] == "BOOKMARK"


async def test_a_watch_gives_the_connection_back_when_its_time_is_up(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, connected(server) as wire:
        assert (await wire.send("GET", f"{MAPS}?watch=1&timeoutSeconds=0&resourceVersion=1"))[0] == 200
        assert await wire.event() is None
        assert (await wire.send("GET", "/version"))[0] == 200


async def test_a_defect_of_ours_is_an_answer_and_not_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as server, connected(server) as wire:
        monkeypatch.setattr(server.service, "_serve", lambda target, request: 1 / 0)
        status, said = await wire.send("GET", MAPS)
        assert (status, said["reason"]) == (500, "InternalError")
        assert "division by zero" in caplog.text
        assert (await wire.send("GET", "/version"))[0] == 200


async def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OutsideError, match="the port is taken"):
            async with serving(tmp_path, port=port):
                pass
    assert os.listdir(tmp_path) == []


async def test_an_address_of_another_machine_is_told(tmp_path: Path) -> None:
    with pytest.raises(OutsideError, match="cannot listen"):
        async with serving(tmp_path, host="192.0.2.1"):
            pass


async def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(OutsideError, match="cannot be written"):
        async with serving(blocked / "below"):
            pass


async def test_keys_are_for_their_owner_alone_and_go_with_the_server(tmp_path: Path) -> None:
    async with serving(tmp_path, users=("node-1",)) as server:
        modes = {entry.name: entry.stat().st_mode & 0o777 for entry in os.scandir(tmp_path)}
        assert modes == dict.fromkeys(("ca.crt", "server.crt", "server.key", "kubeconfig"), 0o600)
        assert server.token("node-1") != server.token()
    assert os.listdir(tmp_path) == []


def test_the_program_serves_until_its_input_ends_and_leaves_nothing(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "fishplate.sim.apiserver", str(tmp_path / "run")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdin is not None
        assert program.stdout.readline().startswith("https://127.0.0.1:")
        assert (tmp_path / "run" / "kubeconfig").exists()
        program.stdin.close()
        assert program.wait(20) == 0
    assert os.listdir(tmp_path / "run") == []


def test_the_program_ends_at_a_signal(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "fishplate.sim.apiserver", str(tmp_path / "run")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        program.stdout.readline()
        program.send_signal(signal.SIGTERM)
        assert program.wait(20) == 0
    assert os.listdir(tmp_path / "run") == []


def test_the_program_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        argv = [sys.executable, "-m", "fishplate.sim.apiserver", str(tmp_path / "run"), str(taken.getsockname()[1])]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 3
    assert "the port is taken" in done.stderr
    assert "Traceback" not in done.stderr
