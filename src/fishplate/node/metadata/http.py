"""One HTTP request over asyncio's streams: small, bounded, and never through a proxy.

Written by hand because a metadata service is one hop away and hostile until proven otherwise: a whole request has one
deadline, head and body have a limit, redirects are not followed, proxy variables are not read (a proxy would answer
for another machine). The usual clients cost 8 to 20 MB in a driver that may use 58.
"""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from fishplate.errors import OutsideError, UsageError

_MOST_HEAD = 16 * 1024
_MOST_LINES = 100
_MOST_SHOWN = 120


class Endpoint(NamedTuple):
    """Where to ask. `socket` is the path of a unix socket, else host and port count."""

    url: str
    host: str
    port: int
    tls: bool
    prefix: str
    socket: str = ""


class Answer(NamedTuple):
    status: int
    body: bytes


def parse_endpoint(url: str, *, what: str = "URL") -> Endpoint:
    """`http(s)://host[:port][/prefix]` or `unix:///path`. Raises UsageError for anything else."""
    remedy = "write http://HOST:PORT, https://HOST:PORT or unix:///PATH"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UsageError(f"{what} {url!r} is no address: {error}", remedy=remedy) from error
    if parts.scheme == "unix" and parts.path and not host:
        return Endpoint(url, "localhost", 0, tls=False, prefix="", socket=parts.path)
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(f"{what} {url!r} is no address", remedy=remedy)
    if parts.username or parts.query or parts.fragment or any(ord(char) <= 32 or ord(char) > 126 for char in url):
        raise UsageError(f"{what} {url!r} has more in it than an address and a path", remedy=remedy)
    tls = parts.scheme == "https"
    return Endpoint(url, host, port or (443 if tls else 80), tls=tls, prefix=parts.path.rstrip("/"))


async def request(
    endpoint: Endpoint,
    method: str,
    path: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    timeout: float = 5.0,  # noqa: ASYNC109 - the caller's deadline covers connecting, sending and reading together
    limit: int = 1 << 20,
) -> Answer:
    """The whole answer within the deadline. Raises OutsideError when there is none, or one too large or garbled."""
    where = f"{method} {endpoint.url.rstrip('/')}{path.partition('?')[0]}"
    try:
        async with asyncio.timeout(timeout):
            return await _exchange(endpoint, _write_request(endpoint, method, path, headers or {}, body), limit)
    except TimeoutError as error:
        raise OutsideError(f"no answer within {timeout:g} s", where=where) from error
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
        raise OutsideError(str(error)[:_MOST_SHOWN] or type(error).__name__, where=where) from error


def require_ok(answer: Answer, where: str) -> bytes:
    if answer.status != 200:
        shown = answer.body[:_MOST_SHOWN].decode("utf-8", "replace").strip()
        raise OutsideError(f"answered with HTTP {answer.status}{': ' + repr(shown) if shown else ''}", where=where)
    return answer.body


def _write_request(endpoint: Endpoint, method: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    usual = 443 if endpoint.tls else 80
    lines = [
        f"{method} {endpoint.prefix}{path} HTTP/1.1",
        f"Host: {host}{'' if endpoint.port in (0, usual) else f':{endpoint.port}'}",
        "Connection: close",
        "Accept: application/json",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    if body or method == "POST":
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + body


async def _exchange(endpoint: Endpoint, data: bytes, limit: int) -> Answer:
    if endpoint.socket:
        reader, writer = await asyncio.open_unix_connection(endpoint.socket, limit=_MOST_HEAD)
    else:
        reader, writer = await asyncio.open_connection(
            endpoint.host, endpoint.port, ssl=endpoint.tls or None, limit=_MOST_HEAD
        )
    try:
        writer.write(data)
        await writer.drain()
        return await _read_answer(reader, limit)
    finally:
        # Not waited for: a peer that does not close its side must not keep us.
        writer.transport.abort()


async def _read_answer(reader: asyncio.StreamReader, limit: int) -> Answer:
    while True:
        status, headers = parse_head(await reader.readuntil(b"\r\n\r\n"))
        if status >= 200:
            break  # 1xx are only words on the way
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Answer(status, await _read_chunks(reader, limit))
    if "content-length" in headers:
        return Answer(status, await reader.readexactly(_read_length(headers["content-length"], 10, limit)))
    body = b""
    while piece := await reader.read(65536):
        body += piece
        _require_room(len(body), limit)
    return Answer(status, body)


def parse_head(data: bytes) -> tuple[int, dict[str, str]]:
    lines = data.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ", 2)
    if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not (parts[1].isdecimal() and len(parts[1]) == 3):
        raise ValueError(f"the answer is not HTTP: {lines[0][:40]!r}")
    if len(lines) > _MOST_LINES:
        raise ValueError("the answer has too many headers")
    pairs = (line.partition(":") for line in lines[1:] if line)
    return int(parts[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _read_chunks(reader: asyncio.StreamReader, limit: int) -> bytes:
    body = b""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = _read_length(line.decode("latin-1").partition(";")[0], 16, limit)
        if not size:
            return body
        _require_room(len(body) + size, limit)
        body += await reader.readexactly(size)
        await reader.readexactly(2)


def _read_length(text: str, base: int, limit: int) -> int:
    size = int(text.strip(), base)
    if size < 0:
        raise ValueError("the answer has a negative length")
    _require_room(size, limit)
    return size


def _require_room(size: int, limit: int) -> None:
    if size > limit:
        raise ValueError(f"the answer is larger than {limit} bytes")
