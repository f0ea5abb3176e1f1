"""Hostile bytes through all the cores of the NRI wire, as a connection would feed them. Shared by tests and fuzzer."""

from __future__ import annotations

import asyncio
import contextlib

from fishplate.errors import OutsideError
from fishplate.wire import mux
from fishplate.wire.calls import Call, Incoming, Outgoing
from fishplate.wire.nri import Event
from fishplate.wire.nri_service import PluginService
from fishplate.wire.ttrpc import Request, Served
from tests.recording import Recorder


def new_service() -> PluginService:
    """A plugin's service that is subscribed to everything."""
    return PluginService(Recorder(Event(0x1FFF)), on_configured=lambda _: None, on_synchronised=lambda: None)


def finish(served: Served) -> bytes:
    return served if isinstance(served, bytes) else asyncio.run(served)


def feed_cores(data: bytes, step: int) -> None:
    """Raises only for what would be a bug: refusals, and frames that cannot be, are as they should."""
    reader, incoming, outgoing, service = mux.Reader(), Incoming(), Outgoing(), new_service()
    outgoing.ask(Request("s", "m", b"", None))
    for at in range(0, len(data), step):
        try:
            pieces = reader.feed(data[at : at + step])
        except mux.FrameError:
            return
        for connection, piece in pieces:
            if connection == mux.RUNTIME_SERVICE:
                outgoing.feed(piece)
                continue
            for found in incoming.feed(piece):
                if isinstance(found, Call):
                    with contextlib.suppress(OutsideError):
                        finish(service.serve(found.request))
