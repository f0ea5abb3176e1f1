"""Pods: defaults, binding, status, grace, what may change."""

from tests.conformance.api import objects
from tests.conformance.api.conversation import Conversation


def _pods(talk: Conversation) -> str:
    return f"/api/v1/namespaces/{talk.namespace}/pods"


def a_pod_gets_its_defaults(talk: Conversation) -> None:
    talk.post(_pods(talk), objects.pod("one"))


def a_pod_with_claims_keeps_them(talk: Conversation) -> None:
    container = {"name": "main", "image": "example.test/main", "resources": {"claims": [{"name": "nic"}]}}
    claims = [{"name": "nic", "resourceClaimTemplateName": "nics"}]
    talk.post(_pods(talk), objects.pod("one", containers=[container], resourceClaims=claims))


def a_pod_with_requests_has_a_quality_of_service(talk: Conversation) -> None:
    guaranteed = {"limits": {"cpu": "1", "memory": "1Gi"}}
    burstable = {"requests": {"cpu": "100m"}}
    for name, resources in (("one", guaranteed), ("two", burstable)):
        container = {"name": "main", "image": "example.test/main:latest", "resources": resources}
        talk.post(_pods(talk), objects.pod(name, containers=[container]))


def ports_probes_and_environment_get_defaults(talk: Conversation) -> None:
    container = {
        "name": "main",
        "image": "example.test/main@sha256:" + "0" * 64,
        "ports": [{"containerPort": 80}],
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "readinessProbe": {"httpGet": {"port": 80}},
        "volumeMounts": [{"name": "conf", "mountPath": "/conf"}],
    }
    volumes = [{"name": "conf", "configMap": {"name": "conf"}}, {"name": "host", "hostPath": {"path": "/x"}}]
    talk.post(_pods(talk), objects.pod("one", containers=[container], volumes=volumes))


def a_pod_without_containers_is_invalid(talk: Conversation) -> None:
    talk.post(_pods(talk), objects.pod("one", containers=[]))


def containers_need_names_and_images(talk: Conversation) -> None:
    twice = [{"name": "main", "image": "x"}, {"name": "main", "image": "x"}]
    talk.post(_pods(talk), objects.pod("one", containers=twice))
    talk.post(_pods(talk), objects.pod("one", containers=[{"name": "Main_1", "image": ""}]))


def claims_of_containers_must_be_claims_of_the_pod(talk: Conversation) -> None:
    container = {"name": "main", "image": "x", "resources": {"claims": [{"name": "nobody"}]}}
    talk.post(_pods(talk), objects.pod("one", containers=[container]))
    both = [{"name": "nic", "resourceClaimTemplateName": "a", "resourceClaimName": "b"}]
    talk.post(_pods(talk), objects.pod("one", resourceClaims=both))
    talk.post(_pods(talk), objects.pod("one", resourceClaims=[{"name": "nic"}]))


def binding_puts_a_pod_on_a_node(talk: Conversation) -> None:
    talk.post(_pods(talk), objects.pod("one"))
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "one"},
        "target": {"kind": "Node", "name": "n1"},
    }
    talk.post(f"{_pods(talk)}/one/binding", body)
    talk.get(f"{_pods(talk)}/one")
    talk.post(f"{_pods(talk)}/one/binding", body)
    talk.delete(f"{_pods(talk)}/one", gracePeriodSeconds="0")


def binding_a_pod_that_is_not_there(talk: Conversation) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "one"},
        "target": {"kind": "Node", "name": "n1"},
    }
    talk.post(f"{_pods(talk)}/one/binding", body)


def status_and_spec_are_written_apart(talk: Conversation) -> None:
    made = talk.post(_pods(talk), objects.pod("one") | {"status": {"phase": "Running"}})
    changed = made | {"status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}}
    talk.put(f"{_pods(talk)}/one/status", changed)
    got = talk.get(f"{_pods(talk)}/one/status")
    got["status"]["phase"] = "Failed"
    got["metadata"]["labels"] = {"x": "y"}
    talk.put(f"{_pods(talk)}/one", got)


def status_conditions_merge_by_type(talk: Conversation) -> None:
    talk.post(_pods(talk), objects.pod("one"))
    ready = {"type": "Ready", "status": "False", "reason": "NotYet"}
    talk.patch(f"{_pods(talk)}/one/status", {"status": {"conditions": [ready]}}, "strategic")
    scheduled = {"type": "PodScheduled", "status": "True"}
    talk.patch(f"{_pods(talk)}/one/status", {"status": {"conditions": [scheduled]}}, "strategic")


def resource_claim_statuses_are_kept(talk: Conversation) -> None:
    claims = [{"name": "nic", "resourceClaimTemplateName": "nics"}]
    talk.post(_pods(talk), objects.pod("one", resourceClaims=claims))
    status = {"status": {"resourceClaimStatuses": [{"name": "nic", "resourceClaimName": "one-nic-abcde"}]}}
    talk.patch(f"{_pods(talk)}/one/status", status, "strategic")


def only_the_image_of_a_pod_may_change(talk: Conversation) -> None:
    made = talk.post(_pods(talk), objects.pod("one"))
    made["spec"]["containers"][0]["image"] = "example.test/main:2"
    again = talk.put(f"{_pods(talk)}/one", made)
    again["spec"]["nodeSelector"] = {"a": "b"}
    talk.put(f"{_pods(talk)}/one", again)


def deleting_a_bound_pod_waits_for_its_kubelet(talk: Conversation) -> None:
    talk.post(_pods(talk), objects.pod("one", nodeName="n1"))
    talk.delete(f"{_pods(talk)}/one")
    talk.get(f"{_pods(talk)}/one")
    talk.delete(f"{_pods(talk)}/one", gracePeriodSeconds="5")
    talk.delete(f"{_pods(talk)}/one", gracePeriodSeconds="0")
    talk.get(f"{_pods(talk)}/one")


def deleting_a_pod_without_a_node_is_at_once(talk: Conversation) -> None:
    talk.post(_pods(talk), objects.pod("one"))
    talk.delete(f"{_pods(talk)}/one")
    talk.get(f"{_pods(talk)}/one")


def deleting_a_finished_pod_is_at_once(talk: Conversation) -> None:
    talk.post(_pods(talk), objects.pod("one", nodeName="n1"))
    talk.patch(f"{_pods(talk)}/one/status", {"status": {"phase": "Succeeded"}}, "merge")
    talk.delete(f"{_pods(talk)}/one")
    talk.get(f"{_pods(talk)}/one")


def a_negative_grace_period_is_refused(talk: Conversation) -> None:
    talk.post(_pods(talk), objects.pod("one", nodeName="n1"))
    talk.delete(f"{_pods(talk)}/one", gracePeriodSeconds="-2")
    talk.delete(f"{_pods(talk)}/one", gracePeriodSeconds="0")
