"""Create, read, replace: names, versions, generations, what the server fills in and what it ignores."""

from tests.conformance.api import objects
from tests.conformance.api.conversation import Conversation


def _maps(talk: Conversation) -> str:
    return f"/api/v1/namespaces/{talk.namespace}/configmaps"


def created_object_gets_uid_version_and_owner_of_its_fields(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one", labels={"app": "x"}))
    talk.get(f"{_maps(talk)}/one")


def creating_a_name_twice_is_a_conflict(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one"))
    talk.post(_maps(talk), objects.config_map("one"))


def generate_name_adds_a_random_suffix(talk: Conversation) -> None:
    body = objects.config_map("", generateName="made-")
    del body["metadata"]["name"]
    first = talk.post(_maps(talk), body)
    second = talk.post(_maps(talk), body)
    names = {first["metadata"]["name"], second["metadata"]["name"]}
    talk.note("names", differ=len(names) == 2, lengths=sorted(len(n) for n in names))


def a_name_or_a_generate_name_is_required(talk: Conversation) -> None:
    body = objects.config_map("")
    del body["metadata"]["name"]
    talk.post(_maps(talk), body)


def a_name_must_be_a_dns_subdomain(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("Not_A_Name"))
    talk.post(_maps(talk), objects.config_map("a" * 254))


def labels_and_annotations_are_checked(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one", labels={"bad key!": "v", "good": "-bad-"}))
    talk.post(_maps(talk), objects.config_map("one", annotations={"Bad Key": "v"}))


def the_namespace_of_body_and_path_must_agree(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one", namespace="elsewhere"))


def a_namespace_that_does_not_exist_is_not_found(talk: Conversation) -> None:
    talk.post("/api/v1/namespaces/nowhere-at-all/configmaps", objects.config_map("one"))


def what_only_the_server_sets_is_ignored_on_create(talk: Conversation) -> None:
    fancy: objects.Object = {
        "uid": "11111111-2222-3333-4444-555555555555",
        "creationTimestamp": objects.NOW,
        "generation": 7,
    }
    got = talk.post(_maps(talk), objects.config_map("one", **fancy, selfLink="/x"))
    talk.note("uid", kept=got["metadata"]["uid"] == fancy["uid"])


def a_version_must_not_be_set_on_create(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one", resourceVersion="12"))


def kind_and_version_of_the_body_are_filled_in_or_must_agree(talk: Conversation) -> None:
    bare = objects.config_map("one")
    del bare["apiVersion"], bare["kind"]
    talk.post(_maps(talk), bare)
    talk.post(_maps(talk), objects.config_map("two") | {"kind": "Secret"})
    talk.post(_maps(talk), objects.config_map("two") | {"apiVersion": "v2"})


def replacing_needs_the_version_that_was_read(talk: Conversation) -> None:
    first = talk.post(_maps(talk), objects.config_map("one"))
    talk.put(f"{_maps(talk)}/one", first | {"data": {"a": "2"}})
    talk.put(f"{_maps(talk)}/one", first | {"data": {"a": "3"}})


def replacing_without_a_version_wins(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one"))
    talk.put(f"{_maps(talk)}/one", objects.config_map("one", {"b": "2"}))


def replacing_with_nothing_changed_keeps_the_version(talk: Conversation) -> None:
    first = talk.post(_maps(talk), objects.config_map("one"))
    second = talk.put(f"{_maps(talk)}/one", objects.config_map("one"))
    talk.note("version", same=first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"])


def replacing_with_another_uid_is_a_conflict(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one"))
    other = objects.config_map("one", uid="11111111-2222-3333-4444-555555555555")
    talk.put(f"{_maps(talk)}/one", other)


def replacing_what_is_not_there(talk: Conversation) -> None:
    talk.put(f"{_maps(talk)}/one", objects.config_map("one"))


def replacing_under_another_name_is_refused(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one"))
    talk.put(f"{_maps(talk)}/one", objects.config_map("two"))


def reading_what_is_not_there(talk: Conversation) -> None:
    talk.get(f"{_maps(talk)}/one")
    talk.get(f"{objects.SLICES}/not-there-at-all")


def dry_run_answers_but_keeps_nothing(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one"), dryRun="All")
    talk.get(f"{_maps(talk)}/one")
    talk.post(_maps(talk), objects.config_map("one"), dryRun="Some")


def an_immutable_config_map_cannot_change(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one") | {"immutable": True})
    talk.put(f"{_maps(talk)}/one", objects.config_map("one", {"a": "2"}) | {"immutable": True})
    talk.put(f"{_maps(talk)}/one", objects.config_map("one"))


def secrets_encode_string_data(talk: Conversation) -> None:
    secrets = f"/api/v1/namespaces/{talk.namespace}/secrets"
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}, "stringData": {"a": "words"}}
    talk.post(secrets, body)
    talk.post(secrets, {**body, "metadata": {"name": "two"}, "data": {"a": "%%%"}})


def owner_references_are_checked(talk: Conversation) -> None:
    wrong = [{"apiVersion": "v1", "kind": "Node", "name": "", "uid": ""}]
    talk.post(_maps(talk), objects.config_map("one", ownerReferences=wrong))
    two = [{"apiVersion": "v1", "kind": "Node", "name": n, "uid": f"u-{n}", "controller": True} for n in ("a", "b")]
    talk.post(_maps(talk), objects.config_map("one", ownerReferences=two))


def many_updaters_are_put_together(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one"))
    for index in range(12):
        talk.patch(f"{_maps(talk)}/one", {"data": {f"k{index:02}": "v"}}, "merge", fieldManager=f"u{index:02}")
        talk.transcript.pop()
    talk.get(f"{_maps(talk)}/one")


def finalizers_are_checked(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one", finalizers=["not qualified!", "plain"]))


def metadata_survives_a_replacement_that_does_not_mention_it(talk: Conversation) -> None:
    first = talk.post(_maps(talk), objects.config_map("one", labels={"a": "b"}))
    second = talk.put(f"{_maps(talk)}/one", objects.config_map("one"))
    talk.note("uid", same=first["metadata"]["uid"] == second["metadata"]["uid"])


def events_are_stored_with_their_references(talk: Conversation) -> None:
    about = {"kind": "Pod", "namespace": talk.namespace, "name": "p", "uid": "u-1", "apiVersion": "v1"}
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "p.1"},
        "involvedObject": about,
        "reason": "Made",
        "message": "it is made",
        "type": "Normal",
        "count": 1,
        "firstTimestamp": objects.NOW,
        "lastTimestamp": objects.NOW,
        "source": {"component": "suite"},
    }
    events = f"/api/v1/namespaces/{talk.namespace}/events"
    talk.post(events, body)
    talk.get(events, fieldSelector="involvedObject.name=p,involvedObject.kind=Pod,reason=Made,type=Normal")
    talk.get(events, fieldSelector="involvedObject.uid=other")
    talk.post(events, body | {"metadata": {"name": "p.2"}, "involvedObject": about | {"namespace": "elsewhere"}})
