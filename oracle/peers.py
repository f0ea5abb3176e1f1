"""The other ends of the driver's wires, in Go and real: builds them when asked, and talks to them in JSON lines.

nri-0.6, nri-0.12   containerd's NRI adaptation, before and after events got methods of their own
kubelet             the kubelet's client code over grpc-go
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_BUILT = HERE.parent / "build" / "oracle"
_LINE = 64 << 20  # the longest answer

# Peer → its directory, module file and build tags.
PEERS = {
    "nri-0.6": ("nri", "modules/0.6.mod", "nri06"),
    "nri-0.12": ("nri", "modules/0.12.mod", "nri012"),
    "kubelet": ("kubelet", "go.mod", ""),
}


def have_go() -> bool:
    return shutil.which("go") is not None


def build(peer: str) -> Path:
    """The peer's binary, named by what it was built from; made when it is not there."""
    folder, modules, tags = PEERS[peer]
    source = HERE / folder
    digest = hashlib.sha256(peer.encode())
    for path in [*sorted(source.glob("*.go")), source / modules, (source / modules).with_suffix(".sum")]:
        digest.update(path.read_bytes())
    binary = _BUILT / f"{peer}-{digest.hexdigest()[:16]}"
    if not binary.exists():
        _BUILT.mkdir(parents=True, exist_ok=True)
        fresh = binary.with_suffix(f".{os.getpid()}")
        command = ["go", "build", "-trimpath", f"-modfile={modules}", f"-tags={tags}", "-ldflags=-s -w"]
        subprocess.run(
            [*command, "-o", str(fresh), "."], cwd=source, env={**os.environ, "CGO_ENABLED": "0"}, check=True
        )
        fresh.replace(binary)
    return binary


class PeerError(Exception):
    """The peer's own words."""


class Peer:
    """One process of a peer.

    async with Peer(binary) as runtime:
        await runtime.ask("start", socket=...)
    """

    def __init__(self, binary: Path) -> None:
        self._binary = binary
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Peer:
        self._process = await asyncio.create_subprocess_exec(
            self._binary, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=_LINE
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """As a crash would: nothing is said goodbye to."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def ask(self, op: str, **fields: object) -> Any:  # noqa: ANN401
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op, **fields}).encode() + b"\n")
        reply = json.loads(await self._process.stdout.readline())
        if "error" in reply:
            raise PeerError(reply["error"])
        return reply["answer"]
