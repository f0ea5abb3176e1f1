"""DeviceClass: selectors, generations, what is refused."""

from tests.conformance.api import objects
from tests.conformance.api.conversation import Conversation


def a_class_counts_the_generations_of_its_spec(talk: Conversation) -> None:
    made = talk.post(objects.CLASSES, objects.device_class("gen-class", 'device.driver == "dra.net"'))
    made["metadata"]["labels"] = {"a": "b"}
    again = talk.put(f"{objects.CLASSES}/gen-class", made)
    again["spec"]["selectors"][0]["cel"]["expression"] = 'device.driver == "other.net"'
    talk.put(f"{objects.CLASSES}/gen-class", again)
    talk.delete(f"{objects.CLASSES}/gen-class")


def a_selector_must_compile(talk: Conversation) -> None:
    talk.post(objects.CLASSES, objects.device_class("bad-class", "device.driver =="))
    talk.post(objects.CLASSES, objects.device_class("bad-class", "device.nothing"))
    talk.post(objects.CLASSES, objects.device_class("bad-class", "device.driver"))


def a_selector_may_not_cost_too_much(talk: Conversation) -> None:
    costly = "true"
    for name in "abcdefgh":
        costly = f"device.attributes.all({name}, {costly})"
    talk.post(objects.CLASSES, objects.device_class("dear-class", costly))


def a_class_has_limits(talk: Conversation) -> None:
    talk.post(objects.CLASSES, objects.device_class("many-class", *["true"] * 33))
    body = objects.device_class("odd-class")
    body["spec"] = {"selectors": [{}], "config": [{}, {"opaque": {"driver": "Bad Driver", "parameters": [1]}}]}
    talk.post(objects.CLASSES, body)


def a_class_may_name_an_extended_resource(talk: Conversation) -> None:
    body = objects.device_class("ext-class")
    body["spec"] = {"extendedResourceName": "example.test/nic"}
    talk.post(objects.CLASSES, body)
    talk.delete(f"{objects.CLASSES}/ext-class")
    body["spec"] = {"extendedResourceName": "Bad Name"}
    talk.post(objects.CLASSES, body)
    body["spec"] = {"extendedResourceName": "cpu"}
    talk.post(objects.CLASSES, body)
