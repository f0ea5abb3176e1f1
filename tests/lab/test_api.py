"""The lab's HTTP client against a real TLS server that closes connections it has not used for a while."""

import socket
import ssl
import threading
from pathlib import Path

from lab.api import ApiClient
from lab.credentials import make_credentials


def _answer_once(listener: socket.socket, tls: ssl.SSLContext, closed: threading.Semaphore) -> None:
    """One answer per connection that promises to stay open, then the end of it."""
    for _ in range(2):
        plain, _peer = listener.accept()
        with tls.wrap_socket(plain, server_side=True) as connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        closed.release()


def test_a_connection_that_the_server_has_closed_is_not_used_again(tmp_path: Path) -> None:
    credentials = make_credentials(tmp_path / "keys", [], ["127.0.0.1"])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(credentials.directory / "api.crt", credentials.directory / "api.key")
    closed = threading.Semaphore(0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=_answer_once, args=(listener, tls, closed), daemon=True)
        server.start()
        client = ApiClient(listener.getsockname()[1], credentials.authority, credentials.tokens["admin"])
        for _ in range(2):
            assert client.request("GET", "/x") == {}
            closed.acquire()
        client.close()
        server.join()
