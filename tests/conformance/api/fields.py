"""Fields that nobody knows, fields given twice, values of the wrong type, empty values."""

from tests.conformance.api import objects
from tests.conformance.api.conversation import Conversation


def _claims(talk: Conversation) -> str:
    return f"{objects.DRA}/namespaces/{talk.namespace}/resourceclaims"


def _maps(talk: Conversation) -> str:
    return f"/api/v1/namespaces/{talk.namespace}/configmaps"


def unknown_fields_are_refused_when_strict(talk: Conversation) -> None:
    wrong = objects.resource_slice("strict-slice", colour="green")
    wrong["spec"]["devices"][0]["size"] = 4
    wrong["metadata"]["colour"] = "blue"
    talk.post(objects.SLICES, wrong, fieldValidation="Strict")


def unknown_fields_are_dropped_with_a_warning_by_default(talk: Conversation) -> None:
    body = objects.claim("one")
    body["spec"]["colour"] = "green"
    talk.post(_claims(talk), body)


def unknown_fields_are_dropped_in_silence_when_asked(talk: Conversation) -> None:
    body = objects.claim("one")
    body["spec"]["colour"] = "green"
    talk.post(_claims(talk), body, fieldValidation="Ignore")


def unknown_field_validation_is_refused(talk: Conversation) -> None:
    talk.post(_claims(talk), objects.claim("one"), fieldValidation="Sometimes")


def fields_given_twice_are_refused_when_strict(talk: Conversation) -> None:
    text = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","name":"two"},"data":{"a":"1"}}'
    talk.post(_maps(talk), text, fieldValidation="Strict")
    talk.post(_maps(talk), text)


def fields_spelled_in_another_case_are_unknown(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one") | {"Data": {"b": "2"}}, fieldValidation="Strict")


def yaml_bodies_are_read(talk: Conversation) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata:\n  a: words\n"
    talk.post(_maps(talk), text, headers={"Content-Type": "application/yaml"})


def a_value_of_the_wrong_type_is_refused(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one") | {"data": ["a"]})
    talk.post(_maps(talk), objects.config_map("one") | {"data": {"a": 1}})
    talk.post(_claims(talk), objects.claim("one", objects.request(count="two")))
    talk.post(_claims(talk), objects.claim("one", objects.request(selectors={"cel": {}})))


def a_body_that_is_no_json_is_refused(talk: Conversation) -> None:
    talk.post(_maps(talk), b"{nothing")
    talk.post(_maps(talk), b"")
    talk.post(_maps(talk), b"[1, 2]")


def empty_values_are_left_out(talk: Conversation) -> None:
    body = objects.claim("one", constraints=[], config=None)
    body["metadata"] |= {"labels": {}, "annotations": None, "finalizers": []}
    talk.post(_claims(talk), body)


def quantities_come_back_in_canonical_form(talk: Conversation) -> None:
    capacity = {"a": {"value": "1000m"}, "b": {"value": "1024Mi"}, "c": {"value": 3}, "d": {"value": "0.5"}}
    one = objects.device("nic-0", capacity=capacity)
    talk.post(objects.SLICES, objects.resource_slice("canonical-slice", devices=[one]))
    talk.delete(f"{objects.SLICES}/canonical-slice")


def quantities_that_are_none_are_refused(talk: Conversation) -> None:
    one = objects.device("nic-0", capacity={"a": {"value": "much"}})
    talk.post(objects.SLICES, objects.resource_slice("much-slice", devices=[one]))
