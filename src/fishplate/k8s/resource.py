"""ResourceSlice of resource.k8s.io/v1, in the API's own shape.

Leaf types carry no cycles, so they opt out of Python's garbage collector: lists of 10,000 slices load in half the time.
Quantities stay as they were written; whoever computes with them parses them.
"""

from typing import ClassVar, Literal, TypeAlias

import msgspec

from fishplate.k8s.selection import NodeSelector

# Limits of the API server, the same from 1.34 to 1.37 (staging/src/k8s.io/api/resource/v1/types.go).
MAX_DEVICES_PER_SLICE = 128
MAX_ATTRIBUTES_PER_DEVICE = 32
MAX_STRING_BYTES = 64
MAX_RESULTS_PER_CLAIM = 32

# JSON allows a bare number where a quantity stands.
QuantityText: TypeAlias = str | int | float


class DeviceAttribute(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    omit_defaults=True,
    rename={"int_": "int", "bool_": "bool"},
):
    """Exactly one is set; the lists need the gate DRAListTypeAttributes."""

    int_: int | None = None
    bool_: bool | None = None
    string: str | None = None
    version: str | None = None
    ints: tuple[int, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None

    @property
    def value(self) -> int | bool | str | None:
        for candidate in (self.int_, self.bool_, self.string, self.version):
            if candidate is not None:
                return candidate
        return None


class CapacityRequestPolicyRange(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    min: QuantityText | None = None
    max: QuantityText | None = None
    step: QuantityText | None = None


class CapacityRequestPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """How much of a capacity a request takes: at most one of validValues and validRange."""

    default: QuantityText | None = None
    valid_values: tuple[QuantityText, ...] | None = None
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    value: QuantityText
    request_policy: CapacityRequestPolicy | None = None


class Counter(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    value: QuantityText


class CounterSet(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    counter_set: str
    counters: dict[str, Counter] = {}
    compatibility_groups: tuple[str, ...] = ()


class DeviceTaint(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, rename="camel"):
    key: str
    value: str = ""
    effect: str = ""
    time_added: str | None = None

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Device(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    name: str
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None


class ResourcePool(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    name: str
    generation: int = 0
    resource_slice_count: int


class ObjectMeta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    unread_fields: ClassVar[frozenset[str]] = frozenset(
        {"annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers"}
        | {"generateName", "generation", "labels", "managedFields", "ownerReferences", "resourceVersion", "selfLink"}
    )
    name: str
    namespace: str = ""
    uid: str = ""


class OwnerReference(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, rename="camel"):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None


class LiveMeta(ObjectMeta, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What a writer needs besides: the version it read, and whose object it is."""

    resource_version: str = ""
    labels: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    deletion_timestamp: str | None = None


class ResourceSliceSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Exactly one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection is set."""

    driver: str
    pool: ResourcePool
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    # A slice of no devices says so: an absent list and an empty one mean the same to the API, not to a reader.
    devices: tuple[Device, ...] = msgspec.field(default_factory=lambda: ())
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: Literal["resource.k8s.io/v1"] = "resource.k8s.io/v1"
    kind: Literal["ResourceSlice"] = "ResourceSlice"
    metadata: ObjectMeta
    spec: ResourceSliceSpec
