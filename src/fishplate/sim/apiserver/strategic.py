"""Strategic merge patch: lists merge by the key that the type names, and directives say what JSON cannot.

Directives: `$patch: replace|delete|merge` in an object or as a list item, `$deleteFromPrimitiveList/F`,
`$setElementOrder/F` and `$retainKeys`.
"""

from fishplate.sim.apiserver.status import bad_request
from fishplate.sim.apiserver.types import Field, Shape
from fishplate.sim.apiserver.values import Value

_PATCH = "$patch"
_DELETE = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"


def strategic_patch(shape: Shape | None, target: Value, patch: Value) -> Value:
    """The patched copy of a map or structure. Fields that the type does not know merge as in a merge patch."""
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {key: one for key, one in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"Unknown patch type found: {directive}")
    merged = dict(target)
    if _RETAIN in patch:
        merged = {key: one for key, one in merged.items() if key in patch[_RETAIN]}
    orders = {key.removeprefix(_ORDER): one for key, one in patch.items() if key.startswith(_ORDER)}
    for key, one in patch.items():
        if key.startswith(_DELETE):
            name = key.removeprefix(_DELETE)
            merged[name] = [item for item in merged.get(name) or () if item not in one]
        elif key in (_PATCH, _RETAIN) or key.startswith(_ORDER):
            continue
        elif one is None:
            merged.pop(key, None)
        else:
            merged[key] = _patch_field(shape, key, merged.get(key), one)
            field = shape.fields.get(key) if shape is not None and shape.kind == "struct" else None
            if isinstance(one, list) and field is not None and field.merges:
                merged[key] = _sort(field, merged[key], orders.pop(key, one), target.get(key) or [])
    for name, order in orders.items():
        field = shape.fields.get(name) if shape is not None else None
        if merged.get(name) and field is not None:
            merged[name] = _sort(field, merged[name], order, target.get(name) or [])
    return merged


def _patch_field(shape: Shape | None, key: str, old: Value, patch: Value) -> Value:
    field = shape.fields.get(key) if shape is not None and shape.kind == "struct" else None
    below = field.shape if field else (shape.item if shape is not None and shape.kind == "map" else None)
    if isinstance(patch, dict):
        return strategic_patch(below, old if isinstance(old, dict) else {}, patch)
    if isinstance(patch, list) and field is not None and field.merges:
        return _merge_list(field, old or [], patch)
    if isinstance(patch, list):
        return [one for one in patch if not (isinstance(one, dict) and one.get(_PATCH) == "replace")]
    return patch


def _merge_list(field: Field, old: list[Value], patch: list[Value]) -> list[Value]:
    if not field.merge_key:
        return old + [one for one in patch if one not in old]
    if any(one.get(_PATCH) == "replace" for one in patch):
        return [one for one in patch if _PATCH not in one]
    merged = list(old)
    for one in patch:
        key = one.get(field.merge_key)
        if key is None:
            raise bad_request(f"map: {one} does not contain declared merge key: {field.merge_key}")
        places = [i for i, item in enumerate(merged) if item.get(field.merge_key) == key]
        if one.get(_PATCH) == "delete":
            merged = [item for i, item in enumerate(merged) if i not in places]
        elif places:
            merged[places[0]] = strategic_patch(field.shape.inner, merged[places[0]], one)
        else:
            merged.append(strategic_patch(field.shape.inner, {}, one))
    return merged


def _sort(field: Field, items: list[Value], order: list[Value], before: list[Value]) -> list[Value]:
    """Items that the order names come in that order; an item of the server's goes before one that it stood before."""

    def name(item: Value) -> Value:
        return item.get(field.merge_key) if field.merge_key else item

    wanted, known = [name(one) for one in order], [name(one) for one in before]
    ours = sorted((item for item in items if name(item) in wanted), key=lambda item: wanted.index(name(item)))
    theirs = [item for item in items if name(item) not in wanted]
    out: list[Value] = []
    while ours and theirs:
        left, right = name(theirs[0]), name(ours[0])
        first = right in known and left in known and known.index(left) < known.index(right)
        out.append(theirs.pop(0) if first else ours.pop(0))
    return out + ours + theirs
