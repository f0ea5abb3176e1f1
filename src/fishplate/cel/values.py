"""Run-time values and what every value can do: be equal, be ordered, have a size, have a type.

Python's own types stand for CEL's where they fit: bool, int, float, str, bytes, None, tuple for lists. Python thinks
that True equals 1 and that 1 equals 1.0 exactly; CEL does not, so equality always goes through `equal`.

Errors are values too (`Err`), as in cel-go: `false && error` is false, so an error must be able to travel.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias

from fishplate.k8s.quantity import Quantity
from fishplate.k8s.semver import Semver

if TYPE_CHECKING:
    from collections.abc import Iterator

# Deliberately wide: CEL is dynamically typed at run time, and every use narrows by isinstance.
Value: TypeAlias = object

MAX_INT: Final = 2**63 - 1
MIN_INT: Final = -(2**63)
MAX_UINT: Final = 2**64 - 1


class Uint(int):
    """An unsigned integer; its own type, because 1 and 1u are different map keys and different overloads."""

    __slots__ = ()


class Err:
    """An error on its way to being absorbed or reported."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def __repr__(self) -> str:
        return f"Err({self.message!r})"


NO_SUCH_OVERLOAD: Final = Err("no such overload")


class TypeValue:
    """A type as a value: what `type(x)` returns."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Optional:
    __slots__ = ("present", "value")

    def __init__(self, value: Value = None, *, present: bool = True) -> None:
        self.value = value
        self.present = present


NONE: Final = Optional(present=False)


class Duration:
    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos


class Timestamp:
    """Nanoseconds since the epoch, and the offset from UTC it was written with."""

    __slots__ = ("nanos", "offset")

    def __init__(self, nanos: int, offset: int = 0) -> None:
        self.nanos = nanos
        self.offset = offset


class SumQuantity(Quantity):
    """A quantity made by add() or sub(). Upstream returns these behind a pointer, and its equality knows only plain
    quantities on the right: `q == a.add(b)` is an error, `a.add(b) == q` is not."""

    __slots__ = ()


class Opaque:
    """The Kubernetes values (addresses, networks, URLs, formats) that equal only their own kind."""

    __slots__ = ()
    type_name = ""

    def same(self, other: Value) -> bool:
        raise NotImplementedError

    def size(self) -> int:
        return 1


class CelMap:
    """An immutable map. Keys are kept apart by type, then found across numeric types as CEL wants."""

    __slots__ = ("entries",)

    def __init__(self, entries: dict[tuple[type, Value], tuple[Value, Value]]) -> None:
        self.entries = entries

    @staticmethod
    def of(pairs: dict[str, Value]) -> CelMap:
        return CelMap({(str, key): (key, value) for key, value in pairs.items()})

    def __len__(self) -> int:
        return len(self.entries)

    def items(self) -> Iterator[tuple[Value, Value]]:
        return iter(self.entries.values())

    def find(self, key: Value) -> tuple[Value] | None:
        """A one-tuple with the value, or None; the tuple keeps a present null apart from absence."""
        for candidate in _key_candidates(key):
            entry = self.entries.get(candidate)
            if entry is not None:
                return (entry[1],)
        return None

    def contains(self, key: Value) -> bool:
        return self.find(key) is not None

    def with_entry(self, key: Value, value: Value) -> CelMap:
        return CelMap(self.entries | {(type(key), key): (key, value)})


class DomainMap(CelMap):
    """device.attributes and device.capacity: an unknown domain is an empty map, although `in` denies it."""

    __slots__ = ()

    def find(self, key: Value) -> tuple[Value] | None:
        return super().find(key) or (EMPTY_MAP,)

    def contains(self, key: Value) -> bool:
        return super().find(key) is not None


EMPTY_MAP: Final = CelMap({})


class GrowingList:
    """Only ever seen as the left side of `+` in an accumulation."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[Value] = []


class GrowingMap(CelMap):
    __slots__ = ()

    def with_entry(self, key: Value, value: Value) -> CelMap:
        self.entries[(type(key), key)] = (key, value)
        return self


def _key_candidates(key: Value) -> list[tuple[type, Value]]:
    kind = type(key)
    if kind is float and isinstance(key, float):
        found: list[tuple[type, Value]] = [(float, key)]
        if key.is_integer() and MIN_INT < key < MAX_INT:
            found.append((int, int(key)))
        if key.is_integer() and 0 <= key < 2.0**64:
            found.append((Uint, Uint(int(key))))
        return found
    if kind is int and isinstance(key, int):
        return [(int, key), (Uint, key)] if key >= 0 else [(int, key)]
    if kind is Uint and isinstance(key, int):
        return [(Uint, key), (int, int(key))] if key <= MAX_INT else [(Uint, key)]
    if kind in (str, bool):
        return [(kind, key)]
    return []


