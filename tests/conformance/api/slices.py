"""ResourceSlice: defaults, generations, limits, what is refused."""

from tests.conformance.api import objects
from tests.conformance.api.conversation import Conversation


def a_slice_is_stored(talk: Conversation) -> None:
    one = objects.device(
        "nic-0",
        attributes={
            "numa": {"int": 1},
            "dra.net/rdma": {"bool": True},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
            "driverVersion": {"version": "1.2.3"},
        },
        capacity={"rate": {"value": "400G"}},
    )
    talk.post(objects.SLICES, objects.resource_slice("plain-slice", devices=[one]))
    talk.get(f"{objects.SLICES}/plain-slice")
    talk.delete(f"{objects.SLICES}/plain-slice")


def a_slice_counts_its_generations(talk: Conversation) -> None:
    made = talk.post(objects.SLICES, objects.resource_slice("gen-slice"))
    made["metadata"]["labels"] = {"a": "b"}
    again = talk.put(f"{objects.SLICES}/gen-slice", made)
    again["spec"]["devices"].append(objects.device("nic-1"))
    talk.put(f"{objects.SLICES}/gen-slice", again)
    talk.delete(f"{objects.SLICES}/gen-slice")


def driver_pool_and_node_never_change(talk: Conversation) -> None:
    made = talk.post(objects.SLICES, objects.resource_slice("fixed-slice"))
    made["spec"] |= {"driver": "other.net", "nodeName": "node-2"}
    made["spec"]["pool"]["name"] = "other"
    talk.put(f"{objects.SLICES}/fixed-slice", made)
    talk.delete(f"{objects.SLICES}/fixed-slice")


def a_slice_names_its_nodes_in_one_way(talk: Conversation) -> None:
    talk.post(objects.SLICES, objects.resource_slice("node-slice", allNodes=True))
    body = objects.resource_slice("node-slice")
    del body["spec"]["nodeName"]
    talk.post(objects.SLICES, body)
    body["spec"]["allNodes"] = False
    talk.post(objects.SLICES, body)
    body["spec"] |= {"allNodes": None, "nodeSelector": {"nodeSelectorTerms": []}}
    talk.post(objects.SLICES, body)


def a_slice_needs_driver_and_pool(talk: Conversation) -> None:
    talk.post(objects.SLICES, objects.resource_slice("empty-slice", driver="", pool={}))
    bad = {"name": "Bad/Pool", "generation": -1, "resourceSliceCount": 0}
    talk.post(objects.SLICES, objects.resource_slice("empty-slice", driver="Bad Driver", pool=bad))


def devices_are_unique_and_well_named(talk: Conversation) -> None:
    twice = [objects.device("nic-0"), objects.device("nic-0"), objects.device("Nic_1"), objects.device("")]
    talk.post(objects.SLICES, objects.resource_slice("twice-slice", devices=twice))


def attributes_hold_one_value(talk: Conversation) -> None:
    attributes = {
        "none": {},
        "two": {"int": 1, "string": "x"},
        "long": {"string": "x" * 65},
        "version": {"version": "v1"},
        "bad-name": {"int": 1},
        "dra.net/": {"int": 1},
        "Bad Domain/x": {"int": 1},
        "x" * 33: {"bool": True},
    }
    for name, value in attributes.items():
        one = objects.device("nic-0", attributes={name: value})
        talk.post(objects.SLICES, objects.resource_slice("attr-slice", devices=[one]))


def a_device_has_limits(talk: Conversation) -> None:
    attributes = {f"a{i}": {"int": i} for i in range(30)}
    capacity = {f"c{i}": {"value": "1"} for i in range(3)}
    one = objects.device("nic-0", attributes=attributes, capacity=capacity)
    talk.post(objects.SLICES, objects.resource_slice("big-slice", devices=[one]))


def a_slice_has_limits(talk: Conversation) -> None:
    many = [objects.device(f"nic-{i}") for i in range(129)]
    talk.post(objects.SLICES, objects.resource_slice("many-slice", devices=many))
    tainted = [objects.device(f"nic-{i}") for i in range(65)]
    tainted[0]["taints"] = [{"key": "a", "effect": "NoSchedule"}]
    talk.post(objects.SLICES, objects.resource_slice("many-slice", devices=tainted))


