"""The embedded server for one conversation: in a thread of its own, on a real socket."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from fishplate.sim.apiserver.server import ApiServer, start_server
from tests.conformance.api.conversation import Server


@contextlib.contextmanager
def embedded_server(directory: Path) -> Iterator[ApiServer]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        server = asyncio.run_coroutine_threadsafe(start_server(directory), loop).result(30)
        try:
            yield server
        finally:
            asyncio.run_coroutine_threadsafe(server.close(), loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def describe(server: ApiServer) -> Server:
    return Server(port=server.port, authority=server.authority, token=server.token(), age=lambda: _age(server))


def _age(server: ApiServer) -> str:
    server.service.store.compact()
    return "/api/v1/namespaces/default/configmaps"
