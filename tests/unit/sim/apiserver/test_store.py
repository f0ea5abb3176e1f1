"""Versions, history and bounds of the store."""

from typing import Any

import pytest

from fishplate.sim.apiserver import store as store_module
from fishplate.sim.apiserver.kinds import BY_PATH
from fishplate.sim.apiserver.status import ApiError
from fishplate.sim.apiserver.store import Change, Store

MAPS = BY_PATH["", "v1", "configmaps"]
NODES = BY_PATH["", "v1", "nodes"]


def _map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "a"}, "data": data}


def test_one_counter_numbers_every_change_of_every_kind() -> None:
    store = Store(first_version=10)
    first = store.put(MAPS, _map("one"))
    second = store.put(NODES, {"metadata": {"name": "n"}})
    third = store.remove(MAPS, "a/one")
    assert (first.version, second.version, third.version) == (11, 12, 13)
    assert third.object["metadata"]["resourceVersion"] == "13"


def test_the_state_at_an_earlier_version_undoes_what_came_later() -> None:
    store = Store()
    store.put(MAPS, _map("kept"))
    store.put(MAPS, _map("changed", x="old"))
    then = store.put(MAPS, _map("removed")).version
    store.put(MAPS, _map("changed", x="new"))
    store.remove(MAPS, "a/removed")
    store.put(MAPS, _map("added"))
    before = store.at(MAPS, then)
    assert [s.name for s in before] == ["changed", "kept", "removed"]
    assert before[0].object["data"] == {"x": "old"}
    assert [s.name for s in store.at(MAPS, store.version)] == ["added", "changed", "kept"]


def test_history_is_bounded_in_events_and_tells_what_it_forgot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MAX_EVENTS", 3)
    store = Store()
    versions = [store.put(MAPS, _map(f"m-{i}")).version for i in range(5)]
    assert [c.version for c in store.changes_since(MAPS, versions[1])] == versions[2:]
    with pytest.raises(ApiError, match="too old resource version") as refused:
        store.changes_since(MAPS, versions[0])
    assert refused.value.code == 410
    with pytest.raises(ApiError):
        store.at(MAPS, versions[0])


def test_history_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MAX_EVENT_BYTES", 3000)
    store = Store()
    versions = [store.put(MAPS, _map(f"m-{i}", x="y" * 1000)).version for i in range(5)]
    assert len(store.changes_since(MAPS, versions[2])) == 2
    with pytest.raises(ApiError):
        store.changes_since(MAPS, versions[1])


def test_kinds_do_not_crowd_out_each_others_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MAX_EVENTS", 2)
    store = Store()
    start = store.put(NODES, {"metadata": {"name": "n"}}).version
    for index in range(5):
        store.put(MAPS, _map(f"m-{index}"))
    assert store.changes_since(NODES, start) == []


def test_the_quota_is_kept_and_deleting_makes_room() -> None:
    store = Store(quota=2500)
    store.put(MAPS, _map("one", x="y" * 1000))
    store.put(MAPS, _map("two", x="y" * 1000))
    with pytest.raises(ApiError, match="database space exceeded"):
        store.put(MAPS, _map("three", x="y" * 1000))
    assert store.get(MAPS, "a/three") is None
    store.put(MAPS, _map("one", x="z" * 1000))
    store.remove(MAPS, "a/two")
    store.put(MAPS, _map("three", x="y" * 1000))


def test_an_object_larger_than_etcd_takes_is_refused() -> None:
    with pytest.raises(ApiError) as refused:
        Store().put(MAPS, _map("one", x="y" * (1600 << 10)))
    assert refused.value.code == 413


def test_a_listener_hears_changes_of_its_kind_until_it_leaves() -> None:
    store = Store()
    heard: list[Change] = []
    number = store.listen(MAPS, heard.append)
    store.put(MAPS, _map("one"))
    store.put(NODES, {"metadata": {"name": "n"}})
    store.remove(MAPS, "a/one")
    store.leave(MAPS, number)
    store.put(MAPS, _map("two"))
    assert [c.type for c in heard] == ["ADDED", "DELETED"]


def test_a_stored_object_is_replaced_and_not_changed() -> None:
    store = Store()
    first = store.put(MAPS, _map("one", x="1"))
    data = first.data
    store.put(MAPS, _map("one", x="2"))
    store.remove(MAPS, "a/one")
    assert (first.data, first.object["data"]) == (data, {"x": "1"})
