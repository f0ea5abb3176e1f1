"""Reading and writing a live cluster from an event loop: what the node driver needs of an API server, and no more.

lightkube finds the cluster and logs in; requests and answers are our own Structs. Every refusal becomes one of a few
errors by what the caller can do about it: gone, changed by somebody else, too old a version, not allowed.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

import msgspec

from fishplate import __version__
from fishplate.errors import InputError, OutsideError
from fishplate.k8s.client import NotFoundError, message_of

T = TypeVar("T")
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]

_PAGE = 500
_TIMEOUT_S = 15
_MAX_EVENT_BYTES = 16 << 20
_JSON = {"Content-Type": "application/json"}
_PATCH = {"Content-Type": "application/json-patch+json"}
_APPLY = {"Content-Type": "application/apply-patch+yaml"}  # JSON is YAML


class ConflictError(OutsideError):
    """Somebody else wrote the object since it was read, or it exists already."""


class GoneError(OutsideError):
    """The version to watch from is too old: list again."""


class RefusedError(OutsideError):
    """The API server does not take it: not allowed (401, 403), or not valid."""

    code = 0


class Listing(msgspec.Struct, Generic[T], frozen=True):
    items: tuple[T, ...]
    resource_version: str


class Change(msgspec.Struct, Generic[T], frozen=True):
    type: EventType
    object: T


class _ListMeta(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    resource_version: str = ""
    token: str = msgspec.field(default="", name="continue")


class _Line(msgspec.Struct, frozen=True):
    type: EventType
    object: msgspec.Raw


class _Versioned(msgspec.Struct, frozen=True, rename="camel"):
    metadata: _ListMeta = _ListMeta()
    code: int = 0
    message: str = ""


class Api:
    """One API server. Not safe for threads; made for one event loop."""

    def __init__(self, http: Any) -> None:  # noqa: ANN401 - httpx's client, whose types come only with its import
        self._http = http

    async def close(self) -> None:
        await self._http.aclose()

    async def get(self, path: str, kind: type[T]) -> T:
        return _decode(path, await self._send("GET", path), kind)

    async def list(self, path: str, kind: type[T], query: Mapping[str, str] | None = None) -> Listing[T]:
        page_of = msgspec.defstruct(
            "Page",
            [("metadata", _ListMeta, _ListMeta()), ("items", tuple[kind, ...], ())],  # type: ignore[valid-type]
        )
        items: list[T] = []
        token = ""
        while True:
            asked = {**(query or {}), "limit": str(_PAGE)} | ({"continue": token} if token else {})
            page: Any = _decode(path, await self._send("GET", path, query=asked), page_of)
            items += page.items
            token = page.metadata.token
            if not token:
                return Listing(tuple(items), page.metadata.resource_version)

    async def create(self, path: str, body: T) -> T:
        answer = await self._send("POST", path, body=msgspec.json.encode(body), headers=_JSON)
        return _decode(path, answer, type(body))

    async def replace(self, path: str, body: T) -> T:
        answer = await self._send("PUT", path, body=msgspec.json.encode(body), headers=_JSON)
        return _decode(path, answer, type(body))

    async def apply(self, path: str, body: object, *, manager: str) -> bytes:
        """Server-side apply, taking the fields from whoever else holds them."""
        query = {"fieldManager": manager, "force": "true"}
        return await self._send("PATCH", path, query=query, body=msgspec.json.encode(body), headers=_APPLY)

    async def patch(self, path: str, operations: Sequence[Mapping[str, object]]) -> bytes:
        """JSON Patch: leaves every byte outside of the paths named as it is."""
        return await self._send("PATCH", path, body=msgspec.json.encode(operations), headers=_PATCH)

    async def delete(self, path: str, *, uid: str, resource_version: str = "") -> None:
        """Delete this very object; one that is gone already is fine."""
        conditions = {"uid": uid} | ({"resourceVersion": resource_version} if resource_version else {})
        body = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions})
        with contextlib.suppress(NotFoundError):
            await self._send("DELETE", path, body=body, headers=_JSON)

    async def watch(
        self, path: str, kind: type[T], *, query: Mapping[str, str] | None = None, resource_version: str
    ) -> AsyncIterator[Change[T] | str]:
        """Changes as they come, and the version to go on from after each, bookmarks included. Ends when the server ends
        it; `GoneError` means that the version is too old."""
        import httpx2

        asked = {
            **(query or {}),
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": "290",
        }
        timeout = httpx2.Timeout(_TIMEOUT_S, read=320)
        try:
            async with self._http.stream("GET", path, params=asked, timeout=timeout) as answer:
                if answer.status_code != 200:
                    raise _refusal(path, answer.status_code, await answer.aread())
                async for line in _lines(answer.aiter_bytes(), path):
                    event = _decode(path, line, _Line)
                    meta = _decode(path, event.object, _Versioned)
                    if event.type == "ERROR":
                        raise _refusal(path, meta.code, bytes(event.object))
                    if event.type != "BOOKMARK":
                        yield Change(event.type, _decode(path, event.object, kind))
                    yield meta.metadata.resource_version
        except httpx2.HTTPError as error:
            raise OutsideError(f"the API server went away: {error}", where=path) from error

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        import httpx2

        try:
            answer = await self._http.request(method, path, params=query, content=body, headers=headers)
        except httpx2.HTTPError as error:
            said = str(error) or type(error).__name__
            raise OutsideError(f"the API server does not answer: {said}", where=path) from error
        if 200 <= answer.status_code < 300:
            return bytes(answer.content)
        raise _refusal(path, answer.status_code, answer.content)


def _refusal(path: str, code: int, content: bytes) -> Exception:
    message = message_of(content)
    match code:
        case 404:
            return NotFoundError(message, where=path)
        case 409:
            return ConflictError(message, where=path)
        case 410:
            return GoneError(message, where=path)
        case 400 | 401 | 403 | 405 | 415 | 422:
            refused = RefusedError(message, where=path)
            refused.code = code
            return refused
    return OutsideError(message, where=path)


async def _lines(chunks: AsyncIterator[bytes], path: str) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line
        if len(rest) > _MAX_EVENT_BYTES:
            raise OutsideError("an event larger than anything Kubernetes stores", where=path)


def _decode(path: str, data: bytes | msgspec.Raw, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise OutsideError(f"the API server's answer makes no sense: {error}", where=path) from error


def connect(kubeconfig: str = "") -> Api:
    """By the kubeconfig named, or as kubectl would find its cluster, or by the pod's service account."""
    import httpx2
    from lightkube.config.client_adapter import AsyncClient, ConnectionParams
    from lightkube.config.kubeconfig import KubeConfig
    from lightkube.core.exceptions import ConfigError

    remedy = "give --kubeconfig, or run in a pod with a service account"
    try:
        found = KubeConfig.from_file(kubeconfig) if kubeconfig else KubeConfig.from_env()
        config = found.get()
        if config is None:
            raise InputError("no cluster is configured", remedy=remedy)
        http = AsyncClient(config, ConnectionParams(timeout=httpx2.Timeout(_TIMEOUT_S)))
        http.headers["User-Agent"] = f"fishplate/{__version__}"  # who it was, in the API server's audit log
        return Api(http)
    except (ConfigError, AssertionError, OSError) as error:
        raise InputError(f"no cluster to talk to: {error}", remedy=remedy) from error
