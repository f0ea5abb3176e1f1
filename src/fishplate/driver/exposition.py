"""Counters, gauges and histograms, and Prometheus' text format (version 0.0.4) for them.

The usual library would be 3.3 MB of a driver that may have 58, with the web server it brings along; this is what the
driver uses of it. One event loop, no threads but the scanner's, which touches a histogram of its own.
"""

import contextlib
import math
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Generic, Literal, Protocol, TypeVar


class _Series(Protocol):
    def lines(self, name: str, labels: str) -> Iterator[str]: ...


S = TypeVar("S", bound=_Series)
Kind = Literal["counter", "gauge", "histogram"]


class Family(Generic[S]):
    """All series of one name, told apart by their labels' values."""

    def __init__(self, kind: Kind, name: str, text: str, labels: Sequence[str], make: type[S]) -> None:
        self.name = name
        self._kind = kind
        self._text = text
        self._labels = tuple(labels)
        self._make = make
        self._series: dict[tuple[str, ...], S] = {}
        if not labels:
            self.of()  # a series without labels is there from the start, with 0

    def of(self, *values: str) -> S:
        found = self._series.get(values)
        if found is None:
            if len(values) != len(self._labels):
                raise ValueError(f"{self.name} has the labels {self._labels}, not {values}")
            found = self._series[values] = self._make()
        return found

    def expose(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self._text}"
        yield f"# TYPE {self.name} {self._kind}"
        for values, series in sorted(self._series.items()):
            pairs = (f'{label}="{_escape(value)}"' for label, value in zip(self._labels, values, strict=True))
            yield from series.lines(self.name, ",".join(pairs))


class Number:
    """A counter or a gauge."""

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self) -> None:
        self.value += 1

    def set(self, value: float) -> None:
        self.value = float(value)

    def lines(self, name: str, labels: str) -> Iterator[str]:
        yield f"{name}{_braces(labels)} {_number(self.value)}"


class Histogram:
    # From a device node added in memory to a claim that waits for the API server, in seconds.
    BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, math.inf)

    def __init__(self) -> None:
        self._counts = [0] * len(self.BOUNDS)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self.BOUNDS, value)] += 1
        self._sum += value

    @contextlib.contextmanager
    def time(self) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.observe(time.perf_counter() - began)

    def lines(self, name: str, labels: str) -> Iterator[str]:
        total = 0
        before = f"{labels}," if labels else ""
        for bound, count in zip(self.BOUNDS, self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{{before}le="{_number(bound)}"}} {total}'
        yield f"{name}_sum{_braces(labels)} {_number(self._sum)}"
        yield f"{name}_count{_braces(labels)} {total}"


def _braces(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def _number(value: float) -> str:
    return "+Inf" if value == math.inf else repr(float(value))


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
