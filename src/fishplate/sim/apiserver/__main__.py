"""`python -m fishplate.sim.apiserver DIRECTORY [PORT]`: serve until the standard input ends or a signal comes.

Prints the URL once it listens. DIRECTORY gets ca.crt and kubeconfig, and loses them at the end.
"""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from fishplate.errors import FishplateError
from fishplate.sim.apiserver.server import serving


async def _serve(directory: Path, port: int) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    with contextlib.suppress(OSError, PermissionError):  # a file as standard input cannot be waited for, and never ends
        loop.add_reader(sys.stdin.fileno(), lambda: None if os.read(sys.stdin.fileno(), 4096) else ended.set())
    async with serving(directory, port=port) as server:
        print(server.url, flush=True)
        await ended.wait()


def main(words: list[str]) -> int:
    if not 1 <= len(words) <= 2 or (len(words) == 2 and not words[1].isdigit()):
        print("usage: python -m fishplate.sim.apiserver DIRECTORY [PORT]", file=sys.stderr)
        return 2
    try:
        asyncio.run(_serve(Path(words[0]), int(words[1]) if len(words) == 2 else 0))
    except FishplateError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