def taints_get_a_time(talk: Conversation) -> None:
    one = objects.device("nic-0", taints=[{"key": "example.test/broken", "value": "yes", "effect": "NoSchedule"}])
    talk.post(objects.SLICES, objects.resource_slice("taint-slice", devices=[one]))
    talk.delete(f"{objects.SLICES}/taint-slice")


def taints_are_checked(talk: Conversation) -> None:
    wrong = [{"key": "", "effect": ""}, {"key": "bad key", "value": "-", "effect": "Sometimes"}]
    talk.post(objects.SLICES, objects.resource_slice("taint-slice", devices=[objects.device("nic-0", taints=wrong)]))


def counters_live_in_slices_of_their_own(talk: Conversation) -> None:
    shared = [{"name": "set-1", "counters": {"lanes": {"value": "16"}}}]
    alone = objects.resource_slice("counter-slice", sharedCounters=shared)
    talk.post(objects.SLICES, alone)
    del alone["spec"]["devices"]
    talk.post(objects.SLICES, alone)
    talk.delete(f"{objects.SLICES}/counter-slice")


def counters_are_checked(talk: Conversation) -> None:
    wrong = [{"name": "Bad Set", "counters": {}}, {"name": "s", "counters": {"Bad C": {"value": "1"}}}, {"name": "s"}]
    body = objects.resource_slice("counter-slice", sharedCounters=wrong)
    del body["spec"]["devices"]
    talk.post(objects.SLICES, body)


def consumed_counters_are_kept(talk: Conversation) -> None:
    consumed = [{"counterSet": "set-1", "counters": {"lanes": {"value": "4"}}}]
    one = objects.device("nic-0", consumesCounters=consumed)
    talk.post(objects.SLICES, objects.resource_slice("consume-slice", devices=[one]))
    talk.delete(f"{objects.SLICES}/consume-slice")
    wrong = [{"counterSet": "", "counters": {}}, {"counterSet": "Bad Set", "counters": {"lanes": {"value": "1"}}}]
    one = objects.device("nic-0", consumesCounters=wrong)
    talk.post(objects.SLICES, objects.resource_slice("consume-slice", devices=[one]))


def shared_devices_have_request_policies(talk: Conversation) -> None:
    policy = {"default": "1", "validRange": {"min": "1", "max": "10", "step": "1"}}
    capacity = {"rate": {"value": "10", "requestPolicy": policy}}
    one = objects.device("nic-0", capacity=capacity, allowMultipleAllocations=True)
    talk.post(objects.SLICES, objects.resource_slice("share-slice", devices=[one]))
    talk.delete(f"{objects.SLICES}/share-slice")
    alone = objects.device("nic-0", capacity=capacity)
    talk.post(objects.SLICES, objects.resource_slice("share-slice", devices=[alone]))


def nodes_per_device_need_the_slice_to_say_so(talk: Conversation) -> None:
    one = objects.device("nic-0", nodeName="node-1")
    talk.post(objects.SLICES, objects.resource_slice("per-slice", devices=[one]))
    body = objects.resource_slice("per-slice", devices=[one, objects.device("nic-1")], perDeviceNodeSelection=True)
    del body["spec"]["nodeName"]
    talk.post(objects.SLICES, body)


def binding_conditions_come_in_pairs(talk: Conversation) -> None:
    one = objects.device("nic-0", bindingConditions=["example.test/ready"])
    talk.post(objects.SLICES, objects.resource_slice("bind-slice", devices=[one]))
    one = objects.device(
        "nic-0",
        bindsToNode=True,
        bindingConditions=["example.test/ready"],
        bindingFailureConditions=["example.test/failed"],
    )
    talk.post(objects.SLICES, objects.resource_slice("bind-slice", devices=[one]))
    talk.delete(f"{objects.SLICES}/bind-slice")


def fields_of_disabled_gates_are_dropped(talk: Conversation) -> None:
    one = objects.device("nic-0", attributes={"a": {"int": 1}})
    one["nodeAllocatableResourceMappings"] = {"cpu": {"allocationMultiplier": "1"}}
    talk.post(objects.SLICES, objects.resource_slice("gate-slice", devices=[one]))
    talk.delete(f"{objects.SLICES}/gate-slice")
