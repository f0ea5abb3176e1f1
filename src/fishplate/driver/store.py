"""The driver's memory: which claim holds which device. SQLite, because it survives being killed at any line.

Invariants, kept by the database itself and not only by the code around it:
- a device that is held exclusively has one holder (a unique index);
- a claim and its devices come and go in one transaction;
- the file is ours (application id) and of a version we know (user version); any other file is left alone.

It lives below /run by default: it outlives the driver's process and not the machine, as the devices' assignments do.
"""

import contextlib
import fcntl
import os
import sqlite3
from pathlib import Path

import msgspec

from fishplate.driver.records import Claim, Held, State
from fishplate.errors import FishplateError, InputError, OutsideError

APPLICATION_ID = 0x46504C54  # "FPLT"
VERSION = 1
_MAGIC = b"SQLite format 3\0"

_SCHEMA = """
CREATE TABLE claims (
    uid TEXT PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('preparing', 'prepared')),
    record BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE holdings (
    claim TEXT NOT NULL REFERENCES claims (uid) ON DELETE CASCADE,
    request TEXT NOT NULL,
    device TEXT NOT NULL,
    share TEXT NOT NULL,
    exclusive INTEGER NOT NULL,
    PRIMARY KEY (claim, request, device, share)
) WITHOUT ROWID;
CREATE UNIQUE INDEX one_holder ON holdings (device, share) WHERE exclusive;
"""


class InUseError(FishplateError):
    """Another claim holds the device."""


class Store:
    def __init__(self, connection: sqlite3.Connection, lock: int | None = None) -> None:
        self._db = connection
        self._lock = lock
        self._claims = {claim.uid: claim for claim in self._load()}
        self._by_pod: dict[str, tuple[Claim, ...]] = {}
        self.shared = False  # some claim may gain pods that nobody announces
        self._index()

    def close(self) -> None:
        self._db.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # -- reading, from memory ------------------------------------------------------------------------------------

    @property
    def claims(self) -> tuple[Claim, ...]:
        return tuple(self._claims.values())

    def claim(self, uid: str) -> Claim | None:
        return self._claims.get(uid)

    def claims_of(self, pod_uid: str) -> tuple[Claim, ...]:
        """Claims that the pod may use. Asked for every container on the node, so it is looked up, not searched."""
        return self._by_pod.get(pod_uid, ())

    def holder(self, device: str) -> Claim | None:
        """The claim that holds this device for itself."""
        for claim in self._claims.values():
            if any(one.device == device and not one.admin for one in claim.held):
                return claim
        return None

    # -- writing, to disk first ----------------------------------------------------------------------------------

    def reserve(self, claim: Claim) -> None:
        """Take the claim's devices, all or none. Doing it again with the same devices changes nothing."""
        try:
            with self._transaction():
                self._put(claim, "preparing")
                self._db.execute("DELETE FROM holdings WHERE claim = ?", (claim.uid,))
                self._db.executemany(
                    "INSERT INTO holdings VALUES (?, ?, ?, ?, ?)",
                    [(claim.uid, one.request, one.device, one.share_id, _exclusive(one)) for one in claim.held],
                )
        except sqlite3.IntegrityError as error:
            raise self._in_use(claim) from error
        self._claims[claim.uid] = msgspec.structs.replace(claim, state="preparing")
        self._index()

    def record(self, claim: Claim) -> None:
        """The claim, which is reserved, is prepared; also used when it gains a consumer or its devices new numbers."""
        if claim.uid not in self._claims:
            raise InUseError(f"claim {claim} holds nothing")
        with self._transaction():
            self._put(claim, "prepared")
        self._claims[claim.uid] = msgspec.structs.replace(claim, state="prepared")
        self._index()

    def forget(self, uid: str) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM claims WHERE uid = ?", (uid,))
        self._claims.pop(uid, None)
        self._index()

    # -- inside --------------------------------------------------------------------------------------------------

    def _load(self) -> list[Claim]:
        rows = self._db.execute("SELECT uid, state, record FROM claims ORDER BY uid")
        loaded = []
        for uid, state, record in rows:
            try:
                claim = msgspec.json.decode(record, type=Claim)
            except msgspec.DecodeError as error:
                raise OutsideError(
                    f"the record of claim {uid} is damaged: {error}",
                    remedy="drain the node, remove the file, restart the driver",
                ) from error
            loaded.append(msgspec.structs.replace(claim, state=state))
        return loaded

    def _index(self) -> None:
        by_pod: dict[str, tuple[Claim, ...]] = {}
        for claim in self._claims.values():
            for consumer in claim.consumers:
                by_pod[consumer.uid] = (*by_pod.get(consumer.uid, ()), claim)
        self._by_pod = by_pod
        self.shared = any(claim.shared for claim in self._claims.values())

    def _put(self, claim: Claim, state: State) -> None:
        record = msgspec.json.encode(msgspec.structs.replace(claim, state=state))
        self._db.execute(
            "INSERT INTO claims VALUES (?, ?, ?) ON CONFLICT (uid) DO UPDATE SET state = ?, record = ?",
            (claim.uid, state, record, state, record),
        )

    def _in_use(self, claim: Claim) -> InUseError:
        for one in claim.held:
            holder = self.holder(one.device)
            if _exclusive(one) and holder and holder.uid != claim.uid:
                return InUseError(
                    f"device {one.device} is in use by claim {holder} (uid {holder.uid})",
                    remedy="the kubelet has to unprepare that claim first",
                )
        return InUseError(f"claim {claim} names a device twice")

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._db)


