"""Lists: paging, consistency, versions."""

import base64
import json

from tests.conformance.api import objects
from tests.conformance.api.conversation import Conversation, encode_token

_MINE = "set=mine"


def _maps(talk: Conversation) -> str:
    return f"/api/v1/namespaces/{talk.namespace}/configmaps"


def _templates(talk: Conversation) -> str:
    return f"{objects.DRA}/namespaces/{talk.namespace}/resourceclaimtemplates"


def _fill(talk: Conversation, count: int) -> list[str]:
    versions = []
    for index in range(count):
        got = talk.post(_templates(talk), objects.claim_template(f"t-{index}"))
        versions.append(got["metadata"]["resourceVersion"])
    talk.transcript.clear()
    return versions


def an_empty_list(talk: Conversation) -> None:
    talk.get(_templates(talk))


def a_list_is_sorted_by_name(talk: Conversation) -> None:
    for name in ("zebra", "ant", "mole"):
        talk.post(_templates(talk), objects.claim_template(name))
    talk.transcript.clear()
    got = talk.get(_templates(talk))
    talk.note("names", names=[item["metadata"]["name"] for item in got["items"]])


def items_of_a_list_carry_no_kind(talk: Conversation) -> None:
    _fill(talk, 1)
    got = talk.get(_templates(talk))
    talk.note("kind", list=got["kind"], item="kind" in got["items"][0])


def pages_tell_how_many_remain(talk: Conversation) -> None:
    _fill(talk, 5)
    page = talk.get(_templates(talk), limit="2")
    page = talk.get(_templates(talk), limit="2", **{"continue": page["metadata"]["continue"]})
    page = talk.get(_templates(talk), limit="2", **{"continue": page["metadata"]["continue"]})


def pages_do_not_see_what_came_later(talk: Conversation) -> None:
    _fill(talk, 4)
    page = talk.get(_templates(talk), limit="2")
    talk.delete(f"{_templates(talk)}/t-3")
    talk.post(_templates(talk), objects.claim_template("t-9"))
    rest = talk.get(_templates(talk), **{"continue": page["metadata"]["continue"]})
    talk.note("names", names=[item["metadata"]["name"] for item in rest["items"]])


def pages_with_a_selector_do_not_count_the_rest(talk: Conversation) -> None:
    for index in range(3):
        talk.post(_maps(talk), objects.config_map(f"m-{index}", labels={"set": "mine"}))
    talk.transcript.clear()
    page = talk.get(_maps(talk), limit="1", labelSelector=_MINE)
    talk.get(_maps(talk), limit="5", labelSelector=_MINE, **{"continue": page["metadata"]["continue"]})


def a_continue_token_that_is_none_is_refused(talk: Conversation) -> None:
    talk.ask("GET", _templates(talk), query={"limit": "1", "continue": "nonsense"})


def a_continue_token_names_version_and_place(talk: Conversation) -> None:
    _fill(talk, 2)
    page = talk.get(_templates(talk), limit="1")
    token = page["metadata"]["continue"]
    said = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    talk.note("token", keys=sorted(said), start=said["start"], version=said["v"])


def a_continue_token_may_not_come_with_a_version(talk: Conversation) -> None:
    token = encode_token(1, "x")
    talk.ask("GET", _templates(talk), query={"limit": "1", "resourceVersion": "5", "continue": token})


def a_list_at_an_exact_version_is_of_that_time(talk: Conversation) -> None:
    versions = _fill(talk, 3)
    got = talk.get(_templates(talk), resourceVersion=versions[1], resourceVersionMatch="Exact")
    talk.note("names", names=[item["metadata"]["name"] for item in got["items"]])


def a_list_of_the_future_is_refused(talk: Conversation) -> None:
    talk.get(_templates(talk), resourceVersion="99999999999", resourceVersionMatch="Exact", limit="1")


def version_match_needs_a_version(talk: Conversation) -> None:
    talk.get(_templates(talk), resourceVersionMatch="Exact")
    talk.get(_templates(talk), resourceVersion="0", resourceVersionMatch="Exact")
    talk.get(_templates(talk), resourceVersion="1", resourceVersionMatch="Perhaps")


def a_version_that_is_no_number_is_refused(talk: Conversation) -> None:
    talk.get(_templates(talk), resourceVersion="yesterday")


def limits_that_are_no_number_are_refused(talk: Conversation) -> None:
    talk.get(_templates(talk), limit="many")


def a_list_over_all_namespaces(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one", labels={"set": "over-all"}))
    talk.get("/api/v1/configmaps", labelSelector="set=over-all")
