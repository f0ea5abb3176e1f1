import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from fishplate.driver.http import plain, serve_pages
from fishplate.driver.pages import Pages
from fishplate.driver.publish import PublishState
from fishplate.wire.kubelet_server import Registration, RegistrationPhase
from fishplate.wire.nri_plugin import Phase, PluginState


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


def with_server(story: Callable[[int], Awaitable[bytes]]) -> bytes:
    async def run() -> bytes:
        server = await serve_pages("127.0.0.1", 0, {"/healthz": lambda: plain(HTTPStatus.OK, "ok\n")})
        async with server:
            return await story(server.sockets[0].getsockname()[1])

    return asyncio.run(run())


def test_a_page_is_served_and_the_connection_closed() -> None:
    answer = with_server(lambda port: ask(port, b"GET /healthz?verbose HTTP/1.1\r\nHost: x\r\n\r\n"))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nok\n")


def test_head_has_no_body() -> None:
    answer = with_server(lambda port: ask(port, b"HEAD /healthz HTTP/1.1\r\n\r\n"))
    assert b"Content-Length: 3" in answer
    assert answer.endswith(b"\r\n\r\n")


def test_other_methods_paths_and_rubbish_are_refused() -> None:
    assert b" 405 " in with_server(lambda port: ask(port, b"POST /healthz HTTP/1.1\r\n\r\n"))
    assert b" 404 " in with_server(lambda port: ask(port, b"GET /secret HTTP/1.1\r\n\r\n"))
    assert b" 400 " in with_server(lambda port: ask(port, b"\x16\x03\x01rubbish\r\n\r\n"))


def test_a_request_without_end_gets_no_memory() -> None:
    async def flood(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\n" + b"x" * 100_000)
        try:
            answer = await reader.read()
        except ConnectionResetError:
            answer = b""
        writer.close()
        return answer + await ask(port, b"GET /healthz HTTP/1.1\r\n\r\n")

    answer = with_server(flood)
    assert answer.count(b"200 OK") == 1


def pages(
    *, registered: bool = True, phase: Phase = Phase.SYNCHRONISED, published: bool = True, nri: bool = True
) -> Pages:
    kubelet = RegistrationPhase.REGISTERED if registered else RegistrationPhase.WAITING
    return Pages(
        kubelet=lambda: Registration(phase=kubelet, since=0.0),
        reachable=lambda: True,
        nri=(lambda: PluginState(phase=phase, since=0.0, error="connection refused")) if nri else None,
        publisher=lambda: PublishState(published=published),
        metrics=lambda: b"x 1\n",
    )


def test_ready_means_that_a_pod_would_get_its_devices() -> None:
    assert pages().by_path["/readyz"]()[0] is HTTPStatus.OK
    assert pages(phase=Phase.DISCONNECTED, nri=False).by_path["/readyz"]()[0] is HTTPStatus.OK


def test_each_thing_missing_is_named() -> None:
    status, _, body = pages(registered=False, phase=Phase.DISCONNECTED, published=False).by_path["/readyz"]()
    assert status is HTTPStatus.SERVICE_UNAVAILABLE
    assert body.decode().splitlines() == [
        "kubelet: waiting",
        "NRI: disconnected connection refused",
        "slices: not published",
    ]
