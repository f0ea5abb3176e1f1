"""/healthz, /readyz and /metrics. A few lines of HTTP/1.1 instead of a web framework's memory on every node.

Only GET and HEAD, one request per connection, small requests, a deadline: whoever reaches the port can take no more.
"""

import asyncio
import contextlib
from collections.abc import Callable
from http import HTTPStatus

_MAX_REQUEST = 8192
_TIMEOUT_S = 5.0
_MOST_AT_ONCE = 32
_TEXT = "text/plain; charset=utf-8"
METRICS = "text/plain; version=0.0.4; charset=utf-8"

Answer = tuple[HTTPStatus, str, bytes]
Page = Callable[[], Answer]


def plain(status: HTTPStatus, text: str) -> Answer:
    return status, _TEXT, text.encode()


async def serve_pages(address: str, port: int, pages: dict[str, Page]) -> asyncio.Server:
    open_now = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now
        if open_now >= _MOST_AT_ONCE:
            writer.close()
            return
        open_now += 1
        try:
            await serve(reader, writer)
        finally:
            open_now -= 1

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_TIMEOUT_S):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(_respond(request, pages))
                await writer.drain()
        writer.close()

    return await asyncio.start_server(handle, address or None, port, limit=_MAX_REQUEST)


def _respond(request: bytes, pages: dict[str, Page]) -> bytes:
    words = request.split(b"\r\n", 1)[0].decode("ascii", "replace").split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return _encode(plain(HTTPStatus.BAD_REQUEST, "not HTTP/1.1\n"))
    method, path = words[0], words[1].partition("?")[0]
    if method not in ("GET", "HEAD"):
        return _encode(plain(HTTPStatus.METHOD_NOT_ALLOWED, "GET or HEAD\n"))
    page = pages.get(path)
    answer = page() if page else plain(HTTPStatus.NOT_FOUND, f"there are {' '.join(sorted(pages))}\n")
    return _encode(answer, body=method == "GET")


def _encode(answer: Answer, *, body: bool = True) -> bytes:
    status, kind, content = answer
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
    return (head + "Connection: close\r\n\r\n").encode() + (content if body else b"")
