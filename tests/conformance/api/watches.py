"""Watches: events, selectors, resuming, bookmarks, versions too old or too new."""

from tests.conformance.api import objects
from tests.conformance.api.conversation import Conversation, encode_token


def _maps(talk: Conversation) -> str:
    return f"/api/v1/namespaces/{talk.namespace}/configmaps"


def _templates(talk: Conversation) -> str:
    return f"{objects.DRA}/namespaces/{talk.namespace}/resourceclaimtemplates"


def _version(talk: Conversation, path: str) -> str:
    got = talk.get(path)
    talk.transcript.pop()
    return str(got["metadata"]["resourceVersion"])


def a_watch_tells_added_modified_and_deleted(talk: Conversation) -> None:
    start = _version(talk, _maps(talk))
    talk.post(_maps(talk), objects.config_map("one", labels={"set": "w"}))
    talk.patch(f"{_maps(talk)}/one", {"data": {"a": "2"}}, "merge")
    talk.delete(f"{_maps(talk)}/one")
    talk.watch(_maps(talk), 3, resourceVersion=start, labelSelector="set=w")


def a_watch_resumes_after_the_version_given(talk: Conversation) -> None:
    talk.post(_templates(talk), objects.claim_template("one"))
    second = talk.post(_templates(talk), objects.claim_template("two"))
    talk.post(_templates(talk), objects.claim_template("three"))
    talk.watch(_templates(talk), 1, resourceVersion=second["metadata"]["resourceVersion"])


def a_watch_without_a_version_begins_with_what_is_there(talk: Conversation) -> None:
    talk.post(_templates(talk), objects.claim_template("one"))
    talk.post(_templates(talk), objects.claim_template("two"))
    talk.watch(_templates(talk), 2)


def a_watch_from_zero_begins_with_what_is_there(talk: Conversation) -> None:
    talk.post(_templates(talk), objects.claim_template("one"))
    talk.until(f"{_templates(talk)}/one", 200)
    talk.watch(_templates(talk), 1, resourceVersion="0")


def an_object_that_stops_matching_is_deleted_for_the_watcher(talk: Conversation) -> None:
    start = _version(talk, _maps(talk))
    talk.post(_maps(talk), objects.config_map("one", labels={"set": "w"}))
    talk.patch(f"{_maps(talk)}/one", {"metadata": {"labels": {"set": "other"}}}, "merge")
    talk.patch(f"{_maps(talk)}/one", {"metadata": {"labels": {"set": "w"}}}, "merge")
    talk.watch(_maps(talk), 3, resourceVersion=start, labelSelector="set=w")


def a_watch_selects_by_fields(talk: Conversation) -> None:
    start = _version(talk, objects.SLICES)
    talk.post(objects.SLICES, objects.resource_slice("watch-a", node="wn1"))
    talk.post(objects.SLICES, objects.resource_slice("watch-b", node="wn2"))
    talk.delete(f"{objects.SLICES}/watch-a")
    talk.delete(f"{objects.SLICES}/watch-b")
    talk.watch(objects.SLICES, 2, resourceVersion=start, fieldSelector="spec.nodeName=wn2")


def a_watch_of_one_object_by_its_name(talk: Conversation) -> None:
    start = _version(talk, _maps(talk))
    talk.post(_maps(talk), objects.config_map("one"))
    talk.post(_maps(talk), objects.config_map("two"))
    talk.watch(_maps(talk), 1, resourceVersion=start, fieldSelector="metadata.name=two")


def a_watch_ends_after_its_time(talk: Conversation) -> None:
    talk.watch(_templates(talk), 5, timeoutSeconds="1", resourceVersion=_version(talk, _templates(talk)))


def a_version_too_old_is_gone(talk: Conversation) -> None:
    talk.watch(talk.age(), 1, resourceVersion="1")


def a_page_too_old_is_gone(talk: Conversation) -> None:
    for index in range(2):
        talk.post(_maps(talk), objects.config_map(f"m-{index}", labels={"set": "mine"}))
    talk.age()
    old = encode_token(2, "m-0\0")
    got = talk.ask("GET", _maps(talk), query={"limit": "1", "labelSelector": "set=mine", "continue": old})
    again = got["metadata"]["continue"]
    rest = talk.ask("GET", _maps(talk), query={"labelSelector": "set=mine", "continue": again})
    talk.note("names", names=[item["metadata"]["name"] for item in rest["items"]])


def a_version_that_is_no_number_cannot_be_watched(talk: Conversation) -> None:
    talk.watch(_templates(talk), 1, resourceVersion="yesterday")


def initial_events_end_with_a_bookmark(talk: Conversation) -> None:
    talk.post(_templates(talk), objects.claim_template("one"))
    wanted = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan"}
    talk.watch(_templates(talk), 2, **wanted)


def initial_events_need_a_version_match(talk: Conversation) -> None:
    talk.watch(_templates(talk), 1, sendInitialEvents="true", allowWatchBookmarks="true")
    talk.get(_templates(talk), sendInitialEvents="true", resourceVersionMatch="NotOlderThan")


def a_watch_may_not_match_versions_exactly(talk: Conversation) -> None:
    talk.watch(_templates(talk), 1, resourceVersion="1", resourceVersionMatch="Exact")


def status_changes_are_seen_by_a_watch(talk: Conversation) -> None:
    claims = f"{objects.DRA}/namespaces/{talk.namespace}/resourceclaims"
    made = talk.post(claims, objects.claim("one"))
    talk.put(f"{claims}/one/status", made | {"status": {"allocation": objects.allocation("nic-0")}})
    talk.watch(claims, 1, resourceVersion=made["metadata"]["resourceVersion"])
