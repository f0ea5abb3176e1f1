"""Watches: what a watcher is told, as lines, in the order of versions.

A watch is a listener on the store. It hands complete lines to `send` as changes happen and never waits: whoever cannot
take them fast enough is cut off by the connection's own bound, as the real one cuts off slow watchers.
"""

from collections.abc import Callable

import msgspec

from fishplate.sim.apiserver.conform import zero
from fishplate.sim.apiserver.kinds import Kind
from fishplate.sim.apiserver.lists import Selection
from fishplate.sim.apiserver.options import ListOptions, parse_version
from fishplate.sim.apiserver.status import ApiError
from fishplate.sim.apiserver.store import Change, Store, Stored, encode_event

Send = Callable[[bytes], None]
Render = Callable[[Stored], bytes]


class Watch:
    def __init__(self, store: Store, selection: Selection, options: ListOptions, render: Render | None = None) -> None:
        self._store = store
        self._selection = selection
        self._options = options
        self._render = render
        self._listener = 0
        self._send: Send = lambda data: None
        self._plain = render is None and not selection.matchers and not selection.prefix
        self.timeout_s = options.timeout_s
        # A version that makes no sense is refused before the stream begins.
        try:
            self._from = parse_version(options.version) if options.version else 0
        except ValueError as error:
            raise ApiError(500, str(error), reason="") from error

    def start(self, send: Send) -> None:
        """Say what there is to say now, then listen."""
        self._send = send
        kind, options = self._selection.kind, self._options
        initial = options.initial if options.initial is not None else not self._from
        if initial:
            for stored in self._store.scan(kind, self._selection.prefix):
                if self._selection.takes(stored):
                    send(encode_event("ADDED", self._encode(stored)))
            if options.initial and options.bookmarks:
                send(self._bookmark({"k8s.io/initial-events-end": "true"}))
        elif self._from:
            try:
                missed = self._store.changes_since(kind, self._from)
            except ApiError as error:
                send(encode_event("ERROR", msgspec.json.encode(error.body())))
                return
            for change in missed:
                self._tell(change)
        self._listener = self._store.listen(kind, self._tell)

    def stop(self) -> None:
        if self._listener:
            self._store.leave(self._selection.kind, self._listener)
            self._listener = 0

    @property
    def is_over(self) -> bool:
        """Nothing will come any more: the version was too old, or it was stopped."""
        return not self._listener

    def bookmark(self) -> None:
        if self._options.bookmarks and self._listener:
            self._send(self._bookmark({}))

    def _tell(self, change: Change) -> None:
        if self._plain:
            self._send(change.encode())
            return
        takes = self._selection.takes
        before = change.before is not None and takes(change.before)
        after = change.type != "DELETED" and takes(change.after)
        if after:
            self._send(encode_event("MODIFIED" if before else "ADDED", self._encode(change.after)))
        elif before:
            self._send(encode_event("DELETED", self._encode(_last_seen(change))))

    def _encode(self, stored: Stored) -> bytes:
        return self._render(stored) if self._render else stored.encode()

    def _bookmark(self, annotations: dict[str, str]) -> bytes:
        value = empty_object(self._selection.kind)
        told = {"annotations": annotations} if annotations else {}
        value["metadata"] = {**told, "resourceVersion": str(self._store.version)}
        head = {"kind": self._selection.kind.kind, "apiVersion": self._selection.kind.api_version}
        return encode_event("BOOKMARK", msgspec.json.encode(head | value))


def empty_object(kind: Kind) -> dict[str, object]:
    made: dict[str, object] = zero(kind.shape)
    return made


def _last_seen(change: Change) -> Stored:
    """What the watcher is shown of an object that it loses: its last matching state, under the new version."""
    if change.type == "DELETED" or change.before is None:
        return change.after
    before = change.before
    meta = {**before.object["metadata"], "resourceVersion": str(change.version)}
    return Stored(before.kind, {**before.object, "metadata": meta}, change.version)
