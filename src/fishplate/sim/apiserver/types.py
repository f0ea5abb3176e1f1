"""The shapes of stored objects, read from data/types.txt (see there for its form and where it comes from).

Everything that depends on a kind's fields reads them from here: what is unknown, what is left out when empty, how
patches merge, which fields an apply owns, and the OpenAPI documents.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, Literal

Scalar = Literal[
    "string", "bool", "int32", "int64", "float64", "bytes", "time", "microtime", "duration", "quantity", "intstr",
    "json", "uint8",
]  # fmt: skip
Topology = Literal["granular", "atomic", "set", "map"]


class Shape:
    """A scalar, a list, a map or a structure. `kind` says which; the other attributes follow from it."""

    __slots__ = ("atomic", "fields", "filled", "item", "kind", "name", "numbers")

    def __init__(self, kind: str, *, item: Shape | None = None, name: str = "") -> None:
        self.kind = kind  # "struct", "list", "map" or a Scalar
        self.item = item
        self.name = name
        self.atomic = False
        self.fields: dict[str, Field] = {}
        self.filled: list[Field] = []  # fields that are there even when nobody gave them
        self.numbers: dict[str, Field] = {}  # by their paths in protobuf

    @property
    def go_name(self) -> str:
        """As Go's JSON decoder names it in its complaints."""
        match self.kind:
            case "list":
                return f"[]{self.inner.go_name}"
            case "map":
                return f"map[string]{self.inner.go_name}"
            case "struct":
                return self.name.partition(".")[2]
            case "quantity":
                return "resource.Quantity"
        return self.kind

    @property
    def inner(self) -> Shape:
        assert self.item is not None
        return self.item


class Field:
    """One field of a structure."""

    __slots__ = (
        "default",
        "keys",
        "merge_key",
        "merges",
        "name",
        "number",
        "omit",
        "pointer",
        "required",
        "retains",
        "shape",
        "topology",
    )

    def __init__(self, name: str, shape: Shape) -> None:
        self.name = name
        self.shape = shape
        self.omit: Literal["", "?", "~"] = ""
        self.required = False
        self.pointer = False
        self.topology: Topology = "granular"
        self.keys: tuple[str, ...] = ()
        self.merges = False
        self.merge_key = ""
        self.retains = False
        self.default: Any = None
        self.number = ""

    @property
    def is_filled(self) -> bool:
        """Whether Go writes it when nobody set it: a plain value, not left out."""
        if self.pointer or self.omit == "~":
            return False
        return self.omit == "" or self.shape.kind in ("struct", "time", "microtime")


def _parse_field(line: str, find: _Finder) -> Field:
    words = line.split()
    name, kind = words[0], words[1]
    required = name.endswith("!")
    name = name.removesuffix("!")
    omit: Any = name[-1] if name[-1] in "?~" else ""
    field = Field(name.rstrip("?~"), find(kind.removeprefix("*")))
    field.required, field.omit, field.pointer = required, omit, kind.startswith("*")
    if field.shape.kind == "list":
        field.topology = "atomic"
    for word in words[2:]:
        key, _, value = word.partition("=")
        if key == "map":
            field.topology, field.keys = "map", tuple(value.split(","))
        elif key in ("set", "atomic"):
            field.topology = key  # type: ignore[assignment] # one of two literals
        elif key == "merge":
            field.merges, field.merge_key = True, value
        elif key == "retain":
            field.retains = True
        elif key.startswith("@"):
            field.number = key[1:]
        elif not key:
            field.default = json.loads(value)
    return field


class _Finder:
    """Shapes by their written name; structures are filled in as their lines come."""

    def __init__(self) -> None:
        self._known: dict[str, Shape] = {}

    def __call__(self, name: str) -> Shape:
        if name not in self._known:
            if name.startswith("[]"):
                shape = Shape("list", item=self(name[2:]))
            elif name.startswith("{}"):
                shape = Shape("map", item=self(name[2:]))
            else:
                shape = Shape("struct" if "." in name else name, name=name)
            self._known[name] = shape
        return self._known[name]

    def structures(self) -> dict[str, Shape]:
        return {name: shape for name, shape in self._known.items() if shape.kind == "struct"}


@cache
def load_types() -> dict[str, Shape]:
    """Every structure, by its short name (`core.v1.Pod`)."""
    text = resources.files(__package__).joinpath("data/types.txt").read_text(encoding="utf-8")
    find = _Finder()
    current = Shape("struct")
    for line in text.splitlines():
        if line.startswith("type "):
            _, name, *words = line.split()
            current = find(name)
            current.atomic = "atomic" in words
        elif line.startswith(" "):
            field = _parse_field(line, find)
            current.fields[field.name] = field
    for shape in find.structures().values():
        shape.filled = [field for field in shape.fields.values() if field.is_filled]
        shape.numbers = {field.number: field for field in shape.fields.values() if field.number}
    return find.structures()