class _Transaction:
    """BEGIN IMMEDIATE … COMMIT, or ROLLBACK: Python's own context manager begins too late to count on."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        self._db.execute("ROLLBACK" if kind else "COMMIT")


def _exclusive(held: Held) -> bool:
    return not held.admin


def open_store(path: str) -> Store:
    """Open or make the file; an empty path keeps everything in memory, as upstream's flag does."""
    lock = None
    if path:
        _check_file(Path(path))
        lock = _lock(path)
    try:
        db = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=1.0)
        _check(db, path)
        if path:  # not before: a foreign file keeps its mode
            Path(path).chmod(0o600)
        return Store(db, lock)
    except sqlite3.DatabaseError as error:
        raise _foreign(path, str(error)) from error


def _lock(path: str) -> int:
    """One process at a time: each keeps the claims in memory and would not see the other's. Held until the process
    ends, however it ends."""
    handle = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise OutsideError("another process uses it", where=path, remedy="end it, or give another --db-path") from error
    return handle


def _check_file(path: Path) -> None:
    """SQLite takes a file of a few bytes for an empty database, and would overwrite it."""
    try:
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):  # before SQLite makes it: its side files get the same mode
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            start = file.read(len(_MAGIC))
            if start and start != _MAGIC:
                raise _foreign(str(path), "it does not begin as one")
    except OSError as error:
        raise InputError(f"cannot be opened: {error}", where=str(path), remedy="give another --db-path") from error


def _check(db: sqlite3.Connection, path: str) -> None:
    identity = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if identity == 0 and version == 0 and tables == 0:
        # Identity, version and tables in one transaction: a crash here leaves an empty file, which is fine.
        db.executescript(
            f"BEGIN; {_SCHEMA} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; COMMIT;"
        )
    elif identity != APPLICATION_ID:
        raise _foreign(path, "it is another program's database")
    elif version != VERSION:
        raise InputError(
            f"its version is {version}; this release reads {VERSION}",
            where=path,
            remedy="run the release that wrote it, or drain the node and remove the file",
        )
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA journal_mode = WAL")


def _foreign(path: str, why: str) -> InputError:
    return InputError(
        f"not a Fishplate database: {why}",
        where=path,
        remedy="give another --db-path; upstream DRANET's file cannot be read: drain the node before the change",
    )
