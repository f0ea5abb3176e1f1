"""Sets of fields: what a manager owns. A node says whether its own path is owned and which paths below it are.

The keys are those of `fieldsV1`: `f:name` for a field, `k:{"name":"x"}` for an item of a keyed list, `v:"x"` for an
item of a set. So reading and writing managedFields is a copy.
"""

from collections.abc import Iterator

import msgspec

from fishplate.sim.apiserver.values import Object, Value

Path = tuple[str, ...]


class Fields:
    """A tree of paths. Treated as a value: the operations below return new ones."""

    __slots__ = ("below", "here")

    def __init__(self, *, here: bool = False, below: "dict[str, Fields] | None" = None) -> None:
        self.here = here
        self.below: dict[str, Fields] = below or {}

    def __bool__(self) -> bool:
        return self.here or bool(self.below)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fields) and self.here == other.here and self.below == other.below

    __hash__ = None  # type: ignore[assignment] # a container

    def child(self, key: str) -> "Fields":
        """The node below, made if need be; for building only."""
        node = self.below.get(key)
        if node is None:
            node = self.below[key] = Fields()
        return node

    def has(self, path: Path) -> bool:
        node: Fields | None = self
        for key in path:
            node = node.below.get(key) if node else None
        return node is not None and node.here

    def paths(self, prefix: Path = ()) -> Iterator[Path]:
        if self.here:
            yield prefix
        for key in sorted(self.below):
            yield from self.below[key].paths((*prefix, key))


def union(left: Fields, right: Fields) -> Fields:
    if not right:
        return left
    below = dict(left.below)
    for key, node in right.below.items():
        below[key] = union(below[key], node) if key in below else node
    return Fields(here=left.here or right.here, below=below)


def difference(left: Fields, right: Fields) -> Fields:
    """Paths of the left that are not in the right."""
    if not right:
        return left
    below = {}
    for key, node in left.below.items():
        rest = difference(node, right.below[key]) if key in right.below else node
        if rest:
            below[key] = rest
    return Fields(here=left.here and not right.here, below=below)


def without_below(left: Fields, right: Fields) -> Fields:
    """Paths of the left that are neither in the right nor below one that is."""
    if right.here:
        return Fields()
    if not right.below:
        return left
    below = {}
    for key, node in left.below.items():
        rest = without_below(node, right.below[key]) if key in right.below else node
        if rest:
            below[key] = rest
    return Fields(here=left.here, below=below)


def intersection(left: Fields, right: Fields) -> Fields:
    below = {}
    for key in left.below.keys() & right.below.keys():
        both = intersection(left.below[key], right.below[key])
        if both:
            below[key] = both
    return Fields(here=left.here and right.here, below=below)


def decode_fields(value: Value) -> Fields:
    """From fieldsV1. An empty object is a leaf."""
    fields = Fields()
    for key, inner in value.items():
        if key == ".":
            fields.here = True
            continue
        node = decode_fields(inner)
        if not inner:
            node.here = True
        fields.below[key] = node
    return fields


def encode_fields(fields: Fields) -> Object:
    """To fieldsV1."""
    out: Object = {".": {}} if fields.here and fields.below else {}
    for key in sorted(fields.below):
        out[key] = encode_fields(fields.below[key])
    return out


def item_key(keys: Object) -> str:
    """The path element of an item of a keyed list."""
    return "k:" + msgspec.json.encode(keys, order="sorted").decode()


def value_key(value: object) -> str:
    """The path element of an item of a set."""
    return "v:" + msgspec.json.encode(value).decode()


def show_path(path: Path) -> str:
    """As conflicts show it: `.spec.containers[name="main"].image`."""
    shown = ""
    for part in path:
        kind, text = part[:2], part[2:]
        if kind == "f:":
            shown += f".{text}"
        elif kind == "k:":
            shown += show_keys(msgspec.json.decode(text))
        else:
            shown += f"[={text}]"
    return shown


def show_keys(keys: Object) -> str:
    said = (f"{name}={msgspec.json.encode(value).decode()}" for name, value in sorted(keys.items()))
    return f"[{','.join(said)}]"
