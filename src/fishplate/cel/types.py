"""Static types of CEL, written as the checker's messages write them: `map(string, list(int))`."""

from __future__ import annotations

from typing import Final

# Types whose run-time name is not what the checker prints.
_RUNTIME_NAMES = {
    "any": "google.protobuf.Any",
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
    "null": "null_type",
}
_SCALARS = ("bool", "bytes", "double", "int", "string", "uint", "dyn", "any", "null", "duration", "timestamp")
_OPAQUE = ("net.IP", "net.CIDR", "optional_type")


class Type:
    """`kind` is the scalar's own name, or list, map, type, struct, opaque, param, error. Equal by what it prints."""

    __slots__ = ("kind", "name", "params", "text")

    def __init__(self, kind: str, name: str, params: tuple[Type, ...] = ()) -> None:
        self.kind = kind
        self.name = name
        self.params = params
        self.text: str = f"{name}({', '.join(param.text for param in params)})" if params else name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.text == other.text and self.kind == other.kind

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Type({self.text})"

    @property
    def runtime_name(self) -> str:
        return _RUNTIME_NAMES.get(self.name, self.name)

    @property
    def declared(self) -> str:
        """As messages outside the checker print it, by run-time names."""
        if not self.params:
            return self.runtime_name
        return f"{self.runtime_name}({', '.join(param.declared for param in self.params)})"

    @property
    def is_dyn(self) -> bool:
        return self.kind in ("dyn", "any")

    @property
    def is_optional(self) -> bool:
        return self.kind == "opaque" and self.name == "optional_type"


BOOL: Final = Type("bool", "bool")
BYTES: Final = Type("bytes", "bytes")
DOUBLE: Final = Type("double", "double")
INT: Final = Type("int", "int")
STRING: Final = Type("string", "string")
UINT: Final = Type("uint", "uint")
DYN: Final = Type("dyn", "dyn")
ANY: Final = Type("any", "any")
NULL: Final = Type("null", "null")
ERROR: Final = Type("error", "!error!")
TYPE: Final = Type("type", "type")
QUANTITY: Final = Type("struct", "kubernetes.Quantity")
DEVICE: Final = Type("struct", "kubernetes.DRADevice")


def list_type(element: Type) -> Type:
    return Type("list", "list", (element,))


def map_type(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def optional_type(value: Type) -> Type:
    return Type("opaque", "optional_type", (value,))


def type_type(of: Type) -> Type:
    return Type("type", "type", (of,))


def param_type(name: str) -> Type:
    return Type("param", name)


def read_type(text: str) -> Type:
    """The inverse of `Type.text`, for the table of signatures. A single capital letter is a type parameter."""
    name, opened, rest = text.partition("(")
    params = tuple(read_type(part) for part in _split(rest[:-1])) if opened else ()
    if name in ("list", "map", "type"):
        return Type(name, name, params)
    if name in _SCALARS:
        return Type(name, name)
    if name in _OPAQUE:
        return Type("opaque", name, params)
    if len(name) == 1 and name.isupper():
        return param_type(name)
    return Type("struct", name)


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            parts.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts
