"""Label and field selectors."""

from tests.conformance.api import objects
from tests.conformance.api.conversation import Conversation

_LABELS = {
    "one": {"tier": "web", "env": "prod"},
    "two": {"tier": "web", "env": "test"},
    "three": {"tier": "db"},
    "four": {"size": "10"},
}


def _maps(talk: Conversation) -> str:
    return f"/api/v1/namespaces/{talk.namespace}/configmaps"


def _names(talk: Conversation, path: str, **query: str) -> None:
    got = talk.ask("GET", path, query=query)
    talk.transcript.pop()
    names = [i["metadata"]["name"] for i in got["items"]] if "items" in got else got
    talk.note("select", query=query, names=[n for n in names if n != "kube-root-ca.crt"] if "items" in got else names)


def labels_select_by_every_operator(talk: Conversation) -> None:
    for name, labels in _LABELS.items():
        talk.post(_maps(talk), objects.config_map(name, labels=labels))
    talk.transcript.clear()
    for text in (
        "tier=web",
        "tier==web",
        "tier!=web",
        "tier in (web, db)",
        "tier notin (web)",
        "tier",
        "!tier",
        "tier=web,env!=test",
        "tier in (web),env notin (prod),!size",
        "size>5",
        "size<5",
        "tier=",
        "env in (prod,)",
        "",
    ):
        _names(talk, _maps(talk), labelSelector=text)


def selectors_that_make_no_sense_are_refused(talk: Conversation) -> None:
    for text in ("tier in", "tier in (", "=web", "tier=web=x", "!!tier", "bad key=x", "tier=-bad-", "size>many"):
        talk.get(_maps(talk), labelSelector=text)


def fields_select_by_name(talk: Conversation) -> None:
    for name in _LABELS:
        talk.post(_maps(talk), objects.config_map(name))
    talk.transcript.clear()
    for text in (
        "metadata.name=two",
        "metadata.name==two",
        "metadata.name!=two",
        "metadata.name=nobody",
        f"metadata.namespace={talk.namespace},metadata.name=one",
        "metadata.namespace=elsewhere",
    ):
        _names(talk, _maps(talk), fieldSelector=text)


def fields_that_cannot_select_are_refused(talk: Conversation) -> None:
    talk.get(_maps(talk), fieldSelector="data.a=1")
    talk.get(objects.SLICES, fieldSelector="spec.pool.name=x")
    talk.get("/api/v1/nodes", fieldSelector="spec.podCIDR=x")
    talk.get(_maps(talk), fieldSelector="metadata.name")
    talk.get(_maps(talk), fieldSelector="metadata.name>x")


def slices_select_by_node_and_driver(talk: Conversation) -> None:
    for name, driver, node in (("sel-a", "a.test", "n1"), ("sel-b", "b.test", "n1"), ("sel-c", "a.test", "n2")):
        talk.post(objects.SLICES, objects.resource_slice(name, driver=driver, node=node))
    talk.post(objects.SLICES, _network_slice("sel-d"))
    talk.transcript.clear()
    for text in (
        "spec.nodeName=n1",
        "spec.driver=a.test",
        "spec.nodeName=n1,spec.driver=a.test",
        "spec.nodeName=,spec.driver=a.test",
        "spec.driver!=a.test,spec.nodeName=n1",
    ):
        _names(talk, objects.SLICES, fieldSelector=text)
    for name in ("sel-a", "sel-b", "sel-c", "sel-d"):
        talk.delete(f"{objects.SLICES}/{name}")
    talk.transcript[-4:] = []


def _network_slice(name: str) -> objects.Object:
    body = objects.resource_slice(name, driver="a.test", allNodes=True)
    del body["spec"]["nodeName"]
    return body


def pods_select_by_node_and_phase(talk: Conversation) -> None:
    pods = f"/api/v1/namespaces/{talk.namespace}/pods"
    talk.post(pods, objects.pod("bound", nodeName="n1"))
    talk.post(pods, objects.pod("free"))
    talk.transcript.clear()
    for text in (
        "spec.nodeName=n1",
        "spec.nodeName=",
        "spec.nodeName!=",
        "status.phase=Pending",
        "status.phase!=Succeeded,spec.nodeName=n1",
        "spec.schedulerName=nobody",
        "spec.restartPolicy=Always",
        "spec.hostNetwork=false",
        "status.podIP=",
        "spec.serviceAccountName=default",
        "status.nominatedNodeName=",
    ):
        _names(talk, pods, fieldSelector=text)
    talk.delete(f"{pods}/bound", gracePeriodSeconds="0")
    talk.transcript.pop()


def nodes_select_by_unschedulable(talk: Conversation) -> None:
    talk.post("/api/v1/nodes", objects.node("sel-closed", labels={"set": "sel"}) | {"spec": {"unschedulable": True}})
    talk.post("/api/v1/nodes", objects.node("sel-open", labels={"set": "sel"}))
    talk.transcript.clear()
    for text in ("spec.unschedulable=true", "spec.unschedulable=false", "metadata.name=sel-open"):
        _names(talk, "/api/v1/nodes", fieldSelector=text, labelSelector="set=sel")
    talk.delete("/api/v1/nodes/sel-closed")
    talk.delete("/api/v1/nodes/sel-open")
    talk.transcript[-2:] = []


def namespaces_select_by_phase(talk: Conversation) -> None:
    name = f"metadata.name={talk.namespace}"
    _names(talk, "/api/v1/namespaces", fieldSelector=f"{name},status.phase=Active")
    _names(talk, "/api/v1/namespaces", fieldSelector=f"{name},status.phase=Terminating")
