"""Objects seen as fields: what an apply says, how two objects differ, how an applied one joins a live one.

This is structured-merge-diff on our table of types: structures and granular maps merge by field, keyed lists by key,
sets by value, everything atomic is one value. Objects are conformed, except the applied one, which is as written.
"""

from typing import NamedTuple

from fishplate.sim.apiserver.fieldsets import Fields, item_key, show_keys, value_key
from fishplate.sim.apiserver.types import Field, Shape
from fishplate.sim.apiserver.values import Object, Value


class TypedError(Exception):
    """An applied object that does not fit its type; the text names the path."""


class Difference(NamedTuple):
    added: Fields
    modified: Fields
    removed: Fields


def _is_leaf(shape: Shape, field: Field | None) -> bool:
    """One value as far as ownership goes."""
    if shape.kind == "struct":
        return shape.atomic or (field is not None and field.topology == "atomic")
    if shape.kind == "map":
        return field is not None and field.topology == "atomic"
    if shape.kind == "list":
        return field is None or field.topology == "atomic"
    return True


def keys_of(field: Field, item: Value) -> Object:
    """The values of an item's keys; a key with a default has it where none is given."""
    found = {}
    for key in field.keys:
        value = item.get(key)
        if value is None:
            value = field.shape.inner.fields[key].default
        if value is not None:
            found[key] = value
    return found


def _items(field: Field, value: list[Value]) -> dict[str, Value]:
    """The items of a keyed list or a set under their path elements."""
    if field.topology == "set":
        return {value_key(one): one for one in value}
    return {item_key(keys_of(field, one)): one for one in value}


def _children(shape: Shape, field: Field | None, value: Value) -> list[tuple[str, Shape, Field | None, Value]]:
    """What lies one step below: path element, shape, field, value."""
    if shape.kind == "struct":
        known = shape.fields
        return [(f"f:{key}", known[key].shape, known[key], one) for key, one in value.items() if key in known]
    if shape.kind == "map":
        return [(f"f:{key}", shape.inner, None, one) for key, one in value.items()]
    assert field is not None
    return [(key, shape.inner, None, one) for key, one in _items(field, value).items()]


def collect_fields(shape: Shape, value: Value, field: Field | None = None) -> Fields:
    """The fields that an applied object mentions: its leaves, and the items of its lists with their keys."""
    fields = Fields()
    if _is_leaf(shape, field) or (not value and shape.kind != "list"):
        fields.here = True
        return fields
    for key, below, inner, one in _children(shape, field, value):
        node = collect_fields(below, one, inner)
        if key[0] != "f":
            node.here = True
        if node:
            fields.below[key] = node
    return fields


def _insert_all(fields: Fields, shape: Shape, field: Field | None, value: Value) -> None:
    """This path and every path below it."""
    fields.here = True
    if not _is_leaf(shape, field) and value:
        for key, below, inner, one in _children(shape, field, value):
            _insert_all(fields.child(key), below, inner, one)


def compare(shape: Shape, old: Value, new: Value) -> Difference:
    difference = Difference(Fields(), Fields(), Fields())
    _compare(difference, shape, None, old, new)
    return difference


def _compare(into: Difference, shape: Shape, field: Field | None, old: Value, new: Value) -> None:
    if old is new or old == new:
        return
    if _is_leaf(shape, field):
        into.modified.here = True
        return
    before = {key: (below, inner, one) for key, below, inner, one in _children(shape, field, old or {})}
    for key, below, inner, one in _children(shape, field, new or {}):
        known = before.pop(key, None)
        if known is None:
            _insert_all(into.added.child(key), below, inner, one)
        elif known[2] != one:
            nodes = [fields.below.get(key) or Fields() for fields in into]
            _compare(Difference(*nodes), below, inner, known[2], one)
            for fields, node in zip(into, nodes, strict=True):
                if node:
                    fields.below[key] = node
    for key, (below, inner, one) in before.items():
        _insert_all(into.removed.child(key), below, inner, one)


def merge(shape: Shape, live: Value, applied: Value, field: Field | None = None) -> Value:
    """The live object with the applied one laid over it."""
    if live is None or applied is None or _is_leaf(shape, field):
        return applied if applied is not None or field is not None else live
    if shape.kind == "list":
        assert field is not None
        return _merge_lists(shape, live, applied, field)
    merged = dict(live)
    for key, one in applied.items():
        below = shape.fields[key].shape if shape.kind == "struct" else shape.inner
        inner = shape.fields[key] if shape.kind == "struct" else None
        merged[key] = merge(below, live.get(key), one, inner) if key in live else one
    return merged


def _merge_lists(shape: Shape, live: list[Value], applied: list[Value], field: Field) -> list[Value]:
    """Applied items in their order; live ones that were not applied keep their places before what followed them."""
    ours, theirs = _items(field, live), _items(field, applied)
    out: list[Value] = []
    waiting = list(ours)
    for key, one in theirs.items():
        while waiting and waiting[0] not in theirs:
            out.append(ours[waiting.pop(0)])
        if key in ours:
            waiting.remove(key)
            out.append(merge(shape.inner, ours[key], one))
        else:
            out.append(one)
    return out + [ours[key] for key in waiting]


def remove_fields(shape: Shape, value: Value, gone: Fields, field: Field | None = None) -> Value:
    """The object without these paths and without what lies below them."""
    if _is_leaf(shape, field) or not gone.below:
        return value
    if shape.kind == "list":
        assert field is not None
        kept = []
        for key, one in _items(field, value).items():
            node = gone.below.get(key)
            if node is None:
                kept.append(one)
            elif not node.here:
                kept.append(remove_fields(shape.inner, one, node))
        return kept
    out = {}
    for key, one in value.items():
        node = gone.below.get(f"f:{key}")
        inner = shape.fields.get(key) if shape.kind == "struct" else None
        below = inner.shape if inner else shape.item
        if node is None or below is None:
            out[key] = one
        elif not node.here:
            out[key] = remove_fields(below, one, node, inner)
    return out


def check_typed(shape: Shape, value: Value, path: str = "", field: Field | None = None) -> None:
    """Refuse fields that the type does not have, and items of a list that share their keys."""
    if value is None or shape.kind == "json":
        return
    if shape.kind == "struct":
        _expect(isinstance(value, dict), path, "map", value)
        for key, one in value.items():
            inner = shape.fields.get(key)
            if inner is None:
                raise TypedError(f"{path}.{key}: field not declared in schema")
            check_typed(inner.shape, one, f"{path}.{key}", inner)
    elif shape.kind == "map":
        _expect(isinstance(value, dict), path, "map", value)
        for key, one in value.items():
            check_typed(shape.inner, one, f"{path}.{key}")
    elif shape.kind == "list":
        _expect(isinstance(value, list), path, "list", value)
        for one in value:
            check_typed(shape.inner, one, f"{path}[]")
        _check_unique(value, path, field)


def _expect(good: bool, path: str, wanted: str, value: Value) -> None:
    if not good:
        raise TypedError(f"{path}: expected {wanted}, got &{{{value}}}")


def _check_unique(value: list[Value], path: str, field: Field | None) -> None:
    if field is None or field.topology == "atomic":
        return
    seen: set[str] = set()
    for one in value:
        key = value_key(one) if field.topology == "set" else item_key(keys_of(field, one))
        if key in seen:
            shown = show_keys(keys_of(field, one)) if field.topology == "map" else f"[={key[2:]}]"
            raise TypedError(f"{path}: duplicate entries for key {shown}")
        seen.add(key)
