"""ResourceClaim and ResourceClaimTemplate: defaults, validation, allocation, reservation."""

from tests.conformance.api import objects
from tests.conformance.api.conversation import Conversation

_ALL = {"allocationMode": "All"}


def _claims(talk: Conversation) -> str:
    return f"{objects.DRA}/namespaces/{talk.namespace}/resourceclaims"


def _templates(talk: Conversation) -> str:
    return f"{objects.DRA}/namespaces/{talk.namespace}/resourceclaimtemplates"


def _made(talk: Conversation, *devices: str) -> objects.Object:
    made: objects.Object = talk.post(_claims(talk), objects.claim("one", objects.request(count=max(1, len(devices)))))
    if devices:
        body = made | {"status": {"allocation": objects.allocation(*devices)}}
        made = talk.put(f"{_claims(talk)}/one/status", body)
    talk.transcript.clear()
    return made


def a_claim_gets_mode_and_count(talk: Conversation) -> None:
    talk.post(_claims(talk), objects.claim("one"))
    talk.post(_claims(talk), objects.claim("two", objects.request(**_ALL)))


def alternatives_get_mode_and_count(talk: Conversation) -> None:
    first = {"name": "big", "deviceClassName": "nics.example.test"}
    second = {"name": "all", "deviceClassName": "nics.example.test", **_ALL}
    talk.post(_claims(talk), objects.claim("one", {"name": "nic", "firstAvailable": [first, second]}))


def tolerations_get_an_operator(talk: Conversation) -> None:
    asked = objects.request(tolerations=[{"key": "a", "value": "b"}, {"operator": "Exists"}])
    talk.post(_claims(talk), objects.claim("one", asked))


def a_template_gets_the_defaults_of_a_claim(talk: Conversation) -> None:
    talk.post(_templates(talk), objects.claim_template("one"))


def a_status_given_on_create_is_dropped(talk: Conversation) -> None:
    talk.post(_claims(talk), objects.claim("one") | {"status": {"allocation": objects.allocation("nic-0")}})


