"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386)."""

from fishplate.sim.apiserver.status import ApiError, bad_request
from fishplate.sim.apiserver.values import Object, Value

_MAX_OPERATIONS = 10_000


def merge_patch(target: Value, patch: Value) -> Value:
    """Null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, one in patch.items():
        if one is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), one)
    return merged


class _PatchError(Exception):
    pass


def json_patch(target: Value, operations: Value) -> Value:
    """The patched copy; 422 if an operation does not apply, with as few words as the real one has."""
    if not isinstance(operations, list):
        name = "object" if isinstance(operations, dict) else "value"
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {name} into Go value of type []handlers.jsonPatchOp"
        )
    if len(operations) > _MAX_OPERATIONS:
        said = f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, got {len(operations)}"
        raise ApiError(413, said)
    target = _copy(target)
    try:
        for operation in operations:
            target = _apply(target, operation)
    except (_PatchError, KeyError, TypeError, AttributeError) as error:
        said = "the server rejected our request due to an error in our request"
        raise ApiError(422, said, details={}) from error
    return target


def _copy(value: Value) -> Value:
    match value:
        case dict():
            return {key: _copy(one) for key, one in value.items()}
        case list():
            return [_copy(one) for one in value]
    return value


def _apply(target: Value, operation: Object) -> Value:
    path = _parse(operation["path"])
    match operation["op"]:
        case "add":
            return _add(target, path, operation["value"])
        case "replace":
            _find(target, path)
            return _add(_remove(target, path), path, operation["value"]) if path else operation["value"]
        case "remove":
            return _remove(target, path)
        case "copy":
            return _add(target, path, _copy(_find(target, _parse(operation["from"]))))
        case "move":
            source = _parse(operation["from"])
            moved = _find(target, source)
            return _add(_remove(target, source), path, moved)
        case "test":
            if _find(target, path) != operation.get("value"):
                raise _PatchError(operation)
            return target
    raise _PatchError(operation)


def _parse(pointer: str) -> list[str]:
    if pointer == "":
        return []
    if not pointer.startswith("/"):
        raise _PatchError(pointer)
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def _index(items: list[Value], part: str, *, end: bool = False) -> int:
    if part == "-" and end:
        return len(items)
    if not part.isascii() or not part.isdigit() or int(part) > len(items) - (not end):
        raise _PatchError(part)
    return int(part)


def _find(target: Value, path: list[str]) -> Value:
    for part in path:
        target = target[_index(target, part)] if isinstance(target, list) else target[part]
    return target


def _add(target: Value, path: list[str], value: Value) -> Value:
    if not path:
        return value
    holder = _find(target, path[:-1])
    if isinstance(holder, list):
        holder.insert(_index(holder, path[-1], end=True), value)
    elif isinstance(holder, dict):
        holder[path[-1]] = value
    else:
        raise _PatchError(path)
    return target


def _remove(target: Value, path: list[str]) -> Value:
    holder = _find(target, path[:-1])
    if isinstance(holder, list):
        del holder[_index(holder, path[-1])]
    else:
        del holder[path[-1]]
    return target
