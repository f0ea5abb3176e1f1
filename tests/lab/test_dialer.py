"""The relay to kubelets: forwards what it knows, refuses the rest."""

import asyncio
from pathlib import Path

from lab.dialer import parse_target, serve


async def _ask(path: Path, target: str, message: bytes) -> bytes:
    while True:
        try:
            reader, writer = await asyncio.open_unix_connection(path)
            break
        except OSError:
            await asyncio.sleep(0)
    writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    if answer.startswith(b"HTTP/1.1 200"):
        writer.write(message)
        answer += await reader.read()
    writer.close()
    return answer


def test_known_targets_are_relayed_and_others_refused(tmp_path: Path) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read(100)).upper())
        await writer.drain()
        writer.close()

    async def scene() -> tuple[bytes, bytes]:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        relay = asyncio.create_task(serve(tmp_path / "s", {"10.77.0.15:10250": port}))
        known = await _ask(tmp_path / "s", "10.77.0.15:10250", b"hello")
        unknown = await _ask(tmp_path / "s", f"127.0.0.1:{port}", b"hello")
        relay.cancel()
        server.close()
        return known, unknown

    known, unknown = asyncio.run(scene())
    assert known.startswith(b"HTTP/1.1 200 ")
    assert known.endswith(b"HELLO")
    assert unknown == b"HTTP/1.1 403 Forbidden\r\n\r\n"


def test_only_connect_names_a_target() -> None:
    assert parse_target(b"CONNECT a:1 HTTP/1.1\r\n\r\n") == "a:1"
    assert parse_target(b"GET / HTTP/1.1\r\n\r\n") == ""
    assert parse_target(b"\r\n\r\n") == ""
