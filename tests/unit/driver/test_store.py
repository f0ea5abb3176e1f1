import sqlite3
from pathlib import Path

import msgspec
import pytest

from fishplate.driver.records import Claim, Consumer, Held
from fishplate.driver.store import InUseError, open_store
from fishplate.errors import InputError, OutsideError


def claim(uid: str, *devices: str, admin: bool = False) -> Claim:
    held = tuple(Held(request="nic", device=device, pool="node", admin=admin) for device in devices)
    return Claim(uid=uid, namespace="ns", name=f"claim-{uid}", held=held)


def test_a_prepared_claim_is_there_after_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "d" / "driver.db")
    store = open_store(path)
    one = msgspec.structs.replace(claim("a", "nic0"), consumers=(Consumer(uid="pod", containers={"c": ()}),))
    store.reserve(one)
    store.record(one)
    store.close()
    again = open_store(path)
    known = again.claim("a")
    assert known is not None
    assert (known.state, known.held) == ("prepared", one.held)
    assert again.claims_of("pod") == (known,)


def test_a_claim_that_was_only_reserved_still_holds_its_devices_after_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "driver.db")
    store = open_store(path)
    store.reserve(claim("a", "nic0"))
    store.close()
    again = open_store(path)
    assert again.claims[0].state == "preparing"
    with pytest.raises(InUseError, match="nic0 is in use by claim ns/claim-a"):
        again.reserve(claim("b", "nic0"))


def test_a_device_has_one_holder_and_a_refused_claim_takes_nothing(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "driver.db"))
    store.reserve(claim("a", "nic1"))
    with pytest.raises(InUseError):
        store.reserve(claim("b", "nic0", "nic1"))
    assert store.claim("b") is None
    store.reserve(claim("c", "nic0"))  # free: nothing of b was kept


def test_the_database_itself_refuses_a_second_holder(tmp_path: Path) -> None:
    path = tmp_path / "driver.db"
    store = open_store(str(path))
    store.reserve(claim("a", "nic0"))
    with sqlite3.connect(path) as db, pytest.raises(sqlite3.IntegrityError):
        db.execute("INSERT INTO holdings VALUES ('b', 'nic', 'nic0', '', 1)")


def test_admin_access_does_not_occupy_a_device() -> None:
    store = open_store("")
    store.reserve(claim("a", "nic0"))
    store.reserve(claim("watcher", "nic0", admin=True))
    store.reserve(claim("other", "nic0", admin=True))
    holder = store.holder("nic0")
    assert holder is not None
    assert holder.uid == "a"


def test_reserving_again_is_the_same_as_once() -> None:
    store = open_store("")
    store.reserve(claim("a", "nic0", "nic1"))
    store.reserve(claim("a", "nic0", "nic1"))
    store.forget("a")
    store.reserve(claim("b", "nic0", "nic1"))


def test_a_forgotten_claim_frees_its_devices_for_good(tmp_path: Path) -> None:
    path = str(tmp_path / "driver.db")
    store = open_store(path)
    store.reserve(claim("a", "nic0"))
    store.forget("a")
    store.close()
    again = open_store(path)
    assert again.claims == ()
    again.reserve(claim("b", "nic0"))


def test_a_claim_that_names_a_device_twice_in_one_request_is_refused() -> None:
    with pytest.raises(InUseError, match="twice"):
        open_store("").reserve(claim("a", "nic0", "nic0"))


@pytest.mark.parametrize("content", [b"bbolt" * 1000, b"\xed\x0c\xda\xed" * 2000, b"x"])
def test_a_foreign_file_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "dranet.db"
    path.write_bytes(content)
    path.chmod(0o640)
    with pytest.raises(InputError, match="not a Fishplate database"):
        open_store(str(path))
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o640


def test_another_programs_sqlite_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE claims (uid TEXT)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="another program"):
        open_store(str(path))
    assert path.read_bytes() == before


def test_a_newer_version_is_refused_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "driver.db"
    open_store(str(path)).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(InputError, match="version is 99"):
        open_store(str(path))


def test_a_damaged_record_is_told_and_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "driver.db"
    store = open_store(str(path))
    store.reserve(claim("a", "nic0"))
    store.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE claims SET record = 'rubbish'")
    db.close()
    with pytest.raises(OutsideError, match="record of claim a is damaged"):
        open_store(str(path))


def test_the_file_is_for_root_alone(tmp_path: Path) -> None:
    path = tmp_path / "driver.db"
    open_store(str(path))
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_second_process_is_kept_out(tmp_path: Path) -> None:
    path = str(tmp_path / "driver.db")
    store = open_store(path)
    with pytest.raises(OutsideError, match="another process uses it"):
        open_store(path)
    store.close()
    open_store(path).close()


def test_a_claim_that_was_never_reserved_cannot_be_recorded() -> None:
    with pytest.raises(InUseError, match="holds nothing"):
        open_store("").record(claim("a", "nic0"))


def test_side_files_are_for_root_alone_too(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "driver.db"))
    store.reserve(claim("a", "nic0"))
    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}
