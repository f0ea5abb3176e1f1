"""The promises that others build on, each by itself. What the real server says in full is in tests/conformance/api."""

from collections.abc import Callable
from typing import Any

from fishplate.sim.apiserver.service import Service
from tests.conformance.api import objects

Ask = Callable[..., Any]
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = f"{objects.DRA}/namespaces/default/resourceclaims"


def test_a_write_over_an_older_version_is_a_conflict(ask: Ask) -> None:
    made = ask("POST", MAPS, objects.config_map("one"))
    ask("PUT", f"{MAPS}/one", made | {"data": {"a": "2"}})
    assert ask("PUT", f"{MAPS}/one", made | {"data": {"a": "3"}}, status=409)["reason"] == "Conflict"
    assert ask("GET", f"{MAPS}/one")["data"] == {"a": "2"}


def test_a_refused_write_leaves_no_trace(ask: Ask, service: Service) -> None:
    before = service.store.version
    ask("POST", CLAIMS, objects.claim("one", objects.request(count=-1)), status=422)
    ask("GET", f"{CLAIMS}/one", status=404)
    assert service.store.version == before


def test_a_dry_run_stores_nothing(ask: Ask, service: Service) -> None:
    ask("POST", MAPS, objects.config_map("kept"))
    before = service.store.version
    ask("POST", MAPS, objects.config_map("one"), dryRun="All")
    ask("PATCH", f"{MAPS}/kept", {"data": {"a": "9"}}, dryRun="All")
    ask("DELETE", f"{MAPS}/kept", dryRun="All")
    assert service.store.version == before
    assert ask("GET", f"{MAPS}/kept")["data"] == {"a": "1"}


def test_the_status_door_leaves_the_spec_and_the_main_door_the_status(ask: Ask) -> None:
    made = ask("POST", PODS, objects.pod("one"))
    changed = ask("PUT", f"{PODS}/one/status", {**made, "spec": {"containers": []}, "status": {"phase": "Running"}})
    assert changed["spec"] == made["spec"]
    again = ask("PUT", f"{PODS}/one", {**changed, "status": {"phase": "Failed"}})
    assert again["status"]["phase"] == "Running"


def test_an_allocation_is_final_until_it_is_taken_back(ask: Ask) -> None:
    made = ask("POST", CLAIMS, objects.claim("one"))
    first = ask("PUT", f"{CLAIMS}/one/status", made | {"status": {"allocation": objects.allocation("nic-0")}})
    other = first | {"status": {"allocation": objects.allocation("nic-1")}}
    assert "field is immutable" in ask("PUT", f"{CLAIMS}/one/status", other, status=422)["message"]


def test_a_deletion_with_another_uid_is_refused(ask: Ask) -> None:
    ask("POST", MAPS, objects.config_map("one"))
    ask("DELETE", f"{MAPS}/one", {"preconditions": {"uid": "somebody-else"}}, status=409)
    ask("GET", f"{MAPS}/one")


def test_a_finalizer_holds_what_is_deleted(ask: Ask) -> None:
    ask("POST", MAPS, objects.config_map("one", finalizers=["example.test/hold"]))
    ask("DELETE", f"{MAPS}/one")
    assert ask("GET", f"{MAPS}/one")["metadata"]["deletionTimestamp"]
    ask("PATCH", f"{MAPS}/one", {"metadata": {"finalizers": None}})
    ask("GET", f"{MAPS}/one", status=404)


def test_a_bound_pod_stays_until_its_kubelet_lets_go(ask: Ask) -> None:
    ask("POST", PODS, objects.pod("one", nodeName="n1"))
    ask("DELETE", f"{PODS}/one")
    assert ask("GET", f"{PODS}/one")["metadata"]["deletionGracePeriodSeconds"] == 30
    ask("DELETE", f"{PODS}/one", gracePeriodSeconds="0")
    ask("GET", f"{PODS}/one", status=404)


def test_a_pod_is_bound_once(ask: Ask) -> None:
    ask("POST", PODS, objects.pod("one"))
    ask("POST", f"{PODS}/one/binding", {"target": {"kind": "Node", "name": "n1"}})
    ask("POST", f"{PODS}/one/binding", {"target": {"kind": "Node", "name": "n2"}}, status=409)
    assert ask("GET", f"{PODS}/one")["spec"]["nodeName"] == "n1"


def test_dependants_follow_their_owner_through_generations(ask: Ask) -> None:
    owner = ask("POST", MAPS, objects.config_map("a"))
    for name in ("b", "c", "d"):
        meta = owner["metadata"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"]}
        owner = ask("POST", MAPS, objects.config_map(name, ownerReferences=[reference]))
    ask("DELETE", f"{MAPS}/a")
    assert ask("GET", MAPS)["items"] == []


def test_owners_that_own_each_other_do_not_hang_the_collector(ask: Ask) -> None:
    made = {name: ask("POST", MAPS, objects.config_map(name)) for name in ("a", "b")}
    for mine, other in (("a", "b"), ("b", "a")):
        meta = made[other]["metadata"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": other, "uid": meta["uid"]}
        ask("PATCH", f"{MAPS}/{mine}", {"metadata": {"ownerReferences": [reference]}})
    ask("DELETE", f"{MAPS}/a", {"propagationPolicy": "Foreground"})
    assert [item["metadata"]["name"] for item in ask("GET", MAPS)["items"]] == []


def test_giving_up_a_whole_map_keeps_what_is_applied_below_it(ask: Ask) -> None:
    made = ask("POST", MAPS, objects.config_map("one"))
    owners = made["metadata"]["managedFields"]
    owners[0] |= {"manager": "alpha", "operation": "Apply"}
    ask("PATCH", f"{MAPS}/one", {"metadata": {"managedFields": owners}})
    said = objects.config_map("one", {"b": "2"})
    assert ask("PATCH", f"{MAPS}/one", said, fieldManager="alpha")["data"] == {"b": "2"}


def test_many_updaters_are_remembered_as_ten(ask: Ask, service: Service) -> None:
    ask("POST", MAPS, objects.config_map("one"))
    for index in range(15):
        headers = {"authorization": "Bearer secret", "content-type": "application/merge-patch+json"}
        request = _patch(f"{MAPS}/one", f'{{"data":{{"k{index}":"v"}}}}', headers | {"user-agent": f"u{index:02}/1"})
        assert service.answer(request).status == 200
    owners = ask("GET", f"{MAPS}/one")["metadata"]["managedFields"]
    assert len(owners) == 10
    assert "ancient-changes" in {entry["manager"] for entry in owners}


def _patch(path: str, body: str, headers: dict[str, str]) -> Any:  # noqa: ANN401 - a request
    from fishplate.sim.apiserver.request import Request

    return Request("PATCH", path, {}, headers, body.encode())


def test_a_token_of_nobody_is_refused(service: Service) -> None:
    from fishplate.sim.apiserver.request import Request

    for token, status in (("secret", 200), ("wrong", 401), ("", 403)):
        headers = {"authorization": f"Bearer {token}"} if token else {}
        assert service.answer(Request("GET", MAPS, {}, headers, b"")).status == status
