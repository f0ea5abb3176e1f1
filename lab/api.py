"""A plain HTTP client for the lab's API server: JSON in, JSON out, connections kept for the next request.

Fishplate's own client is what the lab tests, so the lab does not use it.
"""

import http.client
import json
import ssl
from pathlib import Path

import msgspec

from fishplate.errors import OutsideError

Object = dict[str, object]


class ApiError(OutsideError):
    def __init__(self, status: int, what: str, where: str) -> None:
        super().__init__(what, where=where)
        self.status = status


class ApiClient:
    def __init__(self, port: int, authority: Path, token: str) -> None:
        self._port = port
        self._tls = ssl.create_default_context(cafile=str(authority))
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._idle: list[http.client.HTTPSConnection] = []

    def request(self, method: str, path: str, body: Object | None = None, *, kind: str = "application/json") -> Object:
        # Without spaces, as every client of Kubernetes writes: claims' parameters are stored byte by byte.
        text = json.dumps(body, separators=(",", ":")).encode() if body is not None else None
        status, data = self._send(method, path, text, kind)
        if status >= 400:
            raise ApiError(status, data.decode(errors="replace")[:1000], f"{method} {path}")
        return msgspec.json.decode(data, type=dict[str, object])

    def ready(self) -> bool:
        try:
            return self._send("GET", "/readyz", None, "application/json")[0] == 200
        except OSError:
            return False

    def _send(self, method: str, path: str, body: bytes | None, kind: str) -> tuple[int, bytes]:
        kept = self._take()
        if kept is not None:
            try:
                return self._ask(kept, method, path, body, kind)
            except (OSError, http.client.HTTPException):
                kept.close()  # the server closes connections that were idle for long; the request never got there
        fresh = http.client.HTTPSConnection("127.0.0.1", self._port, context=self._tls, timeout=30)
        try:
            return self._ask(fresh, method, path, body, kind)
        except (OSError, http.client.HTTPException) as error:
            fresh.close()
            raise OSError(f"{method} {path}: {error}") from error

    def _ask(
        self, connection: http.client.HTTPSConnection, method: str, path: str, body: bytes | None, kind: str
    ) -> tuple[int, bytes]:
        connection.request(method, path, body=body, headers={**self._headers, "Content-Type": kind})
        answer = connection.getresponse()
        data = answer.read()
        self._idle.append(connection)
        return answer.status, data

    def _take(self) -> http.client.HTTPSConnection | None:
        # Append and pop are atomic, so threads share the list without a lock.
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
