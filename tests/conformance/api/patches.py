"""JSON patch, merge patch, strategic merge patch."""

from tests.conformance.api import objects
from tests.conformance.api.conversation import Conversation


def _maps(talk: Conversation) -> str:
    return f"/api/v1/namespaces/{talk.namespace}/configmaps"


def _made(talk: Conversation) -> str:
    talk.post(_maps(talk), objects.config_map("one", {"a": "1", "b": "2"}))
    talk.transcript.clear()
    return f"{_maps(talk)}/one"


def a_merge_patch_changes_adds_and_removes(talk: Conversation) -> None:
    talk.patch(_made(talk), {"data": {"a": None, "b": "3", "c": "4"}}, "merge")


def a_json_patch_does_every_operation(talk: Conversation) -> None:
    operations = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/data/c", "value": "3"},
        {"op": "replace", "path": "/data/b", "value": "9"},
        {"op": "copy", "from": "/data/c", "path": "/data/d"},
        {"op": "move", "from": "/data/a", "path": "/data/e"},
        {"op": "remove", "path": "/data/c"},
        {"op": "add", "path": "/metadata/annotations", "value": {"x": "z"}},
        {"op": "add", "path": "/metadata/annotations/example.test~1key", "value": "v"},
    ]
    talk.patch(_made(talk), operations, "json")


def a_json_patch_that_fails_its_test_is_refused(talk: Conversation) -> None:
    talk.patch(_made(talk), [{"op": "test", "path": "/data/a", "value": "other"}], "json")


def a_json_patch_of_what_is_not_there_is_refused(talk: Conversation) -> None:
    path = _made(talk)
    talk.patch(path, [{"op": "remove", "path": "/data/zzz"}], "json")
    talk.patch(path, [{"op": "replace", "path": "/nothing/here", "value": 1}], "json")


def a_patch_with_an_old_version_is_a_conflict(talk: Conversation) -> None:
    path = _made(talk)
    old = talk.get(path)["metadata"]["resourceVersion"]
    talk.patch(path, {"data": {"a": "5"}}, "merge")
    talk.patch(path, {"metadata": {"resourceVersion": old}, "data": {"a": "6"}}, "merge")


def a_patch_that_changes_nothing_keeps_the_version(talk: Conversation) -> None:
    path = _made(talk)
    first = talk.get(path)
    second = talk.patch(path, {"data": {"a": "1"}}, "merge")
    talk.note("same", version=first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"])


def a_patch_of_what_is_not_there(talk: Conversation) -> None:
    talk.patch(f"{_maps(talk)}/nobody", {"data": {}}, "merge")


def a_patch_that_is_no_json_is_refused(talk: Conversation) -> None:
    path = _made(talk)
    talk.patch(path, b"{nothing", "merge")
    talk.patch(path, b"{}", "json")
    talk.patch(path, b"[]", "merge")


def an_unknown_patch_type_is_refused(talk: Conversation) -> None:
    path = _made(talk)
    talk.ask("PATCH", path, {"data": {}}, headers={"Content-Type": "application/json"})


def a_patch_cannot_rename(talk: Conversation) -> None:
    talk.patch(_made(talk), {"metadata": {"name": "two"}}, "merge")


def a_patch_with_unknown_fields_is_refused_when_strict(talk: Conversation) -> None:
    path = _made(talk)
    talk.patch(path, {"colour": "green"}, "merge", fieldValidation="Strict")
    talk.patch(path, [{"op": "add", "path": "/colour", "value": "green"}], "json", fieldValidation="Strict")
    talk.patch(path, {"colour": "green"}, "strategic", fieldValidation="Strict")


def a_strategic_patch_merges_lists_by_key(talk: Conversation) -> None:
    talk.post("/api/v1/nodes", objects.node("strategic-node"))
    path = "/api/v1/nodes/strategic-node"
    condition = {"type": "Ready", "status": "True", "reason": "Fine"}
    talk.patch(f"{path}/status", {"status": {"conditions": [condition]}}, "strategic")
    other = {"type": "DiskPressure", "status": "False"}
    talk.patch(f"{path}/status", {"status": {"conditions": [other]}}, "strategic")
    talk.patch(f"{path}/status", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "strategic")
    talk.patch(f"{path}/status", {"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}}, "strategic")
    talk.patch(f"{path}/status", {"status": {"conditions": [other, {"$patch": "replace"}]}}, "strategic")
    talk.delete(path)


def a_strategic_patch_adds_and_removes_from_sets(talk: Conversation) -> None:
    path = _made(talk)
    talk.patch(path, {"metadata": {"finalizers": ["example.test/a"]}}, "strategic")
    talk.patch(path, {"metadata": {"finalizers": ["example.test/b"]}}, "strategic")
    talk.patch(path, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.test/a"]}}, "strategic")
    talk.patch(path, {"metadata": {"finalizers": None}}, "strategic")


def a_strategic_patch_replaces_atomic_lists_and_maps(talk: Conversation) -> None:
    talk.post("/api/v1/nodes", objects.node("strategic-taints", labels={"old": "one"}))
    path = "/api/v1/nodes/strategic-taints"
    for key in ("a", "b"):
        talk.patch(path, {"spec": {"taints": [{"key": f"example.test/{key}", "effect": "NoSchedule"}]}}, "strategic")
    talk.patch(path, {"metadata": {"labels": {"$patch": "replace", "only": "this"}}}, "strategic")
    talk.delete(path)


def a_strategic_patch_orders_what_it_merges(talk: Conversation) -> None:
    pods = f"/api/v1/namespaces/{talk.namespace}/pods"
    containers = [{"name": n, "image": "example.test/x:1"} for n in ("first", "second")]
    talk.post(pods, objects.pod("one", containers=containers))
    body = {
        "spec": {
            "$setElementOrder/containers": [{"name": "first"}, {"name": "second"}],
            "containers": [{"name": "second", "image": "example.test/x:2"}],
        }
    }
    talk.patch(f"{pods}/one", body, "strategic")
