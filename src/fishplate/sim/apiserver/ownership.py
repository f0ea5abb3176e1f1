"""Who owns which field: metadata.managedFields, kept up on every write and consulted by server-side apply.

A manager is its name, whether it applies or updates, the API version and the subresource. An update takes the fields
it changes from everybody else; an apply asks first (a conflict) unless it is forced, and gives back what it no longer
mentions. Fields that a write cannot change (status through the main resource, and so on) are owned by nobody for it.
"""

from typing import NamedTuple

from fishplate.sim.apiserver.conform import zero
from fishplate.sim.apiserver.fieldsets import (
    Fields,
    Path,
    decode_fields,
    difference,
    encode_fields,
    intersection,
    show_path,
    union,
    without_below,
)
from fishplate.sim.apiserver.kinds import Kind
from fishplate.sim.apiserver.merge import TypedError, check_typed, collect_fields, compare, merge, remove_fields
from fishplate.sim.apiserver.status import ApiError
from fishplate.sim.apiserver.values import Object

MAX_UPDATERS = 10
_ANCIENT = "ancient-changes"
_BEFORE = "before-first-apply"
_SERVER_SET = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)


class Manager(NamedTuple):
    name: str
    operation: str
    version: str
    subresource: str = ""

    def __str__(self) -> str:
        said = f'"{self.name}"'
        if self.subresource:
            said += f' with subresource "{self.subresource}"'
        return said + (f" using {self.version}" if self.operation == "Update" else "")


class Share(NamedTuple):
    """What a manager owns, and since when."""

    fields: Fields
    time: str


Shares = dict[Manager, Share]


class Write(NamedTuple):
    """Who writes, through what, when."""

    manager: str
    subresource: str
    now: str


def _stripped() -> Fields:
    meta = Fields(here=True, below={f"f:{name}": Fields(here=True) for name in _SERVER_SET})
    return Fields(below={"f:kind": Fields(here=True), "f:apiVersion": Fields(here=True), "f:metadata": meta})


_STRIPPED = _stripped()


def _ignored(kind: Kind, subresource: str) -> Fields:
    """Fields that a write through this door resets."""
    if subresource == "status":
        below = {"f:spec": Fields(here=True)}
        if kind.kind == "ResourceClaim":
            below["f:metadata"] = Fields(here=True)
        return Fields(below=below)
    if "status" in kind.subresources:
        return Fields(below={"f:status": Fields(here=True)})
    return Fields()


def _strip(fields: Fields, ignored: Fields) -> Fields:
    return without_below(difference(fields, _STRIPPED), ignored)


def read_shares(value: Object) -> Shares:
    shares: Shares = {}
    for entry in value["metadata"].get("managedFields") or ():
        manager = Manager(
            entry.get("manager", ""),
            entry.get("operation", ""),
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
        )
        shares[manager] = Share(decode_fields(entry.get("fieldsV1") or {}), entry.get("time", ""))
    return shares


def write_shares(shares: Shares) -> list[Object]:
    entries = []
    for manager in sorted(shares, key=lambda m: (m.operation, shares[m].time, m.name, m.version, m.subresource)):
        entry: Object = {"manager": manager.name, "operation": manager.operation, "apiVersion": manager.version}
        if shares[manager].time:
            entry["time"] = shares[manager].time
        entry |= {"fieldsType": "FieldsV1", "fieldsV1": encode_fields(shares[manager].fields)}
        if manager.subresource:
            entry["subresource"] = manager.subresource
        entries.append(entry)
    return entries


def _bare(value: Object) -> Object:
    meta = {key: one for key, one in value["metadata"].items() if key != "managedFields"}
    return {**value, "metadata": meta}


def _empty(kind: Kind) -> Object:
    made: Object = zero(kind.shape)
    return made


def _cap(shares: Shares) -> Shares:
    """At most ten updaters; the oldest are put together under one name."""
    updaters = sorted((m for m in shares if m.operation == "Update"), key=lambda m: (shares[m].time, m))
    if len(updaters) <= MAX_UPDATERS:
        return shares
    excess = updaters[: len(updaters) - MAX_UPDATERS + 1]
    merged = Fields()
    for manager in excess:
        merged = union(merged, shares[manager].fields)
    kept = {manager: share for manager, share in shares.items() if manager not in excess}
    last = excess[-1]
    return kept | {Manager(_ANCIENT, "Update", last.version): Share(merged, shares[last].time)}


