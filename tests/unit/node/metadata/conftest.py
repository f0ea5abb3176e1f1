"""A real HTTP server on loopback (or on a unix socket) whose answers a test writes."""

import socketserver
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Reply(NamedTuple):
    """`raw` replaces the whole answer; `hold` keeps the connection open, saying nothing, until the server stops."""

    status: int = 200
    body: bytes = b"{}"
    raw: bytes = b""
    hold: bool = False


class Site:
    """What the server answers, and what it was asked."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}
        self.otherwise = Reply()
        self.decide: Callable[[Asked], Reply] | None = None
        self.asked: list[Asked] = []
        self.url = ""
        self.stopping = threading.Event()

    def reply(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        if self.decide is not None:
            return self.decide(asked)
        return self.replies.get(asked.path.partition("?")[0], self.otherwise)


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            asked = Asked(self.command, self.path, dict(self.headers.items()), self.rfile.read(length))
            reply = site.reply(asked)
            if reply.hold:
                site.stopping.wait(30)
                self.close_connection = True
                return
            if reply.raw:
                self.wfile.write(reply.raw)
                self.close_connection = True
                return
            self.send_response(reply.status)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        do_POST = do_GET

        def log_message(self, *args: object) -> None:
            pass

        def address_string(self) -> str:
            return "peer"

    return Handler


class _UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # clients that hang up are part of the tests


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        pass


def _serve(server: socketserver.BaseServer, site: Site) -> Iterator[Site]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        site.stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    server = _Server(("127.0.0.1", 0), _handler(made))
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield from _serve(server, made)


@pytest.fixture
def unix_site(tmp_path: Path) -> Iterator[Site]:
    made = Site()
    path = tmp_path / "s"
    server = _UnixServer(str(path), _handler(made))
    made.url = f"unix://{path}"
    yield from _serve(server, made)
