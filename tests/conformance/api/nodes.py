"""Nodes, leases, service accounts, jobs, daemon sets."""

from tests.conformance.api import objects
from tests.conformance.api.conversation import Conversation


def a_node_keeps_the_status_it_is_created_with(talk: Conversation) -> None:
    status = {"capacity": {"cpu": "8", "memory": "16Gi"}, "conditions": [{"type": "Ready", "status": "True"}]}
    talk.post("/api/v1/nodes", objects.node("made-node") | {"status": status})
    talk.delete("/api/v1/nodes/made-node")


def a_node_status_is_written_apart(talk: Conversation) -> None:
    made = talk.post("/api/v1/nodes", objects.node("status-node"))
    talk.put("/api/v1/nodes/status-node", made | {"status": {"capacity": {"cpu": "4"}}})
    talk.patch("/api/v1/nodes/status-node/status", {"status": {"capacity": {"cpu": "4"}}}, "merge")
    talk.delete("/api/v1/nodes/status-node")


def a_lease_is_renewed(talk: Conversation) -> None:
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{talk.namespace}/leases"
    spec = {"holderIdentity": "n1", "leaseDurationSeconds": 40, "renewTime": "2026-01-02T03:04:05.000006Z"}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "n1"}, "spec": spec}
    made = talk.post(leases, body)
    made["spec"]["renewTime"] = "2026-01-02T03:04:15.000006Z"
    talk.put(f"{leases}/n1", made)


def a_service_account_is_stored(talk: Conversation) -> None:
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "driver"}}
    talk.post(f"/api/v1/namespaces/{talk.namespace}/serviceaccounts", body)


def a_new_namespace_is_active(talk: Conversation) -> None:
    name = f"{talk.namespace}-b"[:63]
    talk.post("/api/v1/namespaces", objects.namespace(name))
    talk.delete(f"/api/v1/namespaces/{name}")
    talk.transcript.pop()
    talk.post("/api/v1/namespaces", objects.namespace("Not_A_Label"))
