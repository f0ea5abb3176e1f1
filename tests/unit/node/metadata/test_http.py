import asyncio
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishplate.errors import OutsideError, UsageError
from fishplate.node.metadata.http import Answer, parse_endpoint, parse_head, request, require_ok
from tests.unit.node.metadata.conftest import Reply, Site


def get(url: str, path: str = "/x", *, timeout: float = 5.0, limit: int = 1000) -> Answer:
    return asyncio.run(request(parse_endpoint(url), "GET", path, timeout=timeout, limit=limit))


def failure(site: Site, raw: bytes, **options: float) -> str:
    site.otherwise = Reply(raw=raw)
    with pytest.raises(OutsideError) as caught:
        get(site.url, **options)  # type: ignore[arg-type]
    return str(caught.value)


def test_an_answer_is_its_status_and_body(site: Site) -> None:
    site.otherwise = Reply(status=404, body=b"nothing here")
    assert get(site.url) == Answer(404, b"nothing here")
    assert site.asked[0].path == "/x"


def test_a_prefix_of_the_address_is_kept(site: Site) -> None:
    get(f"{site.url}/api/")
    assert site.asked[0].path == "/api/x"


def test_chunks_are_put_together(site: Site) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    site.otherwise = Reply(raw=head + b"4;note\r\nfish\r\n5\r\nplate\r\n0\r\n\r\n")
    assert get(site.url).body == b"fishplate"


def test_a_body_without_a_length_ends_with_the_connection(site: Site) -> None:
    site.otherwise = Reply(raw=b"HTTP/1.0 200 OK\r\n\r\nfish")
    assert get(site.url).body == b"fish"


def test_words_on_the_way_are_passed_over(site: Site) -> None:
    site.otherwise = Reply(raw=b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
    assert get(site.url) == Answer(200, b"a")


def test_a_redirect_is_not_followed(site: Site) -> None:
    site.otherwise = Reply(raw=b"HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n")
    with pytest.raises(OutsideError, match="HTTP 302"):
        require_ok(get(site.url), "here")
    assert len(site.asked) == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 1001,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"300\r\n" + b"a" * 0x300 + b"\r\n300\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffff\r\n",
    ],
    ids=["announced", "open-ended", "chunks", "one-chunk"],
)
def test_an_answer_that_is_too_large_is_refused(site: Site, raw: bytes) -> None:
    assert "the answer is larger than 1000 bytes" in failure(site, raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
        b"\r\n\r\n",
        b"\xff",
    ],
)
def test_garbage_is_an_error_and_no_crash(site: Site, raw: bytes) -> None:
    assert failure(site, raw).startswith(f"GET {site.url}/x: ")


def test_one_deadline_holds_for_the_whole_request(site: Site) -> None:
    site.otherwise = Reply(hold=True)
    with pytest.raises(OutsideError, match=r"no answer within 0\.1 s"):
        get(site.url, timeout=0.1)


def test_a_server_that_sends_a_byte_now_and_then_does_not_stretch_the_deadline() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                writer.write(b"H")
                await writer.drain()
                await asyncio.sleep(0.01)
        finally:
            writer.transport.abort()

    async def ask() -> None:
        server = await asyncio.start_server(drip, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(OutsideError, match="no answer within"):
            await request(parse_endpoint(f"http://127.0.0.1:{port}"), "GET", "/", timeout=0.2)
        server.close()
        await server.wait_closed()

    asyncio.run(ask())


def test_nobody_there_is_told() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(OutsideError, match="Connect"):
        get(f"http://127.0.0.1:{port}")


def test_proxies_are_passed_by(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert get(site.url).status == 200


def test_a_unix_socket_is_an_address(unix_site: Site) -> None:
    assert get(unix_site.url).status == 200
    assert unix_site.asked[0].headers["Host"] == "localhost"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://x",
        "http://",
        "//x",
        "http://u:p@x",
        "http://x?y",
        "unix:",
        "http://x:99999",
        "http://a b",
        "http://[x",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="--webhook-url"):
        parse_endpoint(url, what="--webhook-url")


@given(st.binary(max_size=300))
def test_any_head_is_parsed_or_refused(data: bytes) -> None:
    try:
        status, _ = parse_head(data)
    except ValueError:
        return
    assert 0 <= status <= 999
