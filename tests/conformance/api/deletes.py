"""Deletion: preconditions, finalizers, owners, collections, namespaces."""

from tests.conformance.api import objects
from tests.conformance.api.conversation import Conversation


def _maps(talk: Conversation) -> str:
    return f"/api/v1/namespaces/{talk.namespace}/configmaps"


def _options(**said: object) -> objects.Object:
    return {"apiVersion": "v1", "kind": "DeleteOptions", **said}


def _owned_by(owner: objects.Object, **more: object) -> list[objects.Object]:
    meta = owner["metadata"]
    return [{"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"], **more}]


def deleting_answers_with_a_status(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one"))
    talk.delete(f"{_maps(talk)}/one")
    talk.delete(f"{_maps(talk)}/one")


def deleting_a_claim_answers_with_the_claim(talk: Conversation) -> None:
    claims = f"{objects.DRA}/namespaces/{talk.namespace}/resourceclaims"
    talk.post(claims, objects.claim("one"))
    talk.delete(f"{claims}/one")
    talk.post(objects.SLICES, objects.resource_slice("delete-slice"))
    talk.delete(f"{objects.SLICES}/delete-slice")
    talk.post(objects.CLASSES, objects.device_class("delete-class"))
    talk.delete(f"{objects.CLASSES}/delete-class")
    templates = f"{objects.DRA}/namespaces/{talk.namespace}/resourceclaimtemplates"
    talk.post(templates, objects.claim_template("one"))
    talk.delete(f"{templates}/one")


def deleting_another_uid_is_a_conflict(talk: Conversation) -> None:
    made = talk.post(_maps(talk), objects.config_map("one"))
    other = "11111111-2222-3333-4444-555555555555"
    talk.delete(f"{_maps(talk)}/one", _options(preconditions={"uid": other}))
    talk.delete(f"{_maps(talk)}/one", _options(preconditions={"uid": made["metadata"]["uid"]}))


def deleting_an_old_version_is_a_conflict(talk: Conversation) -> None:
    made = talk.post(_maps(talk), objects.config_map("one"))
    talk.patch(f"{_maps(talk)}/one", {"data": {"a": "2"}}, "merge")
    version = {"resourceVersion": made["metadata"]["resourceVersion"]}
    talk.delete(f"{_maps(talk)}/one", _options(preconditions=version))


def deleting_dry_keeps_it(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one"))
    talk.delete(f"{_maps(talk)}/one", dryRun="All")
    talk.get(f"{_maps(talk)}/one")


def a_finalizer_holds_the_object_until_it_is_gone(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one", finalizers=["example.test/hold"]))
    talk.delete(f"{_maps(talk)}/one")
    talk.get(f"{_maps(talk)}/one")
    talk.delete(f"{_maps(talk)}/one")
    talk.patch(f"{_maps(talk)}/one", {"metadata": {"finalizers": None}}, "merge")
    talk.get(f"{_maps(talk)}/one")


def no_finalizer_is_added_to_what_is_being_deleted(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one", finalizers=["example.test/hold"]))
    talk.delete(f"{_maps(talk)}/one")
    talk.patch(f"{_maps(talk)}/one", {"metadata": {"finalizers": ["example.test/hold", "example.test/b"]}}, "merge")
    talk.patch(f"{_maps(talk)}/one", {"metadata": {"finalizers": None}}, "merge")


def a_deletion_that_waits_bumps_version_and_is_seen(talk: Conversation) -> None:
    made = talk.post(_maps(talk), objects.config_map("one", finalizers=["example.test/hold"]))
    talk.delete(f"{_maps(talk)}/one")
    talk.patch(f"{_maps(talk)}/one", {"metadata": {"finalizers": None}}, "merge")
    version = made["metadata"]["resourceVersion"]
    talk.watch(_maps(talk), 2, resourceVersion=version, fieldSelector="metadata.name=one")


def a_collection_is_deleted_by_selector(talk: Conversation) -> None:
    for name in ("one", "two"):
        talk.post(_maps(talk), objects.config_map(name, labels={"set": "mine"}))
    talk.post(_maps(talk), objects.config_map("three", labels={"set": "other"}))
    talk.transcript.clear()
    talk.delete(_maps(talk), labelSelector="set=mine")
    talk.get(_maps(talk), labelSelector="set=mine")
    talk.get(f"{_maps(talk)}/three")


def what_an_owner_leaves_is_collected(talk: Conversation) -> None:
    owner = talk.post(_maps(talk), objects.config_map("owner"))
    talk.post(_maps(talk), objects.config_map("owned", ownerReferences=_owned_by(owner)))
    talk.delete(f"{_maps(talk)}/owner", _options(propagationPolicy="Background"))
    talk.until(f"{_maps(talk)}/owned", 404)
    talk.get(f"{_maps(talk)}/owned")


def what_has_another_owner_stays(talk: Conversation) -> None:
    first = talk.post(_maps(talk), objects.config_map("first"))
    second = talk.post(_maps(talk), objects.config_map("second"))
    talk.post(_maps(talk), objects.config_map("owned", ownerReferences=_owned_by(first) + _owned_by(second)))
    only = objects.config_map("only", ownerReferences=_owned_by(first))
    talk.post(_maps(talk), only)
    talk.delete(f"{_maps(talk)}/first")
    talk.until(f"{_maps(talk)}/only", 404)
    talk.transcript.clear()
    got = talk.get(f"{_maps(talk)}/owned")
    talk.transcript.clear()
    talk.note("owned", there="uid" in got["metadata"])


def what_an_owner_leaves_may_be_orphaned(talk: Conversation) -> None:
    owner = talk.post(_maps(talk), objects.config_map("owner"))
    talk.post(_maps(talk), objects.config_map("owned", ownerReferences=_owned_by(owner)))
    talk.delete(f"{_maps(talk)}/owner", _options(propagationPolicy="Orphan"))
    talk.until(f"{_maps(talk)}/owner", 404)
    got = talk.get(f"{_maps(talk)}/owned")
    talk.transcript.pop()
    talk.note("owned", owners=got["metadata"].get("ownerReferences", "none"))


def an_owner_may_wait_for_what_it_owns(talk: Conversation) -> None:
    owner = talk.post(_maps(talk), objects.config_map("owner"))
    held = _owned_by(owner, blockOwnerDeletion=True)
    talk.post(_maps(talk), objects.config_map("owned", ownerReferences=held, finalizers=["example.test/hold"]))
    talk.delete(f"{_maps(talk)}/owner", _options(propagationPolicy="Foreground"))
    deleting = f"{_maps(talk)}?fieldSelector=metadata.name%3Downed"
    for _ in range(400):
        got = talk.get(deleting)
        talk.transcript.pop()
        if got["items"][0]["metadata"].get("deletionTimestamp"):
            break
    talk.get(f"{_maps(talk)}/owner")
    talk.patch(f"{_maps(talk)}/owned", {"metadata": {"finalizers": None}}, "merge")
    talk.transcript.pop()
    talk.until(f"{_maps(talk)}/owner", 404)


def what_never_had_its_owner_is_collected(talk: Conversation) -> None:
    nobody = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "11111111-aaaa-bbbb-cccc-000000000000"}
    ]
    talk.post(_maps(talk), objects.config_map("owned", ownerReferences=nobody))
    talk.until(f"{_maps(talk)}/owned", 404)


def slices_go_with_their_node(talk: Conversation) -> None:
    node = talk.post("/api/v1/nodes", objects.node("gc-node"))
    body = objects.resource_slice("gc-slice", node="gc-node")
    meta = node["metadata"]
    reference = {"apiVersion": "v1", "kind": "Node", "name": "gc-node", "uid": meta["uid"], "controller": True}
    body["metadata"]["ownerReferences"] = [reference]
    talk.post(objects.SLICES, body)
    talk.delete("/api/v1/nodes/gc-node")
    talk.until(f"{objects.SLICES}/gc-slice", 404)


def an_unknown_propagation_policy_is_refused(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one"))
    talk.delete(f"{_maps(talk)}/one", _options(propagationPolicy="Sideways"))


def a_namespace_takes_its_contents_with_it(talk: Conversation) -> None:
    name = f"{talk.namespace}-b"[:63]
    talk.post("/api/v1/namespaces", objects.namespace(name))
    talk.post(f"/api/v1/namespaces/{name}/configmaps", objects.config_map("one", finalizers=["example.test/hold"]))
    talk.transcript.clear()
    talk.delete(f"/api/v1/namespaces/{name}")
    talk.post(f"/api/v1/namespaces/{name}/configmaps", objects.config_map("two"))
    talk.patch(f"/api/v1/namespaces/{name}/configmaps/one", {"metadata": {"finalizers": None}}, "merge")
    talk.transcript.pop()
    talk.until(f"/api/v1/namespaces/{name}", 404)
    talk.get(f"/api/v1/namespaces/{name}/configmaps/one")


def the_default_namespace_stays(talk: Conversation) -> None:
    talk.delete("/api/v1/namespaces/default")
