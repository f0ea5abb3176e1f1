"""Loading the slices of a whole fleet from JSON: ours, beside Kubernetes' own decoder and Python's.

Time and memory are taken from processes that have nothing else to do: a fresh Python and the oracle. Both hold the
file's bytes first; then the growth of their resident memory is read from outside, after the real decoder's process gave
back what it could.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks.bench_allocate import make_fleet
from benchmarks.measure import Row
from oracle.client import Oracle

_NODES = 10_000
_MINOR = "1.36"
_ROUNDS = 3
_LOADER = """
import sys, time
from pathlib import Path
from fishplate.k8s.bulk import decode_slices
data = Path(sys.argv[1]).read_bytes()
print(len(data), flush=True)
sys.stdin.readline()
started = time.perf_counter()
held = decode_slices(data)
print(time.perf_counter() - started, len(held), flush=True)
sys.stdin.readline()
"""


class _Load(NamedTuple):
    seconds: float
    grown: float
    slices: int


def run() -> list[object]:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "slices.json"
        fleet = make_fleet(_NODES)["slices"]
        items = [{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", **one} for one in fleet]
        whole = {"kind": "ResourceSliceList", "apiVersion": "resource.k8s.io/v1", "items": items}
        file.write_bytes(msgspec.json.encode(whole))
        plain = statistics.median(_time_plain(file.read_bytes()) for _ in range(_ROUNDS))
        if shutil.which("go") is None:
            ours = _load(file)
            return [Row(f"{ours.slices} slices", ours.seconds, "json.loads into dicts", plain), "the rest needs Go"]
        pairs = [(_load(file), _load_really(file)) for _ in range(_ROUNDS)]
        return [*_compare(pairs, file.stat().st_size / 1e6, plain)]


def _compare(pairs: list[tuple[_Load, _Load]], size: float, plain: float) -> list[object]:
    ours, theirs = (statistics.median(pair[side].seconds for pair in pairs) for side in (0, 1))
    held, held_there = (statistics.median(pair[side].grown for pair in pairs) for side in (0, 1))
    counts = {load.slices for pair in pairs for load in pair}
    assert len(counts) == 1, counts
    faster = statistics.median(real.seconds / own.seconds for own, real in pairs)
    smaller = statistics.median(real.grown / own.grown for own, real in pairs)
    return [
        Row(f"{counts.pop()} slices, {size:.0f} MB of JSON", ours, "the decoder of client-go", theirs),
        f"{faster:.1f} times as fast",
        f"held: {held:.0f} MB; there: {held_there:.0f} MB; {smaller:.1f} times as little",
        Row("the same", ours, "json.loads into dicts", plain),
    ]


def _time_plain(data: bytes) -> float:
    started = time.perf_counter()
    json.loads(data)
    return time.perf_counter() - started


def _load(file: Path) -> _Load:
    argv = [sys.executable, "-c", _LOADER, str(file)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as loader:
        assert loader.stdin is not None
        assert loader.stdout is not None
        loader.stdout.readline()
        before = _resident(loader.pid)
        print(file=loader.stdin, flush=True)
        seconds, count = loader.stdout.readline().split()
        return _Load(float(seconds), _resident(loader.pid) - before, int(count))


def _load_really(file: Path) -> _Load:
    with Oracle(_MINOR) as oracle:
        oracle.ask({"op": "load-read", "file": str(file)})
        before = _resident(oracle.pid)
        answer = oracle.ask({"op": "load-slices"})
        return _Load(answer["nanos"] / 1e9, _resident(oracle.pid) - before, answer["slices"])


def _resident(pid: int) -> float:
    """MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmRSS:"))
