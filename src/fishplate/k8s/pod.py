"""The parts of a Pod that have to do with claims and places. Everything else in it is somebody else's business."""

from typing import Literal

import msgspec

from fishplate.k8s.resource import ObjectMeta


class PodResourceClaim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Either an existing claim or a template to make one from."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class ContainerClaim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    request: str = ""


class ContainerResources(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    claims: tuple[ContainerClaim, ...] = ()


class Container(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    resources: ContainerResources = ContainerResources()


class PodSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    resource_claims: tuple[PodResourceClaim, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""
    node_selector: dict[str, str] = {}


class PodClaimStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    name: str
    resource_claim_name: str | None = None


class PodCondition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""


class ExtendedResourceRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    container_name: str
    resource_name: str = ""
    request_name: str = ""


class ExtendedResourceClaimStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The claim that the scheduler wrote for a pod which asks for devices by an extended resource's name."""

    resource_claim_name: str
    request_mappings: tuple[ExtendedResourceRequest, ...] = ()


class PodStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    phase: str = ""
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()
    conditions: tuple[PodCondition, ...] = ()
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None


class Pod(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: Literal["v1"] = "v1"
    kind: Literal["Pod"] = "Pod"
    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
