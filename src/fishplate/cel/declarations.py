"""What an environment declares: functions with their overloads, named types, and the `device` variable.

The overloads are data, in signatures.txt; which of them exist depends on the Kubernetes minor version.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from fishplate.cel.types import (
    ANY,
    BOOL,
    BYTES,
    DEVICE,
    DOUBLE,
    DYN,
    INT,
    NULL,
    QUANTITY,
    STRING,
    TYPE,
    UINT,
    Type,
    list_type,
    map_type,
    optional_type,
    param_type,
    read_type,
    type_type,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

MINORS = ("1.34", "1.35", "1.36", "1.37")

_A, _B = param_type("A"), param_type("B")
# Names that are types when they stand in an expression.
_TYPE_NAMES = {
    "bool": BOOL,
    "bytes": BYTES,
    "double": DOUBLE,
    "int": INT,
    "string": STRING,
    "uint": UINT,
    "null_type": NULL,
    "type": TYPE,
    "list": list_type(_A),
    "map": map_type(_A, _B),
    "google.protobuf.Duration": Type("duration", "duration"),
    "google.protobuf.Timestamp": Type("timestamp", "timestamp"),
    "optional_type": optional_type(DYN),
    "net.IP": Type("opaque", "net.IP"),
    "net.CIDR": Type("opaque", "net.CIDR"),
    "kubernetes.DRADevice": DEVICE,
}


class Overload(NamedTuple):
    id: str
    method: bool
    args: tuple[Type, ...]
    result: Type
    params: frozenset[str]


class Declarations(NamedTuple):
    functions: Mapping[str, tuple[Overload, ...]]
    idents: Mapping[str, Type]
    device: Mapping[str, Type]
    # The struct that has these fields. The driver's --filter speaks of another one.
    struct: Type
    # From cel-go 0.29 on, a leading dot passes over the variables of loops and binds.
    dot_is_global: bool


@cache
def declare(minor: str, *, dynamic_attributes: bool) -> Declarations:
    attribute = DYN if dynamic_attributes else ANY
    device = {
        "driver": STRING,
        "attributes": map_type(STRING, map_type(STRING, attribute)),
        "capacity": map_type(STRING, map_type(STRING, QUANTITY)),
        # kube-scheduler compiles stored expressions, for which every gated field is declared.
        "allowMultipleAllocations": BOOL,
    }
    idents = {name: type_type(named) for name, named in _TYPE_NAMES.items()} | {"device": DEVICE}
    return Declarations(_functions(minor), idents, device, DEVICE, dot_is_global=minor == "1.37")


@cache
def _functions(minor: str) -> Mapping[str, tuple[Overload, ...]]:
    found: dict[str, tuple[Overload, ...]] = {}
    for line in files("fishplate.cel").joinpath("signatures.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, overload = _read(line, minor)
        if overload is not None:
            found[name] = (*found.get(name, ()), overload)
    return found


def _read(line: str, minor: str) -> tuple[str, Overload | None]:
    name, _, signature = line.partition(": ")
    versions, space, bare = name.partition(" ")
    if space:
        first, _, last = versions.partition("-")
        if minor not in MINORS[MINORS.index(first) : MINORS.index(last or first) + 1]:
            return bare, None
        name = bare
    left, _, result = signature.partition(" -> ")
    receiver, method, call = left.rpartition(" . ")
    overload, _, arguments = call.partition("(")
    texts = read_type(f"map({arguments}").params
    args = (read_type(receiver), *texts) if method else texts
    params = frozenset(param for arg in (*args, read_type(result)) for param in _free(arg))
    return name, Overload(overload, bool(method), args, read_type(result), params)


def _free(given: Type) -> list[str]:
    if given.kind == "param":
        return [given.name]
    return [name for param in given.params for name in _free(param)]
