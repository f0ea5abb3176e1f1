"""Builds the Go oracle of a minor version and talks to it: one JSON line for a question, one for the answer."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import resource
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

HERE = Path(__file__).parent
MINORS = ("1.34", "1.35", "1.36", "1.37")
_MEMORY = 6 * 2**30
_BUILT = HERE.parent / "build" / "oracle"


def is_built(minor: str) -> bool:
    """Whether a binary is there that was made from this very source."""
    return _binary(minor).exists() and _stamp(minor).exists() and _stamp(minor).read_text() == _digest(minor)


def build(minor: str) -> Path:
    """The oracle's binary, built if it has to be; the first time takes a minute or two and needs Go.

    Whoever comes while another process builds waits for it.
    """
    _BUILT.mkdir(parents=True, exist_ok=True)
    binary = _binary(minor)
    with (_BUILT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_built(minor):
            return binary
        digest = _digest(minor)
        fresh = _BUILT / f"fresh-{minor}"
        command = [
            *("go", "build", "-trimpath", f"-modfile=modules/{minor}.mod", f"-tags=k{minor.replace('.', '')}"),
            *("-ldflags", f"-s -w -X main.minor={minor}", "-o", str(fresh), "."),
        ]
        subprocess.run(command, cwd=HERE, env={**os.environ, "CGO_ENABLED": "0"}, check=True)
        fresh.replace(binary)
        _stamp(minor).write_text(digest)
    return binary


def _binary(minor: str) -> Path:
    return _BUILT / f"oracle-{minor}"


def _stamp(minor: str) -> Path:
    return _BUILT / f"oracle-{minor}.sha256"


def _digest(minor: str) -> str:
    """Of everything that goes into the binary, save Go itself."""
    parts = [*sorted(HERE.glob("*.go")), *sorted((HERE / "modules").glob(f"{minor}.*"))]
    whole = hashlib.sha256()
    for part in parts:
        content = part.read_bytes()
        whole.update(f"{part.name} {len(content)}\n".encode() + content)
    return whole.hexdigest()


class Oracle:
    """One oracle process. It keeps what it compiled nowhere: each question stands alone."""

    def __init__(self, minor: str) -> None:
        self.minor = minor
        self._process = subprocess.Popen(
            [build(minor)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        # The real code builds lists.range(n) before it counts what it costs; a bad question must not take the machine.
        resource.prlimit(self._process.pid, resource.RLIMIT_AS, (_MEMORY, _MEMORY))

    def __enter__(self) -> Oracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        return next(self.ask_all([question]))

    def ask_all(self, questions: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Answers in order."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for question in questions:
            self._process.stdin.write(json.dumps(question, ensure_ascii=False) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
            if not line:
                raise RuntimeError(f"oracle {self.minor} died (asked: {question})")
            reply = json.loads(line)
            if "error" in reply:
                raise RuntimeError(f"oracle {self.minor}: {reply['error']} (asked: {question})")
            yield reply["answer"]
