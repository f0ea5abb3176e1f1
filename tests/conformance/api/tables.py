"""The tables that `kubectl get` shows. Descriptions are prose and are not compared."""

import re

from tests.conformance.api import objects
from tests.conformance.api.conversation import Conversation, Value

_TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


def _show(talk: Conversation, path: str, **query: str) -> Value:
    got = talk.ask("GET", path, query=query, headers=_TABLE)
    said = talk.transcript[-1]["body"]
    for column in said.get("columnDefinitions", ()):
        column.pop("description")
    for row in said.get("rows", ()):
        row["cells"] = ["<age>" if re.fullmatch(r"\d+s", str(cell)) else cell for cell in row["cells"]]
        if row["object"]:
            row["object"]["metadata"].pop("managedFields", None)
    return got


def claims_as_a_table(talk: Conversation) -> None:
    claims = f"{objects.DRA}/namespaces/{talk.namespace}/resourceclaims"
    made = talk.post(claims, objects.claim("one"))
    _show(talk, claims)
    made = talk.put(f"{claims}/one/status", made | {"status": {"allocation": objects.allocation("nic-0")}})
    _show(talk, claims)
    made["status"]["reservedFor"] = [objects.consumer("p")]
    talk.put(f"{claims}/one/status", made)
    _show(talk, f"{claims}/one")
    _show(talk, claims, includeObject="None")


def slices_as_a_table(talk: Conversation) -> None:
    talk.post(objects.SLICES, objects.resource_slice("table-slice"))
    _show(talk, f"{objects.SLICES}/table-slice")
    talk.delete(f"{objects.SLICES}/table-slice")


def classes_and_templates_as_tables(talk: Conversation) -> None:
    talk.post(objects.CLASSES, objects.device_class("table-class"))
    _show(talk, f"{objects.CLASSES}/table-class")
    talk.delete(f"{objects.CLASSES}/table-class")
    templates = f"{objects.DRA}/namespaces/{talk.namespace}/resourceclaimtemplates"
    talk.post(templates, objects.claim_template("one"))
    _show(talk, templates)


def pods_as_a_table(talk: Conversation) -> None:
    pods = f"/api/v1/namespaces/{talk.namespace}/pods"
    talk.post(pods, objects.pod("one", nodeName="n1"))
    _show(talk, pods)
    container = {"name": "main", "ready": True, "restartCount": 2, "image": "x", "imageID": "y", "started": True}
    status = {
        "phase": "Running",
        "podIP": "10.0.0.9",
        "podIPs": [{"ip": "10.0.0.9"}],
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [container | {"state": {"running": {"startedAt": objects.NOW}}}],
    }
    talk.patch(f"{pods}/one/status", {"status": status}, "merge")
    _show(talk, pods)
    waiting = container | {"ready": False, "state": {"waiting": {"reason": "ContainerCreating"}}}
    talk.patch(f"{pods}/one/status", {"status": status | {"containerStatuses": [waiting]}}, "merge")
    _show(talk, pods)
    talk.delete(f"{pods}/one")
    _show(talk, pods)
    talk.delete(f"{pods}/one", gracePeriodSeconds="0")


def nodes_as_a_table(talk: Conversation) -> None:
    label = {"node-role.kubernetes.io/worker": ""}
    info = {
        "kubeletVersion": "v1.36.4",
        "kernelVersion": "6.1",
        "osImage": "Debian",
        "containerRuntimeVersion": "c://2",
    }
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}]
    status = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": info, "addresses": addresses}
    talk.post("/api/v1/nodes", objects.node("table-node", labels=label) | {"status": status})
    talk.transcript.clear()
    _show(talk, "/api/v1/nodes/table-node")
    talk.patch("/api/v1/nodes/table-node", {"spec": {"unschedulable": True}}, "merge")
    talk.transcript.pop()
    _show(talk, "/api/v1/nodes/table-node")
    talk.delete("/api/v1/nodes/table-node")
    talk.transcript.pop()


def small_kinds_as_tables(talk: Conversation) -> None:
    _show(talk, f"/api/v1/namespaces/{talk.namespace}")
    maps = f"/api/v1/namespaces/{talk.namespace}/configmaps"
    talk.post(maps, objects.config_map("one", labels={"set": "mine"}))
    _show(talk, maps, labelSelector="set=mine")
    _show(talk, f"/api/v1/namespaces/{talk.namespace}/serviceaccounts")
    _show(talk, f"/api/v1/namespaces/{talk.namespace}/secrets")


def an_error_is_no_table(talk: Conversation) -> None:
    _show(talk, f"/api/v1/namespaces/{talk.namespace}/configmaps/nobody")


def metadata_alone(talk: Conversation) -> None:
    maps = f"/api/v1/namespaces/{talk.namespace}/configmaps"
    talk.post(maps, objects.config_map("one", labels={"set": "mine"}))
    only = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
    many = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
    talk.ask("GET", f"{maps}/one", headers=only)
    talk.ask("GET", maps, query={"labelSelector": "set=mine"}, headers=many)
