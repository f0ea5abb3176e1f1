"""DeviceClass, ResourceClaim and ResourceClaimTemplate of resource.k8s.io/v1, and the API server's defaults."""

from typing import ClassVar, Literal

import msgspec

from fishplate.k8s.resource import ObjectMeta, QuantityText
from fishplate.k8s.selection import NodeSelector

EXACT_COUNT = "ExactCount"
ALL = "All"


class CELDeviceSelector(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    expression: str


class DeviceSelector(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters are the driver's own business: any JSON object."""

    driver: str
    parameters: object = None


class DeviceClassConfiguration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: Literal["resource.k8s.io/v1"] = "resource.k8s.io/v1"
    kind: Literal["DeviceClass"] = "DeviceClass"
    metadata: ObjectMeta
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceToleration(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, rename="camel"):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    requests: dict[str, QuantityText] = {}


class DeviceDerivedAttribute(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    expression: str = ""


class DeviceSubRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One alternative of `firstAvailable`."""

    name: str
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class ExactDeviceRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Either `exactly` or `firstAvailable`."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(msgspec.Struct, frozen=True, kw_only=True):
    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, QuantityText] | None = None


class DeviceAllocationConfiguration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    source: str
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    allocation: AllocationResult | None = None


class ResourceClaim(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: Literal["resource.k8s.io/v1"] = "resource.k8s.io/v1"
    kind: Literal["ResourceClaim"] = "ResourceClaim"
    metadata: ObjectMeta
    spec: ResourceClaimSpec
    status: ResourceClaimStatus = ResourceClaimStatus()

    def __str__(self) -> str:
        """As kube-scheduler names it in its messages."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class ResourceClaimTemplateSpec(msgspec.Struct, frozen=True, kw_only=True):
    unread_fields: ClassVar[frozenset[str]] = frozenset({"metadata"})  # labels and annotations for the claim
    spec: ResourceClaimSpec


class ResourceClaimTemplate(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: Literal["resource.k8s.io/v1"] = "resource.k8s.io/v1"
    kind: Literal["ResourceClaimTemplate"] = "ResourceClaimTemplate"
    metadata: ObjectMeta
    spec: ResourceClaimTemplateSpec

    def as_claim(self, name: str) -> ResourceClaim:
        """The claim that the control plane would make of it under that name."""
        metadata = ObjectMeta(name=name, namespace=self.metadata.namespace)
        return ResourceClaim(metadata=metadata, spec=self.spec.spec)


def default_claim_spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    """What the API server would store (pkg/apis/resource/v1/defaults.go); the allocator refuses requests without."""
    requests = tuple(_default_request(request) for request in spec.devices.requests)
    return ResourceClaimSpec(devices=msgspec.structs.replace(spec.devices, requests=requests))


def default_claim(claim: ResourceClaim) -> ResourceClaim:
    return msgspec.structs.replace(claim, spec=default_claim_spec(claim.spec))


def _default_request(request: DeviceRequest) -> DeviceRequest:
    exactly, alternatives = request.exactly, request.first_available
    if exactly is not None:
        mode, count = _default_count(exactly.allocation_mode, exactly.count)
        tolerations = _default_tolerations(exactly.tolerations)
        exactly = msgspec.structs.replace(exactly, allocation_mode=mode, count=count, tolerations=tolerations)
    filled = []
    for alternative in alternatives:
        mode, count = _default_count(alternative.allocation_mode, alternative.count)
        tolerations = _default_tolerations(alternative.tolerations)
        filled.append(msgspec.structs.replace(alternative, allocation_mode=mode, count=count, tolerations=tolerations))
    return msgspec.structs.replace(request, exactly=exactly, first_available=tuple(filled))


def _default_count(mode: str, count: int) -> tuple[str, int]:
    mode = mode or EXACT_COUNT
    return mode, 1 if mode == EXACT_COUNT and count == 0 else count


def _default_tolerations(tolerations: tuple[DeviceToleration, ...]) -> tuple[DeviceToleration, ...]:
    return tuple(
        toleration if toleration.operator else msgspec.structs.replace(toleration, operator="Equal")
        for toleration in tolerations
    )
