"""Objects, versions and their recent history. No I/O, no clock, no validation: what is put here is right already.

Invariants: an object that was stored is never changed, only replaced, so a reader may keep it. One counter numbers
every change of every kind, as etcd's does. History is a ring per kind, bounded in events and in bytes; what falls out
of it cannot be watched or listed any more (410). The sum of all objects is bounded too: etcd has a quota, so has this.
"""

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from fishplate.sim.apiserver.kinds import KINDS, Kind
from fishplate.sim.apiserver.status import ApiError, expired
from fishplate.sim.apiserver.values import Object

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]

MAX_EVENTS = 20_000
MAX_EVENT_BYTES = 64 << 20
MAX_OBJECT_BYTES = 1536 << 10
QUOTA_BYTES = 2 << 30
_encode = msgspec.json.Encoder().encode


class Stored:
    """One version of one object. `data` is its JSON without kind and apiVersion, as list items carry it."""

    __slots__ = ("data", "kind", "name", "namespace", "object", "version")

    def __init__(self, kind: Kind, value: Object, version: int) -> None:
        meta = value["metadata"]
        self.kind = kind
        self.namespace: str = meta.get("namespace", "")
        self.name: str = meta["name"]
        self.object = value
        self.version = version
        self.data = _encode(value)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.kind.namespaced else self.name

    @property
    def uid(self) -> str:
        return str(self.object["metadata"].get("uid", ""))

    def encode(self) -> bytes:
        return self.kind.head + self.data[1:]


class Change:
    """What happened to one object at one version."""

    __slots__ = ("after", "before", "line", "type", "version")

    def __init__(self, kind: ChangeType, version: int, before: Stored | None, after: Stored) -> None:
        self.type = kind
        self.version = version
        self.before = before  # None for an object that was added
        self.after = after  # for a deletion, the last state under the version of the deletion
        self.line = b""

    def encode(self) -> bytes:
        """The event as a watcher of everything gets it; made once, however many watch."""
        if not self.line:
            self.line = encode_event(self.type, self.after.encode())
        return self.line


def encode_event(kind: str, data: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), data)


Listener = Callable[[Change], None]


class _Shelf:
    """All objects of one kind, sorted by key, and their recent changes."""

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.keys: list[str] = []
        self.changes: deque[Change] = deque()
        self.change_bytes = 0
        self.oldest = 0  # the newest version that has fallen out of `changes`
        self.listeners: dict[int, Listener] = {}

    def record(self, change: Change) -> None:
        self.changes.append(change)
        self.change_bytes += len(change.after.data)
        while len(self.changes) > MAX_EVENTS or self.change_bytes > MAX_EVENT_BYTES:
            self.forget_one()

    def forget_one(self) -> None:
        gone = self.changes.popleft()
        self.change_bytes -= len(gone.after.data)
        self.oldest = gone.version


class Store:
    def __init__(self, *, first_version: int = 1, quota: int = QUOTA_BYTES) -> None:
        self.version = first_version
        self.bytes = 0
        self._quota = quota
        self._shelves = {kind.kind + kind.api_version: _Shelf() for kind in KINDS}
        self._next_listener = 0
        self.after_change: Listener = lambda change: None  # the garbage collector's ear

    def _shelf(self, kind: Kind) -> _Shelf:
        return self._shelves[kind.kind + kind.api_version]

    # Reading.

    def get(self, kind: Kind, key: str) -> Stored | None:
        return self._shelf(kind).objects.get(key)

    def count(self, kind: Kind) -> int:
        return len(self._shelf(kind).keys)

    def scan(self, kind: Kind, prefix: str = "", after: str = "") -> Iterator[Stored]:
        """In the order of keys, those that begin with `prefix`, beyond `after`."""
        shelf = self._shelf(kind)
        start = bisect_right(shelf.keys, max(prefix, after)) if after else bisect_right(shelf.keys, prefix)
        for index in range(start, len(shelf.keys)):
            key = shelf.keys[index]
            if not key.startswith(prefix):
                return
            yield shelf.objects[key]

    def at(self, kind: Kind, version: int, prefix: str = "") -> list[Stored]:
        """The state as it was: today's, with every later change undone. 410 if those are not known any more."""
        shelf = self._shelf(kind)
        if version < shelf.oldest:
            raise expired("The resourceVersion for the provided list is too old.")
        if not shelf.changes or shelf.changes[-1].version <= version:
            return list(self.scan(kind, prefix))
        state: dict[str, Stored | None] = {}
        for change in reversed(shelf.changes):
            if change.version <= version:
                break
            state[change.after.key] = change.before
        kept = {stored.key: stored for stored in self.scan(kind, prefix) if stored.key not in state}
        kept |= {key: stored for key, stored in state.items() if stored is not None and key.startswith(prefix)}
        return [kept[key] for key in sorted(kept)]

    def changes_since(self, kind: Kind, version: int) -> list[Change]:
        shelf = self._shelf(kind)
        if version < shelf.oldest:
            raise expired(f"too old resource version: {version} ({shelf.oldest})")
        found: list[Change] = []
        for change in reversed(shelf.changes):
            if change.version <= version:
                break
            found.append(change)
        return found[::-1]

    def compact(self) -> None:
        """Forget all history, as etcd's compaction does."""
        for shelf in self._shelves.values():
            shelf.changes.clear()
            shelf.change_bytes = 0
            shelf.oldest = self.version

    # Listening.

    def listen(self, kind: Kind, listener: Listener) -> int:
        self._next_listener += 1
        self._shelf(kind).listeners[self._next_listener] = listener
        return self._next_listener

    def leave(self, kind: Kind, number: int) -> None:
        self._shelf(kind).listeners.pop(number, None)

    # Writing.

    def put(self, kind: Kind, value: Object) -> Stored:
        """Store under the next version; the caller has made sure that this may be done."""
        shelf = self._shelf(kind)
        version = self.version + 1
        value["metadata"]["resourceVersion"] = str(version)
        after = Stored(kind, value, version)
        key = after.key
        before = shelf.objects.get(key)
        self._charge(len(after.data), len(before.data) if before else 0)
        self.version = version
        shelf.objects[key] = after
        if before is None:
            insort(shelf.keys, key)
        self._announce(shelf, Change("MODIFIED" if before else "ADDED", version, before, after))
        return after

    def remove(self, kind: Kind, key: str) -> Stored:
        """The last state, under the version of its removal."""
        shelf = self._shelf(kind)
        before = shelf.objects.pop(key)
        del shelf.keys[bisect_right(shelf.keys, key) - 1]
        self.bytes -= len(before.data)
        self.version += 1
        meta = {**before.object["metadata"], "resourceVersion": str(self.version)}
        after = Stored(kind, {**before.object, "metadata": meta}, self.version)
        self._announce(shelf, Change("DELETED", self.version, before, after))
        return after

    def _charge(self, size: int, before: int) -> None:
        if size > MAX_OBJECT_BYTES:
            raise ApiError(413, f"etcdserver: request is too large: limit is {MAX_OBJECT_BYTES}")
        if self.bytes + size - before > self._quota:
            raise ApiError(500, "etcdserver: mvcc: database space exceeded", reason="InternalError")
        self.bytes += size - before

    def _announce(self, shelf: _Shelf, change: Change) -> None:
        shelf.record(change)
        for listener in list(shelf.listeners.values()):
            listener(change)
        self.after_change(change)
