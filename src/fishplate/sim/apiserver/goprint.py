"""Values as Go prints them in messages: the JSON of the API server's internal structures, every field, capitalised."""

import msgspec

from fishplate.sim.apiserver.types import Shape
from fishplate.sim.apiserver.values import Value

# Where the internal name is not the JSON name with a capital.
_NAMES = {
    "int": "IntValue",
    "bool": "BoolValue",
    "string": "StringValue",
    "version": "VersionValue",
    "ints": "IntValues",
    "bools": "BoolValues",
    "strings": "StringValues",
    "versions": "VersionValues",
    "ips": "IPs",
    "cel": "CEL",
    "uid": "UID",
}


def _capital(name: str) -> str:
    return _NAMES.get(name, name[:1].upper() + name[1:])


def _rebuild(shape: Shape, value: Value) -> Value:
    match shape.kind:
        case "struct" if isinstance(value, dict):
            out = {}
            for field in shape.fields.values():
                if field.shape.name == "meta.v1.ObjectMeta" and not value.get(field.name):
                    continue  # embedded, and left out when empty
                given = value.get(field.name)
                plain = {"string": "", "bool": False, "int64": 0, "int32": 0}.get(field.shape.kind)
                empty = None if field.pointer else plain
                out[_capital(field.name)] = _rebuild(field.shape, given) if given is not None else empty
            return out
        case "list" if value:
            return [_rebuild(shape.inner, one) for one in value]
        case "map" if value:
            return {key: _rebuild(shape.inner, one) for key, one in value.items()}
    return value


def print_value(shape: Shape, value: Value) -> str:
    return msgspec.json.encode(_rebuild(shape, value)).decode()
