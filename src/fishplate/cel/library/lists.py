"""List and set functions: cel-go's lists and sets extensions, Kubernetes' lists library, map insertion."""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING

from fishplate.cel.operators import add, unsupported
from fishplate.cel.tracker import LIMIT_EXCEEDED, Cancelled
from fishplate.cel.values import (
    NO_SUCH_OVERLOAD,
    NONE,
    CelMap,
    Duration,
    Err,
    Optional,
    Uint,
    Value,
    comparable,
    compare,
    equal,
    size_of,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable

# A list attribute holds at most this many values; the 1.36 `includes` refuses longer lists outright.
_MOST_INCLUDED = 48
_LONGEST_RANGE = 1_000_000


def size(value: Value) -> Value:
    found = size_of(value)
    return unsupported("size", value) if found is None or type_name(value).startswith("net.") else found


def slice_list(items: tuple[Value, ...], start: int, end: int) -> Value:
    if start < 0 or end < 0:
        return Err(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        return Err(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        return Err(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def flatten(items: Value, depth: Value = 1) -> Value:
    if not isinstance(items, tuple) or type(depth) is not int:
        shown = "" if depth == 1 else type_name(depth)
        return Err(f"no such overload: {type_name(items)}.flatten({shown})")
    if depth < 0:
        return Err("level must be non-negative")
    return _flattened(items, depth)


def _flattened(items: tuple[Value, ...], depth: int) -> tuple[Value, ...]:
    out: list[Value] = []
    for item in items:
        if isinstance(item, tuple) and depth:
            out.extend(_flattened(item, depth - 1))
        else:
            out.append(item)
    return tuple(out)


def distinct(items: tuple[Value, ...]) -> Value:
    out: list[Value] = []
    for item in items:
        if not any(equal(item, seen) is True for seen in out):
            out.append(item)
    return tuple(out)


def reverse(items: tuple[Value, ...]) -> Value:
    return items[::-1]


def make_range(count: int) -> Value:
    if count > _LONGEST_RANGE:
        # Upstream would build the list and then find that it costs too much: a unit for each element, and eleven.
        raise Cancelled(LIMIT_EXCEEDED, count + 11)
    return tuple(range(count))


def make_limited_range(count: int) -> Value:
    if count < 0:
        return Err(f"lists.range: size must be non-negative, got {count}")
    if count > _LONGEST_RANGE:
        return Err(f"lists.range: size {count} exceeds maximum allowed ({_LONGEST_RANGE})")
    return tuple(range(count))


def sort(items: Value) -> Value:
    return sort_by(items, items) if isinstance(items, tuple) else unsupported("sort", items)


def sort_by(items: Value, keys: Value) -> Value:
    if not isinstance(items, tuple) or not isinstance(keys, tuple):
        return unsupported("@sortByAssociatedKeys", items)
    if len(items) != len(keys):
        return Err(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(items)} and {len(keys)} elements respectively"
        )
    if not items:
        return items
    if not comparable(keys[0]):
        return Err("list elements must be comparable")
    if len(items) > 1 and any(type(key) is not type(keys[0]) for key in keys):
        return Err("list elements must have the same type")

    def order(left: int, right: int) -> int:
        result = compare(keys[left], keys[right])
        return 0 if isinstance(result, Err) else result

    return tuple(items[index] for index in sorted(range(len(items)), key=cmp_to_key(order)))


def is_sorted(items: Value) -> Value:
    if not isinstance(items, tuple):
        return NO_SUCH_OVERLOAD
    for index, item in enumerate(items):
        if not comparable(item):
            return NO_SUCH_OVERLOAD
        if index and compare(items[index - 1], item) == 1:
            return False
    return True


def sum_of(zero: Value) -> Callable[[Value], Value]:
    def total(items: Value) -> Value:
        if not isinstance(items, tuple):
            return NO_SUCH_OVERLOAD
        result = zero
        for item in items:
            result = add(result, item)
            if isinstance(result, Err):
                return result
        return result

    return total


def extreme(name: str, preferred: int) -> Callable[[Value], Value]:
    """min and max: keep the first of equals, as upstream."""

    def find(items: Value) -> Value:
        if not isinstance(items, tuple):
            return NO_SUCH_OVERLOAD
        if not items:
            return Err(f"{name} called on empty list")
        best = items[0]
        for item in items:
            if not comparable(item):
                return NO_SUCH_OVERLOAD
            if compare(best, item) == preferred:
                best = item
        return best

    return find


def index_of(items: tuple[Value, ...], wanted: Value) -> Value:
    return next((index for index, item in enumerate(items) if equal(item, wanted) is True), -1)


def last_index_of(items: tuple[Value, ...], wanted: Value) -> Value:
    return next((index for index in range(len(items) - 1, -1, -1) if equal(items[index], wanted) is True), -1)


def sets_contains(items: tuple[Value, ...], wanted: tuple[Value, ...]) -> Value:
    return all(any(equal(one, item) is True for item in items) for one in wanted)


def sets_intersects(left: tuple[Value, ...], right: tuple[Value, ...]) -> Value:
    return any(equal(one, item) is True for one in left for item in right)


def sets_equivalent(left: tuple[Value, ...], right: tuple[Value, ...]) -> Value:
    return sets_contains(left, right) is True and sets_contains(right, left) is True


def includes(target: Value, wanted: Value) -> Value:
    if isinstance(target, tuple):
        return any(_equal_method(item, wanted) is True for item in target)
    return _equal_method(target, wanted) is True


def includes_short(target: Value, wanted: Value) -> Value:
    """The 1.36 form, which looks at no more values than a list attribute can hold."""
    if not isinstance(target, tuple):
        return _equal_method(target, wanted) is True
    for index, item in enumerate(target):
        if index >= _MOST_INCLUDED:
            return Err(f"'includes' function cannot be applied to lists longer than {_MOST_INCLUDED} values")
        if _equal_method(item, wanted) is True:
            return True
    return False


def _equal_method(left: Value, right: Value) -> bool | Err:
    return equal(left, right)


def first(items: tuple[Value, ...]) -> Value:
    return Optional(items[0]) if items else NONE


def last(items: tuple[Value, ...]) -> Value:
    return Optional(items[-1]) if items else NONE


def insert(target: CelMap, key: Value, value: Value) -> Value:
    if target.contains(key):
        return Err(f"insert failed: key {_key_text(key)} already exists")
    return target.with_entry(key, value)


def insert_all(target: CelMap, more: CelMap) -> Value:
    result: Value = target
    for key, value in more.items():
        assert isinstance(result, CelMap)
        result = insert(result, key, value)
        if isinstance(result, Err):
            return result
    return result


def _key_text(key: Value) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ZEROS = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}

OVERLOADS: dict[str, Callable[..., Value]] = {
    "lists_range": make_range,
    "list_slice": slice_list,
    "list_flatten": flatten,
    "list_flatten_int": flatten,
    "list_distinct": distinct,
    "list_reverse": reverse,
    "list_a_index_of_int": index_of,
    "list_a_last_index_of_int": last_index_of,
    "list_sets_contains_list": sets_contains,
    "list_sets_intersects_list": sets_intersects,
    "list_sets_equivalent_list": sets_equivalent,
    "list_includes_dyn_dyn": includes,
    "dra_includes_dyn_dyn": includes_short,
    "list_first": first,
    "list_last": last,
    "@mapInsert_map_key_value": insert,
    "@mapInsert_map_map": insert_all,
    **{f"list_{name}_is_sorted_bool": is_sorted for name in _COMPARABLE},
    **{f"list_{name}_max_{name}": extreme("max", -1) for name in _COMPARABLE},
    **{f"list_{name}_min_{name}": extreme("min", 1) for name in _COMPARABLE},
    **{f"list_{name}_sum_{name}": sum_of(zero) for name, zero in _ZEROS.items()},
}

# Where cel-go 0.29 (Kubernetes 1.37) differs.
MODERN: dict[str, Callable[..., Value]] = {"lists_range": make_limited_range}
