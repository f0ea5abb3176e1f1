"""How things are timed: interleaved repeats, and the median, so that a busy moment hits both sides alike."""

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """Ours beside a yardstick."""

    what: str
    ours: float
    yardstick: str
    theirs: float

    def __str__(self) -> str:
        ratio = self.ours / self.theirs
        return (
            f"{self.what}: {self.ours * 1000:.1f} ms; {self.yardstick}: {self.theirs * 1000:.1f} ms; ratio {ratio:.2f}"
        )


def compare(ours: Callable[[], object], theirs: Callable[[], object], *, repeats: int) -> tuple[float, float]:
    """Median seconds of both, taken in turns."""
    samples: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for action, taken in zip((ours, theirs), samples, strict=True):
            started = time.perf_counter()
            action()
            taken.append(time.perf_counter() - started)
    return statistics.median(samples[0]), statistics.median(samples[1])
