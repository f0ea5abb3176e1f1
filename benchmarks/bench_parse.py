"""Reading 100 MB of benchmark log, beside counting its lines; and what it holds in memory meanwhile."""

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Row, compare
from fishplate.bench.lines import Readable
from fishplate.bench.log import parse_log

_BYTES = 100_000_000
_PREFIX = b"[pod/nccl-test-launcher-x7k2p/launcher] 2026-03-01T12:13:14.000000001Z [1,%d]<stdout>:"
_NCCL = (
    b"nccl-test-worker-%d:70:90 [0] NCCL INFO Channel %02d/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n",
    b"nccl-test-worker-%d:70:90 [0] NCCL INFO Trees [%d] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1\n",
    b"nccl-test-worker-%d:70:90 [0] NCCL INFO [Proxy Progress] Device 0 CPU core %d\n",
)
_HEAD = b"""# nccl-tests version 2.19.6 nccl-headers=23007 nccl-library=23007
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 536870912 maxBytes 8589934592 step: 2(factor) warmup iters: 1 iters: 20
#  Rank  0 Group  0 Pid     77 on nccl-test-worker-0 device  0 [0008:06:00] NVIDIA GB300
#  Rank  1 Group  0 Pid     77 on nccl-test-worker-1 device  0 [0008:06:00] NVIDIA GB300
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
"""
_HALF = b"  9587.1   56.00   56.00     N/A"
_ROW = b"   536870912     134217728     float     sum      -1" + 2 * _HALF + b"\n"


class _Made:
    """A log of a given length, made while it is read: nothing of it lies in memory."""

    def __init__(self, size: int, *, rows: bool = False) -> None:
        self._left = size
        self._lines = self._make(rows)
        self._rest = b""

    def read(self, size: int = -1, /) -> bytes:
        size = self._left if size < 0 else min(size, self._left)
        parts, held = [self._rest], len(self._rest)
        while held < size:
            parts.append(next(self._lines))
            held += len(parts[-1])
        made = b"".join(parts)
        found, self._rest = made[:size], made[size:]
        self._left -= len(found)
        return found

    @staticmethod
    def _make(rows: bool) -> Iterator[bytes]:
        prefix = _PREFIX % 0
        yield b"".join(prefix + line for line in _HEAD.splitlines(keepends=True))
        number = 0
        while True:
            number += 1
            yield prefix + (_ROW if rows else _NCCL[number % 3] % (number % 2, number % 32))


def count_lines(stream: Readable) -> int:
    """The yardstick: as little as a program that looks at every line can do."""
    text = io.TextIOWrapper(io.BytesIO(stream.read()), errors="replace")
    return sum(1 for _ in text)


def run() -> list[object]:
    data = _Made(_BYTES).read()
    ours, theirs = compare(lambda: parse_log(io.BytesIO(data), "log"), lambda: count_lines(io.BytesIO(data)), repeats=2)
    row = Row(
        f"{_BYTES / 1e6:.0f} MB of NCCL's log, {data.count(10)} lines", ours, "decoding and counting lines", theirs
    )
    rate = f"{_BYTES / 1e6 / ours:.0f} MB/s"
    held = [f"held while reading 100 MB of {kind}: {_measure(kind):.0f} MB" for kind in ("nothing", "lines", "rows")]
    return [row, rate, *held]


def _measure(kind: str) -> float:
    """The most memory of a process of its own that reads such a log."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_parse", kind], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main(kind: str) -> None:
    if kind != "nothing":
        parse_log(_Made(_BYTES, rows=kind == "rows"), "log")
    # getrusage would tell the parent's size too: the kernel keeps that figure across exec.
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(int(peak.split()[1]) * 1024 / 1e6)


if __name__ == "__main__":
    main(sys.argv[1])
