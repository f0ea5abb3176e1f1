"""The parts of a Pod that have to do with claims, places and devices. The rest of it is somebody else's business."""

from typing import Literal

import msgspec

from fishplate.k8s.resource import ObjectMeta, QuantityText


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
    limits: dict[str, QuantityText] = {}
    requests: dict[str, QuantityText] = {}


class Capabilities(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    add: tuple[str, ...] = ()


class SecurityContext(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Of a container; a pod's own has no capabilities, and is never privileged."""

    capabilities: Capabilities = Capabilities()
    privileged: bool = False
    run_as_user: int | None = None
    run_as_non_root: bool = False


class VolumeMount(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    name: str
    mount_path: str = ""


class EnvVar(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    value: str = ""


class Container(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    name: str
    resources: ContainerResources = ContainerResources()
    security_context: SecurityContext = SecurityContext()
    volume_mounts: tuple[VolumeMount, ...] = ()
    env: tuple[EnvVar, ...] = ()


class HostPath(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    path: str = ""


class EmptyDir(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    medium: str = ""


class Volume(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    name: str
    host_path: HostPath | None = None
    empty_dir: EmptyDir | None = None


class PodSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    resource_claims: tuple[PodResourceClaim, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""
    node_selector: dict[str, str] = {}
    host_network: bool = False
    security_context: SecurityContext = SecurityContext()
    volumes: tuple[Volume, ...] = ()


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
