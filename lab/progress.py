"""Progress on standard error: what is being done, how long it has taken so far, how long it took."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

_EVERY_S = 30.0


def say(text: str) -> None:
    # Whoever asked may have gone; that is no reason to stop.
    with contextlib.suppress(BrokenPipeError):
        print(f"lab: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def timed(what: str) -> Iterator[None]:
    say(f"{what} ...")
    start, done = time.monotonic(), threading.Event()

    def remind() -> None:
        while not done.wait(_EVERY_S):
            say(f"{what}: {time.monotonic() - start:.0f} s so far")

    threading.Thread(target=remind, daemon=True).start()
    try:
        yield
    finally:
        done.set()
    say(f"{what}: {time.monotonic() - start:.1f} s")
