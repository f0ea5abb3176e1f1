"""One conversation with an API server, written down so that two servers can be compared.

What differs from run to run (uids, versions, times, random names, tokens) is replaced by a word that stays the same
wherever the same value comes back: two objects with one uid still differ from two with two.
"""

import base64
import gzip
import http.client
import json
import re
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec

_PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
# Numbers that are versions when they stand in a message.
_VERSIONS = re.compile(
    r"(resource version: |resourceVersion: |ResourceVersion: |current: |precondition \((?=\d+\))|record \((?=\d+\))"
    r'|resourceVersion\\?":\\?")(\d+)(?: \((\d+)\))?'
)
_WORTH_KEEPING = ("content-type", "warning", "content-encoding", "allow", "retry-after")
_PATIENCE_S = 20.0
_LONG = 4000


Value = Any  # decoded JSON


class Server(msgspec.Struct, frozen=True, kw_only=True):
    port: int
    authority: Path
    token: str
    age: Callable[[], str]
    """Forget the history so far, and name a collection whose earliest versions cannot be watched any more."""


class Conversation:
    def __init__(self, server: Server, name: str) -> None:
        self.name = name
        self.namespace = f"conf-{name}".replace("_", "-")[:63].rstrip("-")
        self.transcript: list[dict[str, Any]] = []
        self._server = server
        self._tls = ssl.create_default_context(cafile=str(server.authority))
        self._words: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._kept: http.client.HTTPSConnection | None = None

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()

    def age(self) -> str:
        """Forget the history so far; a collection that is too young for version 1."""
        path = self._server.age()
        self._words.setdefault(f"name:{path}", "<aged>")
        return path

    # Requests, as they are written down.

    def get(self, path: str, *, headers: dict[str, str] | None = None, **query: str) -> Value:
        return self.ask("GET", path, query=query, headers=headers)

    def post(self, path: str, body: Value, *, headers: dict[str, str] | None = None, **query: str) -> Value:
        return self.ask("POST", path, body, query=query, headers=headers)

    def put(self, path: str, body: Value, **query: str) -> Value:
        return self.ask("PUT", path, body, query=query)

    def patch(self, path: str, body: Value, kind: str, **query: str) -> Value:
        return self.ask("PATCH", path, body, query=query, headers={"Content-Type": _PATCHES[kind]})

    def delete(self, path: str, body: Value = None, **query: str) -> Value:
        return self.ask("DELETE", path, body, query=query)

    def ask(
        self,
        method: str,
        path: str,
        body: Value = None,
        *,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        token: str | None = None,
    ) -> Value:
        """One request; the answer's body is returned as it came, and written down in its comparable form."""
        status, got, data = self._send(method, path, body, query or {}, headers or {}, token)
        answer = self._read(got, data)
        self.note(
            f"{method} {path}",
            query=dict(query or {}),
            status=status,
            headers={k: v for k, v in got.items() if k in _WORTH_KEEPING},
            body=answer,
        )
        return answer

    def watch(self, path: str, count: int, **query: str) -> list[Any]:
        """The first `count` events; fewer if the server ends the stream before."""
        connection = self._connect()
        url = f"{path}?{urlencode({'watch': '1', **query})}"
        connection.request("GET", url, headers=self._headers({}, None, None))
        answer = connection.getresponse()
        events: list[Any] = []
        if answer.status != 200:
            self.note(f"WATCH {path}", query=query, status=answer.status, body=json.loads(answer.read()))
        else:
            while len(events) < count and (line := answer.readline()):
                events.append(json.loads(line))
            self.note(f"WATCH {path}", query=query, status=200, events=events)
        connection.close()
        return events

    def until(self, path: str, status: int) -> None:
        """Ask, without writing it down, until the answer has this status; for what happens in the background."""
        deadline = time.monotonic() + _PATIENCE_S
        while (got := self._send("GET", path, None, {}, {}, None)[0]) != status:
            assert time.monotonic() < deadline, f"{path}: {got}, not {status}"
            time.sleep(0.05)

    def note(self, request: str, **said: Value) -> None:
        self.transcript.append({"request": request, **{key: value for key, value in said.items() if value}})

    def written(self) -> list[dict[str, Any]]:
        """What is left in the transcript, in its comparable form."""
        return [self._mask(entry) for entry in self.transcript]

    # The wire.

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self._server.port, context=self._tls, timeout=_PATIENCE_S)

    def _headers(self, headers: dict[str, str], body: bytes | None, token: str | None) -> dict[str, str]:
        known = {"Accept": "application/json", "User-Agent": "conformance/1 (suite)"}
        said = self._server.token if token is None else token
        known |= {"Authorization": f"Bearer {said}"} if said else {}
        known |= {"Content-Type": "application/json"} if body is not None else {}
        return known | headers

    def _send(
        self, method: str, path: str, body: Value, query: dict[str, str], headers: dict[str, str], token: str | None
    ) -> tuple[int, dict[str, str], bytes]:
        if self._kept is None:
            self._kept = self._connect()
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        url = path + (f"?{urlencode(query)}" if query else "")
        self._kept.request(method, url, body=data, headers=self._headers(headers, data, token))
        answer = self._kept.getresponse()
        got: dict[str, str] = {}
        for key, value in answer.getheaders():
            got[key.lower()] = f"{got[key.lower()]} | {value}" if key.lower() in got else value
        return answer.status, got, answer.read()

    def _read(self, headers: dict[str, str], data: bytes) -> Value:
        if headers.get("content-encoding") == "gzip":
            data = gzip.decompress(data)
        if "json" in headers.get("content-type", ""):
            return json.loads(data)
        return data.decode(errors="replace")

    # Words for what differs from run to run.

    def _word(self, kind: str, value: str) -> str:
        key = f"{kind}:{value}"
        if key not in self._words:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._words[key] = f"<{kind}-{self._counts[kind]}>"
        return self._words[key]

    def _mask(self, value: Value, key: str = "") -> Value:
        match value:
            case dict():
                masked = self._mask_object(value)
                return {self._mask_text(k, ""): self._mask(masked[k], k) for k in sorted(masked)}
            case list():
                return [self._mask(item) for item in value]
            case str():
                return self._mask_text(value, key)
        return value

    def _mask_object(self, value: dict[str, Any]) -> dict[str, Any]:
        if isinstance(value.get("causes"), list):
            # Metadata is checked more than once on some paths, and then each cause comes more than once.
            causes = [c for i, c in enumerate(value["causes"]) if c not in value["causes"][:i]]
            if any(cause.get("reason") == "FieldManagerConflict" for cause in causes):
                causes.sort(key=lambda cause: str(cause["message"]))  # a Go map's order
            value = value | {"causes": causes}
        if ("items" in value or "rows" in value) and "resourceVersion" in value.get("metadata", {}):
            # The version of a list is the whole server's, and others write to it too.
            value = value | {"metadata": value["metadata"] | {"resourceVersion": "now"}}
        if isinstance(value.get("managedFields"), list):
            # They are in the order of their times, to the second.
            owners = sorted(value["managedFields"], key=lambda o: str((o.get("operation"), o.get("manager"), len(o))))
            value = value | {"managedFields": owners}
        if value.get("type") == "BOOKMARK":
            told = value["object"]
            value = value | {"object": told | {"metadata": told["metadata"] | {"resourceVersion": "now"}}}
        prefix, name = value.get("generateName"), value.get("name")
        if prefix and isinstance(name, str) and name.startswith(prefix):
            self._words.setdefault(f"name:{name}", f"{prefix}<random>")
        return value

    def _mask_text(self, value: str, key: str) -> str:
        if key == "resourceVersion" and value.isdigit():
            return value if value == "0" else self._word("version", value)
        if key == "continue" and value:
            return "<continue>"
        for known, word in self._words.items():
            if known.startswith("name:"):
                value = value.replace(known[5:], word)
        value = value.partition("\n@@")[0]  # a diff of Go structures follows
        if len(value) > _LONG:
            value = f"{value[:100]}<{len(value)} characters>"
        value = _VERSIONS.sub(lambda found: found[1] + "<version>" + (" (<version>)" if found[3] else ""), value)
        value = _UID.sub(lambda found: self._word("uid", found[0]), value)
        return _TIME.sub("<time>", value)


def encode_token(version: int, start: str) -> str:
    """A continue token in the form that kube-apiserver gives out."""
    said = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start})
    return base64.urlsafe_b64encode(said.encode()).rstrip(b"=").decode()
