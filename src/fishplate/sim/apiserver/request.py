"""A request as the verbs see it, and what they answer."""

from collections.abc import Mapping

import msgspec

from fishplate.sim.apiserver.kinds import BY_PATH, GROUPS, Kind
from fishplate.sim.apiserver.status import no_such_resource
from fishplate.sim.apiserver.values import Value
from fishplate.sim.apiserver.watch import Watch


class Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def manager(self) -> str:
        """Who writes, where the query does not say: the first word of the user agent."""
        return self.headers.get("user-agent", "").partition("/")[0][:128] or "unknown"


class Answer(msgspec.Struct, frozen=True):
    status: int
    body: bytes = b""
    media: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    watch: Watch | None = None


class Target(msgspec.Struct, frozen=True):
    """What a path names."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.kind.namespaced else self.name


def parse_target(path: str) -> Target | None:
    """None if the path is below no group that is served; 404 if the group is served and the kind is not."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if not any(known == group for known, _ in GROUPS):
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    kind = BY_PATH.get((group, version, rest[0]))
    if kind is None or len(rest) > 3 or (namespace and not kind.namespaced):
        raise no_such_resource()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in kind.subresources:
        raise no_such_resource()
    if name and kind.namespaced and not namespace:
        raise no_such_resource()
    return Target(kind, namespace, name, subresource)


def encode_json(value: Value) -> bytes:
    return msgspec.json.encode(value)
