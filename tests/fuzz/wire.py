"""`make fuzz`: bytes chosen by coverage, through the cores of the NRI wire. An exception is a bug, and so is growth.

It writes the bytes that broke something to the working directory; `tests.hostile` takes them again.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["fishplate.wire"]):
    from fishplate.wire import ttrpc
    from fishplate.wire.mux import PLUGIN_SERVICE, frame_message
    from fishplate.wire.nri_service import EVENT_METHODS, PLUGIN
    from tests.hostile import feed_cores

METHODS = [*EVENT_METHODS, "Configure", "Synchronize", "StateChange", "Shutdown"]


def try_one(data: bytes) -> None:
    """The first byte says how: as the bytes of a socket, or as the payload of a method in good frames."""
    if len(data) < 2:
        return
    if data[0] & 1:
        feed_cores(data[2:], 1 + data[1])
        return
    request = ttrpc.Request(PLUGIN, METHODS[data[1] % len(METHODS)], data[2:], None)
    feed_cores(frame_message(PLUGIN_SERVICE, ttrpc.encode_request(1, request)), 1 << 16)


if __name__ == "__main__":
    atheris.Setup(sys.argv, try_one)
    atheris.Fuzz()
