"""A relay that lets the API server reach kubelets: HTTP CONNECT on a socket in the state directory.

The node's address exists only inside QEMU; QEMU forwards a loopback port to the kubelet. The relay knows that table and
refuses every other target.
"""

import asyncio
import contextlib
import json
import sys
from pathlib import Path


def parse_target(request: bytes) -> str:
    """`host:port` of a CONNECT request, or an empty string."""
    words = request.split(b"\r\n", 1)[0].split()
    return words[1].decode(errors="replace") if len(words) == 3 and words[0] == b"CONNECT" else ""


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


async def _relay(table: dict[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        target = parse_target(await reader.readuntil(b"\r\n\r\n"))
        if target not in table:
            writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
            writer.close()
            return
        there, back = await asyncio.open_connection("127.0.0.1", table[target])
    except (OSError, asyncio.IncompleteReadError):
        writer.close()
        return
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    await asyncio.gather(_copy(reader, back), _copy(there, writer))


async def serve(path: Path, table: dict[str, int]) -> None:
    server = await asyncio.start_unix_server(lambda r, w: _relay(table, r, w), path=path)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(Path("dialer.sock"), json.loads(sys.argv[1])))
