"""Request bodies: JSON or YAML bytes in, plain values out, with keys that came twice still marked."""

import json
from typing import Any

import msgspec
import yaml

from fishplate.sim.apiserver import protobuf
from fishplate.sim.apiserver.conform import Conformer, DecodeError, Repeated
from fishplate.sim.apiserver.kinds import BY_KIND, Kind
from fishplate.sim.apiserver.status import ApiError, bad_request
from fishplate.sim.apiserver.types import Shape
from fishplate.sim.apiserver.values import Object, Value

MAX_BODY = 3 << 20
_ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


class _Loader(yaml.CSafeLoader):
    """YAML as Kubernetes reads it: times stay text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:timestamp"]
    for first, known in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _mark_repeated(pairs: list[tuple[str, Any]]) -> Object:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    marked = Repeated(plain)
    seen: set[str] = set()
    marked.twice = tuple(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return marked


_marking = json.JSONDecoder(object_pairs_hook=_mark_repeated)


def parse_json(data: bytes) -> Value:
    """Keys that came twice are marked. DecodeError carries Go's words, as far as they are worth it."""
    try:
        return _marking.decode(data.decode())
    except (ValueError, RecursionError) as error:
        raise DecodeError(go_json_error(data, error)) from error


def go_json_error(data: bytes, error: Exception) -> str:
    """Go's complaint about JSON that is none."""
    if not data.strip():
        return "unexpected end of JSON input"
    if not isinstance(error, json.JSONDecodeError):
        return "invalid character in the body"
    position = error.pos
    if position >= len(error.doc):
        return "unexpected end of JSON input"
    shown = error.doc[position]
    where = "object key string" if "property name" in error.msg else "value"
    return f"invalid character '{shown}' looking for beginning of {where}"


def parse_yaml(data: bytes) -> Value:
    """YAML, of which JSON is nearly a part; JSON is tried first because it is so much faster."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        pass
    try:
        return yaml.load(data, Loader=_Loader)
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError) as error:
        raise DecodeError(f"error converting YAML to JSON: yaml: {str(error).splitlines()[0]}") from error


def read_body(content_type: str, data: bytes, kind: str, shape: Shape) -> Value:
    """The body of a create, replace, deletion or binding."""
    media = content_type.partition(";")[0].strip().lower()
    if media == protobuf.MEDIA:
        return _read_protobuf(data, kind, shape)
    if media not in ("application/json", "application/yaml", ""):
        said = f"the body of the request was in an unknown format - accepted media types include: {_ACCEPTED}"
        raise ApiError(415, said)
    try:
        value = parse_yaml(data) if media == "application/yaml" else parse_json(data)
        if not isinstance(value, dict):
            raise DecodeError(_not_an_object(value))
    except DecodeError as error:
        shown = data.decode(errors="replace") if data else "<empty>"
        if not shown.lstrip().startswith("{") and data:
            shown = data.hex()
        said = f"couldn't get version/kind; json parse error: {error} ({shown})"
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {said}") from error
    return value


def _read_protobuf(data: bytes, kind: str, shape: Shape) -> Object:
    try:
        return protobuf.read_envelope(data, shape)
    except DecodeError as error:
        said = f"the object provided is unrecognized (must be of type {kind}): {error}"
        raise bad_request(said) from error


def _not_an_object(value: object) -> str:
    names = {list: "array", str: "string", int: "number", float: "number", bool: "bool"}
    target = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
    return f"json: cannot unmarshal {names.get(type(value), 'null')} into Go value of type {target}"


def read_object(kind: Kind, value: Object) -> tuple[Object, list[str]]:
    """A conformed object of this kind, without `kind` and `apiVersion`, and what was unknown or repeated in it."""
    said_kind = value.get("kind") or kind.kind
    said_version = value.get("apiVersion") or kind.api_version
    prefix = f'{said_kind} in version "{str(said_version).rpartition("/")[2]}" cannot be handled as a {kind.kind}: '
    known = BY_KIND.get((said_version, said_kind))
    if known is None:
        said = f'no kind "{said_kind}" is registered for version "{said_version}" in scheme "pkg/runtime/scheme.go:111"'
        raise bad_request(prefix + said)
    conformer = Conformer(kind.kind)
    try:
        read = conformer.read(known.shape, value)
    except DecodeError as error:
        raise bad_request(f"{prefix}{error}") from error
    if known is not kind:
        said = f"the object provided is unrecognized (must be of type {kind.kind}): it is a {known.kind}"
        raise bad_request(said)
    read.pop("kind", None)
    read.pop("apiVersion", None)
    return read, conformer.problems


def refuse_problems(kind: Kind, problems: list[str]) -> ApiError:
    said = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: strict decoding error: '
    return bad_request(said + ", ".join(problems))
