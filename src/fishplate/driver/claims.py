"""The claim as the API server has it now, and the pods it is reserved for.

The kubelet passes a namespace, a name and a UID. Whether the claim is still that one, is allocated, and what was
allocated, is for the driver to find out: this is the last look before devices are handed over.
"""

from typing import Literal

import msgspec

from fishplate.driver.records import Consumer
from fishplate.errors import InputError
from fishplate.k8s.api import Api
from fishplate.k8s.claim import AllocationResult, DeviceAllocationConfiguration, DeviceRequestAllocationResult
from fishplate.k8s.client import NotFoundError
from fishplate.k8s.pod import Pod
from fishplate.k8s.resource import LiveMeta
from fishplate.wire.kubelet import ClaimRef


class Reservation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    resource: str
    name: str
    uid: str
    api_group: str = ""


class ClaimObjectStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    allocation: AllocationResult | None = None
    reserved_for: tuple[Reservation, ...] = ()


class ClaimObject(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A ResourceClaim, without its spec: what was asked for is the scheduler's business."""

    api_version: Literal["resource.k8s.io/v1"] = "resource.k8s.io/v1"
    kind: Literal["ResourceClaim"] = "ResourceClaim"
    metadata: LiveMeta
    status: ClaimObjectStatus = ClaimObjectStatus()


class AllocatedClaim(msgspec.Struct, frozen=True, kw_only=True):
    ref: ClaimRef
    allocation: AllocationResult
    reserved_for: tuple[Reservation, ...] = ()
    shared: bool = False  # no pod owns it

    @property
    def configs(self) -> tuple[DeviceAllocationConfiguration, ...]:
        return self.allocation.devices.config

    def results(self, driver: str) -> tuple[DeviceRequestAllocationResult, ...]:
        """Only ours: a claim may hold GPUs of another driver beside our NICs."""
        return tuple(result for result in self.allocation.devices.results if result.driver == driver)


class ClaimReader:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def read(self, ref: ClaimRef) -> AllocatedClaim:
        try:
            claim = await self._api.get(claim_path(ref.namespace, ref.name), ClaimObject)
        except NotFoundError as error:
            raise InputError("it does not exist (any more)") from error
        if claim.metadata.uid != ref.uid:
            raise InputError(f"it got replaced: the kubelet asks for UID {ref.uid}, there is {claim.metadata.uid}")
        if claim.status.allocation is None:
            raise InputError("it is not allocated")
        for reservation in claim.status.reserved_for:
            if reservation.resource != "pods" or reservation.api_group:
                raise InputError(f"it is reserved for {reservation.resource} {reservation.name}, which is no pod")
        owned = any(owner.kind == "Pod" for owner in claim.metadata.owner_references)
        return AllocatedClaim(
            ref=ref, allocation=claim.status.allocation, reserved_for=claim.status.reserved_for, shared=not owned
        )

    async def is_gone(self, ref: ClaimRef, *, driver: str, pool: str) -> bool:
        """True where the API server says that the claim is not, or holds nothing here; no answer is not an answer."""
        try:
            claim = await self._api.get(claim_path(ref.namespace, ref.name), ClaimObject)
        except NotFoundError:
            return True
        allocation = claim.status.allocation
        if claim.metadata.uid != ref.uid or allocation is None:
            return True
        return not any(result.driver == driver and result.pool == pool for result in allocation.devices.results)

    async def consumers(self, claim: AllocatedClaim) -> tuple[Consumer, ...]:
        found = []
        for reservation in claim.reserved_for:
            pod = await self.pod(claim.ref.namespace, reservation.name)
            if pod and pod.metadata.uid == reservation.uid:
                found.append(consumer_of(pod, claim.ref.name))
        return tuple(found)

    async def pod(self, namespace: str, name: str) -> Pod | None:
        try:
            return await self._api.get(f"/api/v1/namespaces/{namespace}/pods/{name}", Pod)
        except NotFoundError:
            return None


def claim_path(namespace: str, name: str) -> str:
    return f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}"


def claim_names(pod: Pod) -> dict[str, str]:
    """Names in the pod → names of the claims."""
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    named = {entry.name: entry.resource_claim_name or made.get(entry.name) for entry in pod.spec.resource_claims}
    return {name: claim for name, claim in named.items() if claim}


def consumer_of(pod: Pod, claim_name: str) -> Consumer:
    """Which containers of the pod name this claim, and which of its requests. No request named means all of them."""
    entries = {name for name, claim in claim_names(pod).items() if claim == claim_name}
    containers: dict[str, tuple[str, ...]] = {}
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        requests = [claim.request for claim in container.resources.claims if claim.name in entries]
        if requests:
            containers[container.name] = () if "" in requests else tuple(sorted(set(requests)))
    extended = pod.status.extended_resource_claim_status
    if extended and extended.resource_claim_name == claim_name:
        for mapping in extended.request_mappings:
            before = containers.get(mapping.container_name, ())
            containers[mapping.container_name] = tuple(sorted({*before, mapping.request_name}))
    return Consumer(
        uid=pod.metadata.uid, namespace=pod.metadata.namespace, name=pod.metadata.name, containers=containers
    )
