"""HTTP/1.1 on asyncio's transports: one connection, requests one after another, answers whole or streamed.

Why by hand: a request is answered inside `data_received`, without a task, a queue or a framework's layers. Invariants:
no more than one request is being answered at a time; a watch ends the reading of requests until it is over; headers,
bodies and the bytes waiting for a slow reader are bounded, and who exceeds a bound is refused or cut off.
"""

import asyncio
import contextlib
import gzip
import logging
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote

from fishplate.sim.apiserver.decode import MAX_BODY
from fishplate.sim.apiserver.request import Answer, Request, encode_json
from fishplate.sim.apiserver.status import ApiError
from fishplate.sim.apiserver.watch import Watch

log = logging.getLogger(__name__)
Serve = Callable[[Request], Answer]

_MAX_HEAD = 64 << 10
_MAX_WAITING = 32 << 20
_MAX_DISCARD = 64 << 20
_GZIP_FROM = 128 << 10
_BOOKMARK_S = 30.0
_WATCH_S = 1800
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class _BadRequestError(Exception):
    def __init__(self, status: int, text: str, *, rest: int = 0) -> None:
        super().__init__(text)
        self.status = status
        self.rest = rest  # bytes that the client will still send


class Connection(asyncio.Protocol):
    def __init__(self, serve: Serve, members: "set[Connection]") -> None:
        self._serve = serve
        self._members = members
        self._buffer = bytearray()
        self._head: tuple[str, str, dict[str, str]] | None = None
        self._watch: Watch | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._paused = False
        self._discard = 0
        self._transport: asyncio.Transport

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._members.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._members.discard(self)
        self._end_watch()

    def data_received(self, data: bytes) -> None:
        if self._discard:
            self._throw_away(len(data))
            return
        self._buffer += data
        self._work()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._work()

    def close(self) -> None:
        self._end_watch()
        self._transport.close()

    # Requests.

    def _work(self) -> None:
        """Answer what has come in whole; a watch or a slow reader makes the rest wait."""
        try:
            while self._watch is None and not self._paused and not self._transport.is_closing():
                request = self._next_request()
                if request is None:
                    return
                self._respond(request)
            if len(self._buffer) > MAX_BODY + _MAX_HEAD:
                self._transport.abort()
        except _BadRequestError as error:
            self._refuse(error)

    def _refuse(self, error: _BadRequestError) -> None:
        body = encode_json(ApiError(error.status, str(error)).body())
        self._write(Answer(error.status, body), keep=False)
        # A client that is still sending would see a reset instead of the answer, so what comes is thrown away.
        self._discard = min(error.rest, _MAX_DISCARD)
        self._throw_away(len(self._buffer))

    def _throw_away(self, size: int) -> None:
        self._buffer.clear()
        self._discard -= size
        if self._discard <= 0:
            self._transport.close()

    def _next_request(self) -> Request | None:
        if self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > _MAX_HEAD:
                    raise _BadRequestError(431, "request header fields too large")
                return None
            self._head = _parse_head(bytes(self._buffer[:end]))
            del self._buffer[: end + 4]
            if self._head[2].get("expect", "").lower() == "100-continue":
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        method, target, headers = self._head
        body = self._take_body(headers)
        if body is None:
            return None
        self._head = None
        path, _, query = target.partition("?")
        pairs = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
        return Request(method, unquote(path), pairs, headers, body)

    def _take_body(self, headers: dict[str, str]) -> bytes | None:
        """None while some of it is still to come."""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return self._take_chunks()
        text = headers.get("content-length", "0")
        if not text.isdigit():
            raise _BadRequestError(400, "Content-Length is no number")
        size = int(text)
        if size > MAX_BODY:
            raise _BadRequestError(413, f"Request entity too large: limit is {MAX_BODY}", rest=size)
        if len(self._buffer) < size:
            return None
        body = bytes(self._buffer[:size])
        del self._buffer[:size]
        return body

    def _take_chunks(self) -> bytes | None:
        parts: list[bytes] = []
        place = total = 0
        while True:
            end = self._buffer.find(b"\r\n", place)
            if end < 0:
                return None
            try:
                size = int(bytes(self._buffer[place:end]).partition(b";")[0], 16)
            except ValueError as error:
                raise _BadRequestError(400, "a chunk's length is no number") from error
            total += size
            if size < 0 or total > MAX_BODY:
                raise _BadRequestError(413, f"Request entity too large: limit is {MAX_BODY}")
            place = end + 2 + size + 2
            if len(self._buffer) < place:
                return None
            if size == 0:
                del self._buffer[:place]
                return b"".join(parts)
            parts.append(bytes(self._buffer[end + 2 : end + 2 + size]))

    # Answers.

    def _respond(self, request: Request) -> None:
        try:
            answer = self._serve(request)
        except Exception:  # a defect of ours must not take the other clients down
            log.exception("%s %s", request.method, request.path)
            error = ApiError(
                500, "an error on the server has prevented the request from succeeding", reason="InternalError"
            )
            answer = Answer(500, encode_json(error.body()))
        keep = request.headers.get("connection", "").lower() != "close"
        if answer.watch is not None:
            self._begin_watch(answer.watch)
            return
        if len(answer.body) > _GZIP_FROM and "gzip" in request.headers.get("accept-encoding", ""):
            packed = gzip.compress(answer.body, 1)
            more = (*answer.headers, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))
            answer = Answer(answer.status, packed, media=answer.media, headers=more)
        self._write(answer, keep=keep, bodiless=request.method == "HEAD")
        if not keep:
            self._transport.close()

    def _write(self, answer: Answer, *, keep: bool, bodiless: bool = False) -> None:
        more = "".join(f"{name}: {value}\r\n" for name, value in answer.headers)
        more += "" if keep else "Connection: close\r\n"
        head = (
            f"HTTP/1.1 {answer.status} {_PHRASES.get(answer.status, '')}\r\nContent-Type: {answer.media}\r\n"
            f"Cache-Control: no-cache, private\r\n{more}"
            f"Content-Length: {len(answer.body)}\r\n\r\n"
        )
        self._transport.write(head.encode("latin-1", "replace") + (b"" if bodiless else answer.body))

    # Watches.

    def _begin_watch(self, watch: Watch) -> None:
        self._watch = watch
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: no-cache, private\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        watch.start(self._send_chunk)
        if watch.is_over:
            self._finish_watch()
            return
        loop = asyncio.get_running_loop()
        limit = watch.timeout_s if watch.timeout_s is not None else _WATCH_S
        self._timers = [loop.call_later(limit, self._finish_watch), loop.call_later(_BOOKMARK_S, self._bookmark)]

    def _bookmark(self) -> None:
        if self._watch is not None:
            self._watch.bookmark()
            self._timers[1] = asyncio.get_running_loop().call_later(_BOOKMARK_S, self._bookmark)

    def _send_chunk(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(b"%x\r\n%s\r\n" % (len(data), data))
        if self._transport.get_write_buffer_size() > _MAX_WAITING:
            # The watcher does not read. It will come back and resume, or list again.
            self._end_watch()
            self._transport.abort()

    def _finish_watch(self) -> None:
        """The time is up: say where to go on, and take requests again."""
        if self._watch is not None:
            self._watch.bookmark()
            self._end_watch()
            with contextlib.suppress(OSError):
                self._transport.write(b"0\r\n\r\n")
            self._work()

    def _end_watch(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers = []
        if self._watch is not None:
            self._watch.stop()
            self._watch = None


def _parse_head(data: bytes) -> tuple[str, str, dict[str, str]]:
    lines = data.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _BadRequestError(400, "this is no HTTP/1.1 request")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, found, value = line.partition(":")
        if not found:
            raise _BadRequestError(400, "a header line without a colon")
        name = name.strip().lower()
        headers[name] = f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
    if words[2] == "HTTP/1.0":
        headers.setdefault("connection", "close")
    return words[0], words[1], headers
