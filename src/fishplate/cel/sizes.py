"""Ranges of sizes and costs, in saturating 64-bit arithmetic, and the sizes a device can have."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

TOP = 2**64 - 1

# Maximum sizes from k8s.io/api/resource/v1; at most 32 attributes and capacities a device.
_DOMAIN, _ID, _DRIVER, _VALUE, _ENTRIES = 63, 32, 63, 64, 32


def add(left: int, right: int) -> int:
    return min(left + right, TOP)


def multiply(left: int, right: int) -> int:
    return min(left * right, TOP)


def scale(value: int, factor: float) -> int:
    """Rounded up, in doubles, as upstream computes it."""
    number = float(value)
    if number > 0 and factor > 0 and number > TOP / factor:
        return TOP
    scaled = ceil(number * factor)
    return TOP if scaled >= 2**64 else scaled


class Range(NamedTuple):
    """The least and the most; sizes and costs alike."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        return Range(add(self.low, other.low), add(self.high, other.high))

    def times(self, other: Range) -> Range:
        return Range(multiply(self.low, other.low), multiply(self.high, other.high))

    def scaled(self, factor: float) -> Range:
        return Range(scale(self.low, factor), scale(self.high, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))


UNKNOWN = Range(0, TOP)
ZERO = Range(0, 0)
ONE = Range(1, 1)


def fixed(size: int) -> Range:
    return Range(size, size)


class _Declared(NamedTuple):
    """A declared type with its maximum size; of a map, also its key and element."""

    size: int
    key: _Declared | None = None
    element: _Declared | None = None
    leaf: bool = False


_ATTRIBUTE = _Declared(_VALUE, leaf=True)
_FIELDS = {
    "driver": _Declared(_DRIVER),
    "attributes": _Declared(_ENTRIES, _Declared(_DOMAIN), _Declared(_ENTRIES, _Declared(_ID), _ATTRIBUTE)),
    # Quantities declare no size, which reads as none.
    "capacity": _Declared(_ENTRIES, _Declared(_DOMAIN), _Declared(_ENTRIES, _Declared(_ID), _Declared(0))),
    "allowMultipleAllocations": _Declared(1),
}


def declared_size(path: tuple[str, ...] | None) -> Range | None:
    """The size of what a path such as (device, attributes, @values, model) leads to, if declarations tell."""
    if not path or path[0] != "device":
        return None
    node: _Declared | None = _Declared(0)
    fields = _FIELDS
    for step in path[1:]:
        assert node is not None
        if step in ("@items", "@values"):
            node = node.element
        elif step == "@keys":
            node = node.key
        elif step in fields:
            node = fields[step]
        elif node.element is not None and node.element.leaf:
            node = node.element
        else:
            node = None
        if node is None:
            return None
        fields = {}
    assert node is not None
    return Range(0, node.size)