def the_spec_of_a_claim_never_changes(talk: Conversation) -> None:
    made = _made(talk)
    made["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    talk.put(f"{_claims(talk)}/one", made)


def the_spec_of_a_template_never_changes(talk: Conversation) -> None:
    made = talk.post(_templates(talk), objects.claim_template("one"))
    made["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    talk.put(f"{_templates(talk)}/one", made)


def labels_of_a_claim_may_change(talk: Conversation) -> None:
    made = _made(talk)
    made["metadata"]["labels"] = {"a": "b"}
    talk.put(f"{_claims(talk)}/one", made)


def requests_must_have_one_form(talk: Conversation) -> None:
    both = objects.request() | {"firstAvailable": [{"name": "x", "deviceClassName": "c"}]}
    talk.post(_claims(talk), objects.claim("one", both))
    talk.post(_claims(talk), objects.claim("one", {"name": "nic"}))
    talk.post(_claims(talk), objects.claim("one", {"name": "nic", "firstAvailable": []}))


def requests_need_valid_names_and_classes(talk: Conversation) -> None:
    bad = {"name": "Bad Name", "exactly": {"deviceClassName": "Bad Class"}}
    talk.post(_claims(talk), objects.claim("one", bad, {"name": "", "exactly": {"deviceClassName": ""}}))
    talk.post(_claims(talk), objects.claim("one", objects.request(), objects.request()))


def modes_and_counts_must_agree(talk: Conversation) -> None:
    talk.post(_claims(talk), objects.claim("one", objects.request(count=2, **_ALL)))
    talk.post(_claims(talk), objects.claim("one", objects.request(allocationMode="Some")))
    talk.post(_claims(talk), objects.claim("one", objects.request(count=-1)))


def selectors_of_a_claim_must_compile(talk: Conversation) -> None:
    talk.post(_claims(talk), objects.claim("one", objects.request(selectors=[{"cel": {"expression": "nope("}}])))
    talk.post(_claims(talk), objects.claim("one", objects.request(selectors=[{}])))


def constraints_name_known_requests_and_full_attributes(talk: Conversation) -> None:
    wrong = [{"requests": ["nobody"], "matchAttribute": "numa"}, {"requests": ["nic", "nic"]}]
    talk.post(_claims(talk), objects.claim("one", constraints=wrong))


def constraints_may_tell_apart(talk: Conversation) -> None:
    distinct = [{"distinctAttribute": "dra.net/numa"}]
    talk.post(_claims(talk), objects.claim("one", objects.request(count=2), constraints=distinct))


def configuration_names_known_requests(talk: Conversation) -> None:
    opaque = {"driver": "dra.net", "parameters": {"mtu": 9000}}
    talk.post(_claims(talk), objects.claim("one", config=[{"requests": ["nic"], "opaque": opaque}]))
    wrong = [{"requests": ["nobody"], "opaque": opaque}, {}, {"opaque": {"driver": "", "parameters": None}}]
    talk.post(_claims(talk), objects.claim("two", config=wrong))


def parameters_have_a_limit(talk: Conversation) -> None:
    opaque = {"driver": "dra.net", "parameters": {"x": "y" * 10240}}
    talk.post(_claims(talk), objects.claim("one", config=[{"opaque": opaque}]))


def claims_have_limits(talk: Conversation) -> None:
    talk.post(_claims(talk), objects.claim("one", *[objects.request(f"r-{i}") for i in range(33)]))
    alternatives = [{"name": f"a-{i}", "deviceClassName": "c"} for i in range(9)]
    talk.post(_claims(talk), objects.claim("one", {"name": "nic", "firstAvailable": alternatives}))
    talk.post(_claims(talk), objects.claim("one", constraints=[{"matchAttribute": "a.b/c"}] * 33))


def tolerations_are_checked(talk: Conversation) -> None:
    wrong = [
        {"key": "bad key", "operator": "Equal"},
        {"operator": "Maybe"},
        {"key": "a", "operator": "Exists", "value": "b"},
        {"operator": "Equal", "value": "x"},
        {"key": "a", "effect": "Sometimes"},
    ]
    talk.post(_claims(talk), objects.claim("one", objects.request(tolerations=wrong)))


def capacity_requests_are_kept(talk: Conversation) -> None:
    asked = objects.request(capacity={"requests": {"memory": "1Gi", "dra.net/rate": "100G"}})
    talk.post(_claims(talk), objects.claim("one", asked))


def admin_access_needs_a_namespace_for_it(talk: Conversation) -> None:
    talk.post(_claims(talk), objects.claim("one", objects.request(adminAccess=True)))
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    talk.patch(f"/api/v1/namespaces/{talk.namespace}", label, "merge")
    talk.transcript.pop()
    talk.post(_claims(talk), objects.claim("one", objects.request(adminAccess=True)))


def an_allocation_is_written_through_status(talk: Conversation) -> None:
    made = _made(talk)
    talk.put(f"{_claims(talk)}/one/status", made | {"status": {"allocation": objects.allocation("nic-0")}})


def an_allocation_never_changes(talk: Conversation) -> None:
    made = _made(talk, "nic-0")
    made["status"]["allocation"] = objects.allocation("nic-1")
    talk.put(f"{_claims(talk)}/one/status", made)


def an_allocation_may_be_taken_back(talk: Conversation) -> None:
    made = _made(talk, "nic-0")
    talk.put(f"{_claims(talk)}/one/status", made | {"status": {}})


def an_allocation_is_checked(talk: Conversation) -> None:
    made = _made(talk)
    wrong = objects.allocation("Bad Device")
    wrong["devices"]["results"].append({"request": "nobody", "driver": "", "pool": "", "device": ""})
    wrong["nodeSelector"] = {"nodeSelectorTerms": []}
    talk.put(f"{_claims(talk)}/one/status", made | {"status": {"allocation": wrong}})


def reservations_need_an_allocation(talk: Conversation) -> None:
    made = _made(talk)
    reserved = [objects.consumer("p")]
    talk.put(f"{_claims(talk)}/one/status", made | {"status": {"reservedFor": reserved}})


def reservations_are_unique(talk: Conversation) -> None:
    made = _made(talk, "nic-0")
    made["status"]["reservedFor"] = [objects.consumer("p")]
    again = talk.put(f"{_claims(talk)}/one/status", made)
    again["status"]["reservedFor"] *= 2
    talk.put(f"{_claims(talk)}/one/status", again)
    again["status"]["reservedFor"] = [{"resource": "", "name": "", "uid": ""}]
    talk.put(f"{_claims(talk)}/one/status", again)
    again["status"]["reservedFor"] = [objects.consumer(f"p-{i}") for i in range(257)]
    talk.put(f"{_claims(talk)}/one/status", again)


def reservations_outlive_no_allocation(talk: Conversation) -> None:
    made = _made(talk, "nic-0")
    made["status"]["reservedFor"] = [objects.consumer("p")]
    again = talk.put(f"{_claims(talk)}/one/status", made)
    del again["status"]["allocation"]
    talk.put(f"{_claims(talk)}/one/status", again)


def reservations_merge_by_uid(talk: Conversation) -> None:
    _made(talk, "nic-0")
    for name in ("a", "b"):
        reserved = [objects.consumer(name)]
        talk.patch(f"{_claims(talk)}/one/status", {"status": {"reservedFor": reserved}}, "strategic")


def no_reservation_is_added_to_a_claim_being_deleted(talk: Conversation) -> None:
    _made(talk, "nic-0")
    finalizer = {"metadata": {"finalizers": ["example.test/hold"]}}
    talk.patch(f"{_claims(talk)}/one", finalizer, "merge")
    talk.delete(f"{_claims(talk)}/one")
    reserved = [objects.consumer("p")]
    talk.patch(f"{_claims(talk)}/one/status", {"status": {"reservedFor": reserved}}, "merge")
    talk.patch(f"{_claims(talk)}/one", {"metadata": {"finalizers": None}}, "merge")


def device_status_must_name_an_allocated_device(talk: Conversation) -> None:
    made = _made(talk, "nic-0")
    made["status"]["devices"] = [objects.device_status("nic-7")]
    talk.put(f"{_claims(talk)}/one/status", made)


def device_status_is_checked(talk: Conversation) -> None:
    made = _made(talk, "nic-0")
    network = {
        "interfaceName": "n" * 257,
        "ips": ["10.0.0.1", "fd00::1/64", "10.0.0.1/24"],
        "hardwareAddress": "a" * 129,
    }
    wrong = objects.device_status("nic-0", networkData=network, data=[1])
    wrong["conditions"] = [{"type": "", "status": "Perhaps", "reason": "", "message": "", "lastTransitionTime": None}]
    made["status"]["devices"] = [wrong]
    talk.put(f"{_claims(talk)}/one/status", made)


def device_status_is_stored(talk: Conversation) -> None:
    made = _made(talk, "nic-0")
    network = {"interfaceName": "net1", "ips": ["10.0.0.1/24", "fd00::1/64"], "hardwareAddress": "00:11:22:33:44:55"}
    made["status"]["devices"] = [
        objects.device_status("nic-0", condition="Ready", networkData=network, data={"mtu": 9000})
    ]
    talk.put(f"{_claims(talk)}/one/status", made)


def device_status_twice_is_refused(talk: Conversation) -> None:
    made = _made(talk, "nic-0")
    made["status"]["devices"] = [objects.device_status("nic-0")] * 2
    talk.put(f"{_claims(talk)}/one/status", made)


def the_main_resource_leaves_the_status(talk: Conversation) -> None:
    made = _made(talk, "nic-0")
    made["metadata"]["labels"] = {"a": "b"}
    talk.put(f"{_claims(talk)}/one", made | {"status": {}})
    talk.get(f"{_claims(talk)}/one/status")
