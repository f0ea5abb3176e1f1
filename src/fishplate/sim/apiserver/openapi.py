"""OpenAPI documents made from the table of types: what kubectl needs to apply, validate and explain. No prose."""

from functools import cache

from fishplate.sim.apiserver.kinds import GROUPS, VERSION, Kind
from fishplate.sim.apiserver.types import Field, Shape, load_types
from fishplate.sim.apiserver.values import Object

_SCALARS: dict[str, Object] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "uint8": {"type": "integer"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "duration": {"type": "string"},
    "quantity": {"type": "string"},
    "intstr": {"type": "string", "format": "int-or-string"},
    "json": {"type": "object"},
}
# Parameters that kubectl looks for before it relies on them.
_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string"}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]


def _full_name(name: str) -> str:
    home = "io.k8s.apimachinery.pkg.apis." if name.startswith("meta.") else "io.k8s.api."
    return home + name


def _schema(shape: Shape, root: str) -> Object:
    match shape.kind:
        case "struct":
            return {"$ref": root + _full_name(shape.name)}
        case "list":
            return {"type": "array", "items": _schema(shape.inner, root)}
        case "map":
            return {"type": "object", "additionalProperties": _schema(shape.inner, root)}
    return _SCALARS[shape.kind]


def _property(field: Field, root: str) -> Object:
    schema = dict(_schema(field.shape, root))
    if field.topology == "map":
        schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(field.keys)}
    elif field.shape.kind == "list":
        schema["x-kubernetes-list-type"] = field.topology
    if field.merges:
        schema["x-kubernetes-patch-strategy"] = "merge,retainKeys" if field.retains else "merge"
        if field.merge_key:
            schema["x-kubernetes-patch-merge-key"] = field.merge_key
    return schema


def _definitions(kinds: tuple[Kind, ...], root: str) -> Object:
    found: Object = {}
    waiting = [kind.shape for kind in kinds] + [load_types()["meta.v1.DeleteOptions"]]
    while waiting:
        shape = waiting.pop()
        name = _full_name(shape.name)
        if name in found:
            continue
        schema: Object = {"type": "object"}
        if shape.fields:
            schema["properties"] = {field.name: _property(field, root) for field in shape.fields.values()}
        required = [field.name for field in shape.fields.values() if field.required]
        if required:
            schema["required"] = required
        if shape.atomic:
            schema["x-kubernetes-map-type"] = "atomic"
        found[name] = schema
        waiting += [below for field in shape.fields.values() if (below := _struct_below(field.shape)) is not None]
    for kind in kinds:
        found[_full_name(kind.shape.name)]["x-kubernetes-group-version-kind"] = [_gvk(kind)]
    return found


def _struct_below(shape: Shape) -> Shape | None:
    while shape.item is not None:
        shape = shape.item
    return shape if shape.kind == "struct" else None


def _gvk(kind: Kind) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _paths(kinds: tuple[Kind, ...]) -> Object:
    paths: Object = {}
    for kind in kinds:
        place = (
            f"{kind.root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{kind.root}/{kind.plural}"
        )
        answer = {"responses": {"200": {"description": "OK"}}}
        write = {**answer, "parameters": _PARAMETERS, "x-kubernetes-group-version-kind": _gvk(kind)}
        paths[place] = {
            "get": {**answer, "x-kubernetes-action": "list", "x-kubernetes-group-version-kind": _gvk(kind)},
            "post": {**write, "x-kubernetes-action": "post"},
        }
        paths[f"{place}/{{name}}"] = {
            "get": {**answer, "x-kubernetes-action": "get", "x-kubernetes-group-version-kind": _gvk(kind)},
            "put": {**write, "x-kubernetes-action": "put"},
            "patch": {**write, "x-kubernetes-action": "patch"},
            "delete": {**write, "x-kubernetes-action": "delete"},
        }
    return paths


def _info() -> Object:
    return {"title": "Fishplate", "version": VERSION}


@cache
def document_v3(group: str, version: str) -> Object | None:
    kinds = GROUPS.get((group, version))
    if kinds is None:
        return None
    schemas = _definitions(kinds, "#/components/schemas/")
    return {"openapi": "3.0.0", "info": _info(), "paths": _paths(kinds), "components": {"schemas": schemas}}


def index_v3() -> Object:
    paths = {}
    for group, version in GROUPS:
        name = f"apis/{group}/{version}" if group else f"api/{version}"
        paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={VERSION}"}
    return {"paths": paths}


@cache
def document_v2() -> Object:
    kinds = tuple(kind for group in GROUPS.values() for kind in group)
    definitions = _definitions(kinds, "#/definitions/")
    return {"swagger": "2.0", "info": _info(), "paths": _paths(kinds), "definitions": definitions}
