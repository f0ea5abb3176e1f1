"""Server-side apply: who owns which field, conflicts, taking over, giving up."""

from tests.conformance.api import objects
from tests.conformance.api.conversation import Conversation


def _maps(talk: Conversation) -> str:
    return f"/api/v1/namespaces/{talk.namespace}/configmaps"


def _claims(talk: Conversation) -> str:
    return f"{objects.DRA}/namespaces/{talk.namespace}/resourceclaims"


def _map(data: dict[str, str], **metadata: object) -> objects.Object:
    return objects.config_map("one", data, **metadata)


def _allocated(talk: Conversation, *devices: str) -> str:
    made = talk.post(_claims(talk), objects.claim("one", objects.request(count=len(devices))))
    body = made | {"status": {"allocation": objects.allocation(*devices)}}
    talk.put(f"{_claims(talk)}/one/status", body)
    talk.transcript.clear()
    return f"{_claims(talk)}/one/status"


def _status(*devices: objects.Object) -> objects.Object:
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "one"}}
    return head | {"status": {"devices": list(devices)}}


def applying_creates(talk: Conversation) -> None:
    talk.patch(f"{_maps(talk)}/one", _map({"a": "1"}, labels={"x": "y"}), "apply", fieldManager="alpha")


def applying_again_changes_nothing(talk: Conversation) -> None:
    first = talk.patch(f"{_maps(talk)}/one", _map({"a": "1"}), "apply", fieldManager="alpha")
    second = talk.patch(f"{_maps(talk)}/one", _map({"a": "1"}), "apply", fieldManager="alpha")
    talk.note("same", version=first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"])


def two_managers_share_an_object(talk: Conversation) -> None:
    talk.patch(f"{_maps(talk)}/one", _map({"a": "1"}), "apply", fieldManager="alpha")
    talk.patch(f"{_maps(talk)}/one", _map({"b": "2"}), "apply", fieldManager="beta")
    talk.patch(f"{_maps(talk)}/one", _map({"a": "1"}), "apply", fieldManager="beta")


def a_field_of_another_manager_is_a_conflict(talk: Conversation) -> None:
    talk.patch(f"{_maps(talk)}/one", _map({"a": "1", "b": "1"}), "apply", fieldManager="alpha")
    talk.patch(f"{_maps(talk)}/one", _map({"a": "2"}), "apply", fieldManager="beta")
    talk.patch(f"{_maps(talk)}/one", _map({"a": "2", "b": "2"}), "apply", fieldManager="beta")


def conflicts_name_every_manager(talk: Conversation) -> None:
    talk.patch(f"{_maps(talk)}/one", _map({"a": "1"}), "apply", fieldManager="alpha")
    talk.patch(f"{_maps(talk)}/one", _map({"b": "1"}), "apply", fieldManager="gamma")
    talk.patch(f"{_maps(talk)}/one", _map({"a": "2", "b": "2"}), "apply", fieldManager="beta")


def force_takes_the_field_over(talk: Conversation) -> None:
    talk.patch(f"{_maps(talk)}/one", _map({"a": "1", "b": "1"}), "apply", fieldManager="alpha")
    talk.patch(f"{_maps(talk)}/one", _map({"a": "2"}), "apply", fieldManager="beta", force="true")


def what_is_no_longer_applied_goes(talk: Conversation) -> None:
    talk.patch(f"{_maps(talk)}/one", _map({"a": "1", "b": "1"}), "apply", fieldManager="alpha")
    talk.patch(f"{_maps(talk)}/one", _map({"a": "1"}), "apply", fieldManager="alpha")


def what_two_applied_stays_until_both_let_go(talk: Conversation) -> None:
    for manager in ("alpha", "beta"):
        talk.patch(f"{_maps(talk)}/one", _map({"a": "1", "b": "1"}), "apply", fieldManager=manager)
    talk.patch(f"{_maps(talk)}/one", _map({"a": "1"}), "apply", fieldManager="alpha")
    talk.patch(f"{_maps(talk)}/one", _map({"a": "1"}), "apply", fieldManager="beta")


def an_update_takes_fields_without_asking(talk: Conversation) -> None:
    talk.patch(f"{_maps(talk)}/one", _map({"a": "1"}), "apply", fieldManager="alpha")
    talk.patch(f"{_maps(talk)}/one", {"data": {"a": "2"}}, "merge", fieldManager="editor")
    talk.patch(f"{_maps(talk)}/one", _map({"a": "1"}), "apply", fieldManager="alpha")


def an_update_that_removes_a_field_ends_its_ownership(talk: Conversation) -> None:
    talk.patch(f"{_maps(talk)}/one", _map({"a": "1", "b": "1"}), "apply", fieldManager="alpha")
    talk.patch(f"{_maps(talk)}/one", {"data": {"b": None}}, "merge", fieldManager="editor")


def ownership_can_be_handed_over(talk: Conversation) -> None:
    made = talk.post(_maps(talk), _map({"a": "1"}))
    owners = made["metadata"]["managedFields"]
    owners[0] |= {"manager": "alpha", "operation": "Apply"}
    talk.patch(f"{_maps(talk)}/one", [{"op": "replace", "path": "/metadata/managedFields", "value": owners}], "json")
    talk.patch(f"{_maps(talk)}/one", _map({"b": "2"}), "apply", fieldManager="alpha")


def ownership_can_be_dropped(talk: Conversation) -> None:
    talk.post(_maps(talk), _map({"a": "1"}))
    talk.patch(f"{_maps(talk)}/one", {"metadata": {"managedFields": [{}]}}, "merge")
    talk.patch(f"{_maps(talk)}/one", {"data": {"b": "2"}}, "merge")
    talk.patch(f"{_maps(talk)}/one", _map({"a": "2"}), "apply", fieldManager="alpha")
    talk.patch(f"{_maps(talk)}/one", _map({"a": "2"}), "apply", fieldManager="alpha", force="true")


def applying_needs_a_manager(talk: Conversation) -> None:
    talk.patch(f"{_maps(talk)}/one", _map({"a": "1"}), "apply")


def applying_needs_kind_and_version(talk: Conversation) -> None:
    talk.patch(f"{_maps(talk)}/one", {"data": {"a": "1"}}, "apply", fieldManager="alpha")
    wrong = _map({"a": "1"}) | {"kind": "Secret"}
    talk.patch(f"{_maps(talk)}/one", wrong, "apply", fieldManager="alpha")


def applied_objects_carry_no_managed_fields(talk: Conversation) -> None:
    body = _map({"a": "1"}, managedFields=[{"manager": "x", "operation": "Apply", "apiVersion": "v1"}])
    talk.patch(f"{_maps(talk)}/one", body, "apply", fieldManager="alpha")


def applying_an_unknown_field_is_refused(talk: Conversation) -> None:
    talk.patch(f"{_maps(talk)}/one", _map({"a": "1"}) | {"colour": "x"}, "apply", fieldManager="alpha")


def force_is_for_apply_only(talk: Conversation) -> None:
    talk.post(_maps(talk), _map({"a": "1"}))
    talk.patch(f"{_maps(talk)}/one", {"data": {"a": "2"}}, "merge", force="true")


def applying_with_an_old_version_is_a_conflict(talk: Conversation) -> None:
    made = talk.post(_maps(talk), _map({"a": "1"}))
    talk.patch(f"{_maps(talk)}/one", {"data": {"c": "2"}}, "merge")
    old = _map({"b": "2"}, resourceVersion=made["metadata"]["resourceVersion"])
    talk.patch(f"{_maps(talk)}/one", old, "apply", fieldManager="alpha")


def device_status_of_two_drivers_lives_side_by_side(talk: Conversation) -> None:
    path = _allocated(talk, "nic-0", "nic-1")
    talk.patch(path, _status(objects.device_status("nic-0", condition="Ready")), "apply", fieldManager="driver-a")
    talk.patch(path, _status(objects.device_status("nic-1", condition="Ready")), "apply", fieldManager="driver-b")


def device_conditions_merge_by_type(talk: Conversation) -> None:
    path = _allocated(talk, "nic-0")
    talk.patch(path, _status(objects.device_status("nic-0", condition="Ready")), "apply", fieldManager="driver-a")
    talk.patch(path, _status(objects.device_status("nic-0", condition="Linked")), "apply", fieldManager="driver-b")
    talk.patch(path, _status(objects.device_status("nic-0", condition="Other")), "apply", fieldManager="driver-b")


def device_network_data_conflicts_between_managers(talk: Conversation) -> None:
    path = _allocated(talk, "nic-0")
    mine = objects.device_status("nic-0", networkData={"interfaceName": "net1", "ips": ["10.0.0.1/24"]})
    talk.patch(path, _status(mine), "apply", fieldManager="driver-a")
    theirs = objects.device_status("nic-0", networkData={"interfaceName": "net2", "ips": ["10.0.0.2/24"]})
    talk.patch(path, _status(theirs), "apply", fieldManager="driver-b")
    talk.patch(path, _status(theirs), "apply", fieldManager="driver-b", force="true")


def device_status_with_data_is_owned_as_a_whole(talk: Conversation) -> None:
    path = _allocated(talk, "nic-0")
    talk.patch(path, _status(objects.device_status("nic-0", data={"mtu": 9000})), "apply", fieldManager="driver-a")


def device_status_given_up_goes(talk: Conversation) -> None:
    path = _allocated(talk, "nic-0", "nic-1")
    both = _status(*(objects.device_status(d, condition="Ready") for d in ("nic-0", "nic-1")))
    talk.patch(path, both, "apply", fieldManager="driver-a")
    talk.patch(path, _status(objects.device_status("nic-1", condition="Ready")), "apply", fieldManager="driver-a")
    talk.patch(path, _status(), "apply", fieldManager="driver-a")


def a_device_twice_in_one_apply_is_refused(talk: Conversation) -> None:
    path = _allocated(talk, "nic-0")
    twice = _status(objects.device_status("nic-0"), objects.device_status("nic-0"))
    talk.patch(path, twice, "apply", fieldManager="driver-a")


def applying_to_status_leaves_the_rest(talk: Conversation) -> None:
    path = _allocated(talk, "nic-0")
    body = _status(objects.device_status("nic-0")) | {"spec": {"devices": {"requests": []}}}
    body["metadata"]["labels"] = {"x": "y"}
    talk.patch(path, body, "apply", fieldManager="driver-a")


def applying_status_of_what_is_not_there(talk: Conversation) -> None:
    talk.patch(f"{_claims(talk)}/one/status", _status(), "apply", fieldManager="driver-a")


def applying_a_claim_keeps_its_defaults(talk: Conversation) -> None:
    talk.patch(f"{_claims(talk)}/one", objects.claim("one"), "apply", fieldManager="alpha")
    talk.patch(f"{_claims(talk)}/one", objects.claim("one"), "apply", fieldManager="alpha")


def applying_a_pod_merges_containers_by_name(talk: Conversation) -> None:
    pods = f"/api/v1/namespaces/{talk.namespace}/pods"
    talk.patch(f"{pods}/one", objects.pod("one"), "apply", fieldManager="alpha")
    body = objects.pod("one", containers=[{"name": "main", "image": "example.test/main:2"}])
    del body["spec"]["schedulerName"], body["spec"]["automountServiceAccountToken"]
    talk.patch(f"{pods}/one", body, "apply", fieldManager="beta")
    talk.patch(f"{pods}/one", body, "apply", fieldManager="beta", force="true")
