"""Reading a live cluster: kubeconfig or service account in, our own Structs out. It only gets and lists.

lightkube finds the cluster and knows every way to log in; what it fetches is decoded here, straight into Structs,
because its own models take twice the time and memory for a fleet's slices.
"""

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from fishplate.errors import InputError, OutsideError

T = TypeVar("T")
_PAGE = 500
_TIMEOUT_S = 30


class NotFoundError(InputError):
    """The API server does not have it."""


class ClusterReader:
    """One connection to an API server."""

    def __init__(self, http: Any) -> None:  # noqa: ANN401 - httpx's client, whose types come only with its import
        self._http = http

    def get(self, path: str, kind: type[T]) -> T:
        return self._decode(path, self._fetch(path, {}), kind)

    def list(self, path: str, kind: type[T]) -> Iterator[T]:
        """All objects, page by page."""
        wanted = msgspec.defstruct(
            "Page",
            [("metadata", _PageMeta, _PageMeta()), ("items", list[kind], msgspec.field(default_factory=list))],  # type: ignore[valid-type]
        )
        token = ""
        while True:
            query = {"limit": str(_PAGE)} | ({"continue": token} if token else {})
            page: Any = self._decode(path, self._fetch(path, query), wanted)
            yield from page.items
            token = page.metadata.token
            if not token:
                return

    def _fetch(self, path: str, query: dict[str, str]) -> bytes:
        import httpx2

        try:
            answer = self._http.get(path, params=query)
        except httpx2.HTTPError as error:
            raise OutsideError(f"the API server does not answer: {error}", where=path) from error
        if answer.status_code == 200:
            return bytes(answer.content)
        message = message_of(answer.content)
        if answer.status_code == 404:
            raise NotFoundError(message, where=path)
        remedy = ""
        if answer.status_code in (401, 403):
            remedy = "reading needs get and list on pods, nodes, resourceslices, resourceclaims and deviceclasses"
        raise OutsideError(message, where=path, remedy=remedy)

    @staticmethod
    def _decode(path: str, data: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.DecodeError as error:
            raise OutsideError(f"the API server's answer makes no sense: {error}", where=path) from error


class _PageMeta(msgspec.Struct, frozen=True, kw_only=True):
    token: str = msgspec.field(default="", name="continue")


def message_of(data: bytes) -> str:
    try:
        said = msgspec.json.decode(data)
        return str(said["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return data[:200].decode("utf-8", "replace") or "no explanation"


def connect(context: str | None = None) -> ClusterReader:
    """The cluster that kubectl would talk to. `context` picks another one of the kubeconfig."""
    import httpx2
    from lightkube.config.client_adapter import Client, ConnectionParams
    from lightkube.config.kubeconfig import KubeConfig
    from lightkube.core.exceptions import ConfigError

    remedy = "set KUBECONFIG or --context, or give --slices or --fleet to do without a cluster"
    try:
        config = KubeConfig.from_env().get(context) if context else KubeConfig.from_env().get()
        if config is None:
            raise InputError("no cluster is configured", remedy=remedy)
        return ClusterReader(Client(config, ConnectionParams(timeout=httpx2.Timeout(_TIMEOUT_S))))
    except (ConfigError, AssertionError, OSError) as error:
        raise InputError(f"no cluster to talk to: {error}", remedy=remedy) from error
