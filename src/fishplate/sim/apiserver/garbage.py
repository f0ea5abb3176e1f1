"""What happens in the background: dependants of owners that are gone, namespaces that are being emptied.

The real thing is three controllers; here it is a list of work that the server does between requests. `step` does what
there is to do now and says whether more may follow, so that tests can drive it without a clock.
"""

from collections import deque
from typing import Protocol

from fishplate.sim.apiserver.kinds import KINDS, NAMESPACE, Kind
from fishplate.sim.apiserver.store import Change, Store, Stored
from fishplate.sim.apiserver.values import Object, Value

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"


class Deleter(Protocol):
    """The verbs that the collector needs, as its own user."""

    def delete_object(self, stored: Stored, policy: str = "") -> None: ...

    def rewrite(self, stored: Stored, value: Object) -> None: ...

    def create_service_account(self, namespace: str) -> None: ...


class Collector:
    def __init__(self, store: Store, deleter: Deleter) -> None:
        self._store = store
        self._deleter = deleter
        self._uids: dict[str, tuple[Kind, str]] = {}
        self._dependants: dict[str, set[tuple[str, str]]] = {}  # owner's uid -> (kind's api name, key)
        self._kinds = {kind.plural: kind for kind in KINDS}
        self._work: deque[tuple[str, Kind, str, str]] = deque()
        store.after_change = self.note

    def note(self, change: Change) -> None:
        """Keep the indexes, and put down what follows from a change."""
        stored, meta = change.after, change.after.object["metadata"]
        before = change.before.object["metadata"] if change.before else {}
        self._index(stored, before.get("ownerReferences") or (), add=False)
        if change.type == "DELETED":
            self._uids.pop(stored.uid, None)
            if stored.uid in self._dependants:
                self._work.append(("dependants", stored.kind, stored.key, stored.uid))
            self._unblock(meta)
        else:
            self._uids[stored.uid] = (stored.kind, stored.key)
            self._index(stored, meta.get("ownerReferences") or (), add=True)
            if meta.get("ownerReferences"):
                self._work.append(("owned", stored.kind, stored.key, stored.uid))
            if meta.get("deletionTimestamp"):
                self._work.append(("deleting", stored.kind, stored.key, stored.uid))
        if stored.kind is NAMESPACE and change.type == "ADDED":
            self._work.append(("born", NAMESPACE, stored.key, stored.uid))
        if stored.kind.namespaced and change.type == "DELETED":
            self._recheck_namespace(stored.namespace)

    def _index(self, stored: Stored, owners: Value, *, add: bool) -> None:
        for owner in owners:
            entry = (stored.kind.plural, stored.key)
            if add:
                self._dependants.setdefault(owner["uid"], set()).add(entry)
            elif owner["uid"] in self._dependants:
                self._dependants[owner["uid"]].discard(entry)
                if not self._dependants[owner["uid"]]:
                    del self._dependants[owner["uid"]]

    def _unblock(self, meta: Object) -> None:
        for owner in meta.get("ownerReferences") or ():
            found = self._uids.get(owner["uid"])
            if found is not None:
                self._work.append(("deleting", found[0], found[1], owner["uid"]))

    def _recheck_namespace(self, name: str) -> None:
        found = self._store.get(NAMESPACE, name)
        if found is not None and found.object["metadata"].get("deletionTimestamp"):
            self._work.append(("deleting", NAMESPACE, name, found.uid))

    @property
    def is_idle(self) -> bool:
        return not self._work

    def step(self, limit: int = 200) -> bool:
        """Do up to `limit` pieces of work; true if some are left."""
        for _ in range(limit):
            if not self._work:
                return False
            what, kind, key, uid = self._work.popleft()
            stored = self._store.get(kind, key)
            current = stored if stored is not None and stored.uid == uid else None
            match what:
                case "dependants":
                    for dependant in self._dependants_of(uid):
                        self._collect(dependant)
                case "owned" if current is not None:
                    self._collect(current)
                case "deleting" if current is not None:
                    self._finish(current)
                case "born" if current is not None:
                    self._deleter.create_service_account(key)
        return bool(self._work)

    def _dependants_of(self, uid: str) -> list[Stored]:
        entries = sorted(self._dependants.get(uid, ()))
        found = [self._store.get(self._kinds[plural], key) for plural, key in entries]
        return [stored for stored in found if stored is not None]

    def _collect(self, stored: Stored) -> None:
        """Delete what has owners, none of which is there."""
        meta = stored.object["metadata"]
        owners = meta.get("ownerReferences")
        if not owners or meta.get("deletionTimestamp") or any(owner["uid"] in self._uids for owner in owners):
            return
        self._deleter.delete_object(stored)

    def _finish(self, stored: Stored) -> None:
        """Go on with a deletion that waits for what depends on it."""
        finalizers = stored.object["metadata"].get("finalizers") or ()
        if stored.kind is NAMESPACE:
            self._empty_namespace(stored)
        elif ORPHAN in finalizers:
            for dependant in self._dependants_of(stored.uid):
                self._disown(dependant, stored.uid)
            self._drop_finalizer(stored, ORPHAN)
        elif FOREGROUND in finalizers:
            blockers = []
            for dependant in self._dependants_of(stored.uid):
                if not dependant.object["metadata"].get("deletionTimestamp"):
                    self._deleter.delete_object(dependant, "Foreground")
                if self._blocks(dependant, stored.uid):
                    blockers.append(dependant)
            if not blockers:
                self._drop_finalizer(stored, FOREGROUND)

    def _blocks(self, dependant: Stored, uid: str) -> bool:
        now = self._store.get(dependant.kind, dependant.key)
        owners = now.object["metadata"].get("ownerReferences") or () if now is not None else ()
        return any(owner["uid"] == uid and owner.get("blockOwnerDeletion") for owner in owners)

    def _disown(self, dependant: Stored, uid: str) -> None:
        meta = dict(dependant.object["metadata"])
        left = [owner for owner in meta.pop("ownerReferences") if owner["uid"] != uid]
        if left:
            meta["ownerReferences"] = left
        self._deleter.rewrite(dependant, {**dependant.object, "metadata": meta})

    def _drop_finalizer(self, stored: Stored, name: str) -> None:
        meta = dict(stored.object["metadata"])
        left = [one for one in meta.pop("finalizers") if one != name]
        if left:
            meta["finalizers"] = left
        self._deleter.rewrite(stored, {**stored.object, "metadata": meta})

    def _empty_namespace(self, stored: Stored) -> None:
        left = False
        for kind in KINDS:
            if not kind.namespaced:
                continue
            for one in list(self._store.scan(kind, f"{stored.name}/")):
                if not one.object["metadata"].get("deletionTimestamp"):
                    self._deleter.delete_object(one)
                left = left or self._store.get(kind, one.key) is not None
        if not left:
            spec = {key: value for key, value in stored.object["spec"].items() if key != "finalizers"}
            self._deleter.rewrite(stored, {**stored.object, "spec": spec})
