"""Events on claims and pods, for people who look at `kubectl describe`.

Only failures make one; the API server gets each once in ten minutes at most. Losing one loses nothing: the claim's
status says the same."""

import asyncio
import datetime as dt
import hashlib
import logging
import time
from collections.abc import Callable
from typing import Literal

import msgspec

from fishplate.errors import FishplateError
from fishplate.k8s.api import Api

_EVERY_S = 600.0
_MAX_MESSAGE = 1024
_MAX_REMEMBERED = 1024
_log = logging.getLogger("fishplate.events")

Kind = Literal["ResourceClaim", "Pod", "Node"]


class About(msgspec.Struct, frozen=True, kw_only=True):
    kind: Kind
    name: str
    namespace: str = ""
    uid: str = ""


class EventWriter:
    def __init__(self, api: Api, *, component: str, node: str, clock: Callable[[], float] = time.time) -> None:
        self._api = api
        self._component = component
        self._node = node
        self._clock = clock
        self._told: dict[tuple[About, str, str], float] = {}
        self._queue: asyncio.Queue[tuple[str, object]] = asyncio.Queue(maxsize=256)

    def tell(self, about: About, reason: str, message: str) -> None:
        now, key = self._clock(), (about, reason, message)
        if now - self._told.get(key, -_EVERY_S) < _EVERY_S or self._queue.full():
            return
        if len(self._told) >= _MAX_REMEMBERED:
            self._told.clear()
        self._told[key] = now
        namespace = about.namespace or "default"
        self._queue.put_nowait((f"/api/v1/namespaces/{namespace}/events", self._event(about, reason, message, now)))

    async def run(self) -> None:
        while True:
            path, event = await self._queue.get()
            try:
                await self._api.create(path, event)
            except FishplateError as error:
                _log.warning("an event could not be written: %s", error)

    def _event(self, about: About, reason: str, message: str, now: float) -> dict[str, object]:
        moment = dt.datetime.fromtimestamp(now, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        mark = hashlib.sha256(f"{about}{reason}{now}".encode()).hexdigest()[:16]
        api_version = "resource.k8s.io/v1" if about.kind == "ResourceClaim" else "v1"
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{about.name[:200]}.{mark}", "namespace": about.namespace or "default"},
            "involvedObject": {
                "apiVersion": api_version,
                "kind": about.kind,
                "name": about.name,
                "namespace": about.namespace,
                "uid": about.uid,
            },
            "reason": reason,
            "message": message[:_MAX_MESSAGE],
            "type": "Warning",
            "source": {"component": self._component, "host": self._node},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