_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    tuple: "list",
    CelMap: "map",
    DomainMap: "map",
    GrowingMap: "map",
    GrowingList: "list",
    Optional: "optional_type",
    TypeValue: "type",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    Semver: "kubernetes.Semver",
    Quantity: "kubernetes.Quantity",
    SumQuantity: "kubernetes.Quantity",
    Err: "error",
}


def type_name(value: Value) -> str:
    if isinstance(value, Opaque):
        return value.type_name
    return _NAMES[type(value)]


def size_of(value: Value) -> int | None:
    """What size() says and what costs count; None for values that have no size."""
    if isinstance(value, str | bytes | tuple | CelMap):
        return len(value)
    if isinstance(value, Opaque) and value.type_name in ("net.IP", "net.CIDR"):
        return value.size()
    return None


_NUMBERS = (int, Uint, float)


def equal(left: Value, right: Value) -> bool | Err:
    if left is None or right is None:
        return left is right
    kind = type(left)
    if kind in _NUMBERS:
        return type(right) in _NUMBERS and compare(left, right) == 0
    if kind is str or kind is bool or kind is bytes:
        return type(right) is kind and left == right
    if isinstance(left, tuple):
        return isinstance(right, tuple) and _equal_lists(left, right)
    if isinstance(left, CelMap):
        return isinstance(right, CelMap) and _equal_maps(left, right)
    if isinstance(left, Optional):
        if not (isinstance(right, Optional) and left.present and right.present):
            return isinstance(right, Optional) and left.present == right.present
        return equal(left.value, right.value)
    if isinstance(left, TypeValue):
        return isinstance(right, TypeValue) and left.name == right.name
    if isinstance(left, Duration):
        return isinstance(right, Duration) and left.nanos == right.nanos
    if isinstance(left, Timestamp):
        return isinstance(right, Timestamp) and left.nanos == right.nanos
    return _equal_kubernetes(left, right)


def _equal_kubernetes(left: Value, right: Value) -> bool | Err:
    """Kubernetes' own types refuse to be compared with others, where CEL's say false."""
    if isinstance(left, Quantity):
        return left == right if type(right) is Quantity else NO_SUCH_OVERLOAD
    if isinstance(left, Semver):
        return left == right if isinstance(right, Semver) else NO_SUCH_OVERLOAD
    if isinstance(left, Opaque):
        return left.same(right) if type(right) is type(left) else NO_SUCH_OVERLOAD
    return NO_SUCH_OVERLOAD


def _equal_lists(left: tuple[Value, ...], right: tuple[Value, ...]) -> bool:
    # Elements that cannot be compared count as equal: upstream only looks for a plain false.
    return len(left) == len(right) and not any(equal(one, two) is False for one, two in zip(left, right, strict=True))


def _equal_maps(left: CelMap, right: CelMap) -> bool:
    if len(left) != len(right):
        return False
    for key, value in left.items():
        found = right.find(key)
        if found is None or equal(value, found[0]) is False:
            return False
    return True


def compare(left: Value, right: Value) -> int | Err:
    """-1, 0 or 1, or an error for values without an order."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS:
        return _compare_numbers(left, right) if other in _NUMBERS else NO_SUCH_OVERLOAD
    if kind is not other:
        return NO_SUCH_OVERLOAD
    if isinstance(left, str) and isinstance(right, str):
        # Go compares UTF-8 bytes, which is the order of code points.
        return (left > right) - (left < right)
    if isinstance(left, bool) and isinstance(right, bool):
        return left - right
    if isinstance(left, bytes) and isinstance(right, bytes):
        return (left > right) - (left < right)
    if isinstance(left, Duration | Timestamp) and isinstance(right, Duration | Timestamp):
        return (left.nanos > right.nanos) - (left.nanos < right.nanos)
    return NO_SUCH_OVERLOAD


def _compare_numbers(left: Value, right: Value) -> int | Err:
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    if isinstance(left, float) or isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return Err("NaN values cannot be ordered")
        if not _outside(left, right):
            # Within range, upstream converts the integer to a double first, losing what a double cannot hold.
            left, right = float(left), float(right)
    return (left > right) - (left < right)


def _outside(left: float, right: float) -> bool:
    """A double beyond the other side's integer range decides by itself."""
    for double, number in ((left, right), (right, left)):
        if isinstance(double, float) and not isinstance(number, float):
            low, high = (0, MAX_UINT) if isinstance(number, Uint) else (MIN_INT, MAX_INT)
            return not float(low) <= double <= float(high)
    return False


def comparable(value: Value) -> bool:
    return type(value) in _COMPARABLE


_COMPARABLE = frozenset((bool, int, Uint, float, str, bytes, Duration, Timestamp))
