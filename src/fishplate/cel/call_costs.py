"""What one call costs at run time, by the sizes of its arguments and of its result.

Three sources, asked in this order, as upstream: cel-go's list and set extensions by overload, Kubernetes' libraries by
function name (k8s.io/apiserver/pkg/cel/library/cost.go), cel-go's standard library by overload.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from fishplate.cel.library.formats import Format
from fishplate.cel.tracker import Cancelled
from fishplate.cel.values import CelMap, Err, Opaque, Optional, Value, size_of, type_name
from fishplate.k8s.quantity import Quantity
from fishplate.k8s.semver import Semver

if TYPE_CHECKING:
    from collections.abc import Callable

STRING_FACTOR = 0.1
REGEX_FACTOR = 0.25
LIST_BASE = 10
MAP_BASE = 30

# Calls that cost one step, whatever they are given; and those that walk a list.
FLAT = frozenset(
    [
        "serviceAccount",
        "path",
        "group",
        "resource",
        "subresource",
        "namespace",
        "name",
        "allowed",
        "reason",
        "error",
        "errored",
        "masked",
        "prefixLength",
        "family",
        "isUnspecified",
        "isLoopback",
        "isLinkLocalMulticast",
        "isLinkLocalUnicast",
        "isGlobalUnicast",
        "format.named",
        "sign",
        "asInteger",
        "isInteger",
        "asApproximateFloat",
        "isGreaterThan",
        "isLessThan",
        "compareTo",
        "add",
        "sub",
        "major",
        "minor",
        "patch",
        "getScheme",
        "getHostname",
        "getHost",
        "getPort",
        "getEscapedPath",
        "getQuery",
    ]
)
TRAVERSED = frozenset(["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"])
_SCANNED = frozenset(
    [
        "url",
        "lowerAscii",
        "upperAscii",
        "substring",
        "trim",
        "cidr",
        "isIP",
        "isCIDR",
        "quantity",
        "isQuantity",
        "semver",
        "isSemver",
    ]
)


def plain_size(value: Value) -> int:
    size = size_of(value)
    return 1 if size is None else size


def actual_size(value: Value) -> int:
    """As the standard library counts: an optional is as large as what it holds."""
    while isinstance(value, Optional) and value.present:
        value = value.value
    return plain_size(value)


def scan(size: float) -> int:
    return ceil(size * STRING_FACTOR)


def call_cost(function: str, overload: str, args: list[Value], result: Value, *, modern: bool) -> int:
    """`modern` is cel-go 0.29, which Kubernetes has from 1.37 on."""
    if function == "flatten":
        return _flattened(args, modern=modern)
    extension = _EXTENSIONS.get(overload)
    if extension is not None:
        return extension(args, result)
    cost = _kubernetes(function, overload, args, result, modern=modern)
    return _standard(overload, args, modern=modern) if cost is None else cost


def _kubernetes(function: str, overload: str, args: list[Value], result: Value, *, modern: bool) -> int | None:
    if function in FLAT or overload == "cidr_ip":
        return 1
    if not args:
        return None
    first = args[0]
    if function in TRAVERSED or (function == "includes" and modern):
        return _traversal(first)
    if function in _SCANNED or function == "ip":
        return scan(plain_size(first))
    match function:
        case "check":
            return 350000
        case "replace" | "split" | "ip.isCanonical":
            return ceil(plain_size(first) * 2 * STRING_FACTOR)
        case "join":
            return ceil(plain_size(result) * 2 * STRING_FACTOR)
        case "find" | "findAll" if len(args) >= 2:
            return _regex(plain_size(first), plain_size(args[1]))
        case "containsIP" | "containsCIDR" if len(args) >= 2:
            return _containment(function, overload, plain_size(first), plain_size(args[1]))
        case "validate" if len(args) >= 2 and isinstance(first, Format):
            return _regex(plain_size(args[1]), first.regex_size)
        case "_==_" if isinstance(first, Quantity | Semver | Opaque):
            return 1
    return None


def _regex(text: int, pattern: int) -> int:
    return ceil((1.0 + text) * STRING_FACTOR) * ceil(pattern * REGEX_FACTOR)


def _containment(function: str, overload: str, network: int, other: int) -> int:
    cost = scan(network + network)
    if function == "containsCIDR":
        cost += scan(network) + 1
    if overload in ("cidr_contains_ip_string", "cidr_contains_cidr_string"):
        cost += scan(other)
    return cost


def _traversal(value: Value) -> int:
    if isinstance(value, str):
        return int(len(value.encode()) * STRING_FACTOR)
    if isinstance(value, bytes):
        return int(len(value) * STRING_FACTOR)
    if isinstance(value, tuple):
        return sum(_traversal(item) for item in value)
    if isinstance(value, CelMap):
        return sum(_traversal(key) + _traversal(item) for key, item in value.items())
    return 1


# Comparisons whose cost is that of the shorter side.
COMPARISONS = frozenset(
    ["equals", "not_equals"]
    + [
        f"{name}_{kind}"
        for name in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    ]
)


def _standard(overload: str, args: list[Value], *, modern: bool) -> int:
    match overload:
        case "starts_with_string" | "ends_with_string":
            return scan(actual_size(args[1 if modern else 0]))
        case "string_to_bytes" | "bytes_to_string" | "strings_quote" | "string_format":
            return scan(actual_size(args[0]))
        case "in_list":
            return actual_size(args[1])
        case "add_string" | "add_bytes":
            return scan(actual_size(args[0]) + actual_size(args[1]))
        case "contains_string":
            return scan(actual_size(args[0])) * scan(actual_size(args[1]))
        case "matches_string":
            return _regex(actual_size(args[0]), actual_size(args[1]))
        case "matches" if modern:
            return _regex(actual_size(args[0]), actual_size(args[1]))
    if overload in COMPARISONS:
        return scan(min(actual_size(args[0]), actual_size(args[1])))
    return 1


def _allocated(factor: float, size: int) -> int:
    """In doubles, as upstream; what does not fit an unsigned integer becomes what amd64 makes of it."""
    amount = float(size) * float(factor)
    return (int(amount) % 2**64 if amount < 2.0**64 else 2**63) + 1 + LIST_BASE


def _output(args: list[Value], result: Value) -> int:
    return _allocated(1, plain_size(result))


def _flattened(args: list[Value], *, modern: bool) -> int:
    depth: Value = args[1] if len(args) == 2 else 1
    if type(depth) is not int:
        raise Cancelled(f"internal error: interface conversion: ref.Val is {_go_type(depth)}, not types.Int")
    if depth < 0 and modern:
        return _allocated(1, plain_size(args[0]))
    if depth < 0:
        return _allocated(depth, plain_size(args[0])) % 2**64
    return _allocated(depth, plain_size(args[0]))


def _compared(position: int) -> Callable[[list[Value], Value], int]:
    """Sorting and distinct: every element may meet every other."""

    def cost(args: list[Value], result: Value) -> int:
        items = args[position]
        if not isinstance(items, tuple):
            raise Cancelled(f"internal error: interface conversion: {_go_type(items)} is not traits.Lister")
        factor = 2.0
        if items and isinstance(items[0], str | bytes):
            factor += STRING_FACTOR
        return _allocated(factor, len(items) ** 2)

    return cost


def _sets(factor: int) -> Callable[[list[Value], Value], int]:
    return lambda args, result: 1 + plain_size(args[0]) * plain_size(args[1]) * factor


def _go_type(value: Value) -> str:
    return "*types.Err" if isinstance(value, Err) else type_name(value)


_SORTABLE = [
    "int",
    "uint",
    "double",
    "bool",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "string",
    "bytes",
]
_EXTENSIONS: dict[str, Callable[[list[Value], Value], int]] = {
    "list_slice": _output,
    "lists_range": _output,
    "list_reverse": _output,
    "list_distinct": _compared(0),
    **{f"list_{name}_sort": _compared(0) for name in _SORTABLE},
    **{f"list_{name}_sortByAssociatedKeys": _compared(1) for name in _SORTABLE},
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}
