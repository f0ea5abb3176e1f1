"""Writes the embedded API server's table of types. Needs Go and the lab.

    python -m tests.conformance.api.record_types

Two sources, because neither has all: Go's reflection on k8s.io/api (see types/) tells pointers, what is left out when
empty, and the keys of strategic merge patches; the OpenAPI documents of a running kube-apiserver tell the keys that
server-side apply uses, what is required, and defaults. Only names and shapes are kept, no prose.
"""

import subprocess
from pathlib import Path
from typing import Any

import msgspec

from lab.session import Lab, running
from lab.state import Request

OUT = Path("src/fishplate/sim/apiserver/data/types.txt")
_GO = Path(__file__).parent / "types"
_DOCUMENTS = ("api/v1", "apis/resource.k8s.io/v1", "apis/batch/v1", "apis/apps/v1", "apis/coordination.k8s.io/v1")
_HEAD = """\
# The types that the embedded API server stores, as kube-apiserver 1.36.4 has them.
# Sources: k8s.io/api v0.36.4 by reflection, and /openapi/v3 of a running kube-apiserver.
# Written by `python -m tests.conformance.api.record_types`; do not edit.
#
# type NAME [atomic]
#   FIELD[?|~][!] [*]TYPE [words]
# ? left out when empty, ~ left out when zero, ! required, * a pointer, [] a list, {} a map with string keys.
# set, atomic, map=KEYS: how server-side apply sees a list or map. merge, merge=KEY, retain: how a strategic merge patch
# does. =VALUE: the default of a key. @NUMBER: in protobuf; @2.5 is field 5 of the message in field 2.
"""


class _Field(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    type: str
    pointer: bool = False
    omit: str = ""
    strategy: str = ""
    merge_key: str = ""
    number: str = ""


class _Type(msgspec.Struct, frozen=True):
    type: str
    fields: tuple[_Field, ...]


def read_types() -> list[_Type]:
    done = subprocess.run(["go", "run", "."], cwd=_GO, capture_output=True, check=True)
    return [msgspec.json.decode(line, type=_Type) for line in done.stdout.splitlines()]


def read_schemas(lab: Lab) -> dict[str, dict[str, Any]]:
    schemas: dict[str, dict[str, Any]] = {}
    for document in _DOCUMENTS:
        answer: Any = lab.api.request("GET", f"/openapi/v3/{document}")
        schemas |= answer["components"]["schemas"]
    return {".".join(name.split(".")[-3:]): schema for name, schema in schemas.items()}


def _words(field: _Field, schema: dict[str, Any]) -> list[str]:
    words = [f"@{field.number}"] if field.number else []
    kind = schema.get("x-kubernetes-list-type") or schema.get("x-kubernetes-map-type")
    if kind == "map":
        words.append("map=" + ",".join(schema["x-kubernetes-list-map-keys"]))
    elif kind in ("set", "atomic"):
        words.append(kind)
    strategies = field.strategy.split(",")
    if "merge" in strategies:
        words.append(f"merge={field.merge_key}" if field.merge_key else "merge")
    if "retainKeys" in strategies:
        words.append("retain")
    if schema.get("default") and isinstance(schema["default"], str | int | bool):
        words.append("=" + msgspec.json.encode(schema["default"]).decode())
    return words


def render(types: list[_Type], schemas: dict[str, dict[str, Any]]) -> str:
    lines = [_HEAD]
    for one in types:
        schema = schemas.get(one.type, {})
        atomic = " atomic" if schema.get("x-kubernetes-map-type") == "atomic" else ""
        lines.append(f"type {one.type}{atomic}")
        required = set(schema.get("required", ()))
        for field in one.fields:
            mark = {"omitempty": "?", "omitzero": "~", "": ""}[field.omit] + ("!" if field.name in required else "")
            words = _words(field, schema.get("properties", {}).get(field.name, {}))
            lines.append(" ".join(["", field.name + mark, ("*" if field.pointer else "") + field.type, *words]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    with running("types", Request(nodes=0)) as lab:
        OUT.write_text(render(read_types(), read_schemas(lab)))
