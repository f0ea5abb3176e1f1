"""Who owns the lab's processes, and how none of them outlives it.

Three nets, one below the other:
1. The keeper, one process per lab, is the parent of everything and stops it on SIGTERM or when its owner goes away.
2. Each child asks the kernel to be killed when the keeper dies (`setpriv --pdeathsig`), so SIGKILL leaves nothing.
3. Each process carries the lab's state directory in its environment. Whatever is left over, for whatever reason, is
   found by that mark and by nothing else: process numbers are never trusted, since the kernel uses them again.
All of it is thrown away at the end, so children are killed, not asked.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from fishplate.errors import OutsideError
from lab.host import find_command

MARK = "FISHPLATE_LAB_STATE"


class Keeper:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.logs = directory / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, argv: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Start a child in the state directory; its output goes to logs/NAME.log."""
        setpriv = find_command("setpriv") or "setpriv"
        marked = {**os.environ, **(environment or {}), MARK: str(self.directory)}
        with (self.logs / f"{name}.log").open("ab") as log:
            self.children[name] = subprocess.Popen(
                [setpriv, "--pdeathsig", "KILL", "--", *argv],
                cwd=self.directory,
                env=marked,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def check(self) -> None:
        """Raise if a child has ended, with the last lines it wrote."""
        for name, child in self.children.items():
            if child.poll() is not None:
                raise OutsideError(
                    f"{name} ended with {child.returncode}:\n{tail(self.logs / f'{name}.log')}",
                    where=f"lab {self.directory.name}",
                )

    def stop(self) -> None:
        for child in reversed(self.children.values()):
            child.kill()
        for child in self.children.values():
            child.wait()
        self.children.clear()


def tail(log: Path, lines: int = 12) -> str:
    text = log.read_text(errors="replace") if log.exists() else ""
    return "\n".join(f"    {line[:300]}" for line in text.splitlines()[-lines:])


def _carries(pid: int, directory: Path) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"{MARK}={directory}".encode() in environment


def find_processes(directory: Path) -> list[int]:
    """Every living process of the lab with this state directory."""
    pids = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and int(p.name) != os.getpid()]
    return sorted(pid for pid in pids if _carries(pid, directory))


def end_processes(directory: Path, *, patience_s: float = 20.0) -> int:
    """Kill every process of this lab and wait until they are gone; the number that was found."""
    found, deadline = 0, time.monotonic() + patience_s
    while pids := find_processes(directory):
        found = max(found, len(pids))
        for pid in pids:
            _kill(pid, directory)
        if time.monotonic() > deadline:
            raise OutsideError(f"processes do not end: {pids}", where=f"lab {directory.name}")
    return found


def _kill(pid: int, directory: Path) -> None:
    # A pidfd names one process for good: look once more through it, then the signal cannot hit another.
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            if _carries(pid, directory):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                select.select([descriptor], [], [], 5.0)
        finally:
            os.close(descriptor)