def track_update(kind: Kind, live: Object | None, new: Object, write: Write) -> list[Object]:
    """managedFields after somebody wrote `new`, which is conformed and defaulted, over `live`.

    A writer may bring managedFields along, to hand ownership over; one empty entry drops them all.
    """
    told = new["metadata"].get("managedFields")
    shares = read_shares(new if told else live) if live else {}
    if told == [{}] or (live and not shares):
        return []  # nobody owns anything of it, and only an apply changes that
    before = _bare(live) if live else _empty(kind)
    change = compare(kind.shape, before, _bare(new))
    taken = union(change.added, change.modified)
    ignored = _ignored(kind, write.subresource)
    me = Manager(write.manager, "Update", kind.api_version, write.subresource)
    kept = _without(shares, me, _strip(taken, ignored), _strip(change.removed, ignored))
    mine = shares.get(me)
    owned = difference(mine.fields, change.removed) if mine else Fields()
    owned = _strip(union(owned, taken), ignored)
    if owned:
        same = mine is not None and mine.fields == owned
        kept[me] = Share(owned, mine.time if mine and same else write.now)
    return write_shares(_cap(kept))


def _without(shares: Shares, me: Manager, taken: Fields, removed: Fields) -> Shares:
    """The others, less what was taken from them or removed."""
    kept: Shares = {}
    for manager, share in shares.items():
        if manager == me:
            continue
        rest = difference(difference(share.fields, taken), removed)
        if rest:
            kept[manager] = Share(rest, share.time)
    return kept


class Applied(NamedTuple):
    value: Object  # merged, not yet conformed
    managed: list[Object]


def apply(kind: Kind, live: Object | None, said: Object, write: Write, *, force: bool) -> Applied:
    """The live object with what was said laid over it, and the new owners. 409 where others disagree."""
    try:
        check_typed(kind.shape, said)
    except TypedError as error:
        meta = said.get("metadata") or {}
        group = kind.api_version if kind.group else f"/{kind.version}"
        subject = f"({meta.get('namespace', '')}/{meta.get('name', '')}; {group}, Kind={kind.kind})"
        raise ApiError(500, f"failed to create typed patch object {subject}: {error}", reason="") from error
    shares = read_shares(live) if live else {}
    before = _bare(live) if live else _empty(kind)
    if live and not shares:
        everything = compare(kind.shape, _empty(kind), before)
        held = _strip(union(everything.added, everything.modified), Fields())
        shares = {Manager(_BEFORE, "Update", kind.api_version): Share(held, write.now)} if held else {}
    ignored = _ignored(kind, write.subresource)
    me = Manager(write.manager, "Apply", kind.api_version, write.subresource)
    mine = shares.get(me)
    owned = _strip(collect_fields(kind.shape, said), ignored)
    merged = merge(kind.shape, before, said)
    if mine:
        others = owned
        for manager, share in shares.items():
            others = union(others, share.fields) if manager != me else others
        merged = remove_fields(kind.shape, merged, _unowned(difference(mine.fields, owned), others))
    change = compare(kind.shape, before, merged)
    taken = _strip(union(change.added, change.modified), ignored)
    if not force:
        _refuse_conflicts(shares, me, taken)
    removed = _strip(change.removed, ignored)
    kept = _without(shares, me, taken, removed)
    if owned:
        # An apply that changes no value leaves no mark of its time, not even a first one.
        kept[me] = Share(owned, write.now if taken or removed else mine.time if mine else "")
    return Applied(merged, write_shares(kept))


def _unowned(gone: Fields, others: Fields) -> Fields:
    """What may be removed: a path goes whole only if nobody owns it, or anything below it, any more."""
    if not others:
        return gone
    below = {}
    for key, node in gone.below.items():
        rest = _unowned(node, others.below[key]) if key in others.below else node
        if rest:
            below[key] = rest
    return Fields(here=False, below=below)


def _refuse_conflicts(shares: Shares, me: Manager, taken: Fields) -> None:
    found: dict[Manager, list[Path]] = {}
    for manager, share in shares.items():
        if manager != me and (both := intersection(share.fields, taken)):
            found[manager] = list(both.paths())
    if not found:
        return
    pairs = sorted((str(manager), show_path(path)) for manager, paths in found.items() for path in paths)
    causes = [{"reason": "FieldManagerConflict", "message": f"conflict with {m}", "field": p} for m, p in pairs]
    if len(pairs) == 1:
        said = f"conflict with {pairs[0][0]}: {pairs[0][1]}"
    else:
        blocks = []
        for name in dict.fromkeys(m for m, _ in pairs):
            lines = "\n".join(f"- {p}" for m, p in pairs if m == name)
            blocks.append(f"conflicts with {name}:\n{lines}")
        said = "\n".join(blocks)
    count = f"{len(pairs)} conflict{'s' if len(pairs) != 1 else ''}"
    raise ApiError(409, f"Apply failed with {count}: {said}", details={"causes": causes})
