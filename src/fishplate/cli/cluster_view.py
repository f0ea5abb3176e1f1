"""The live cluster as the commands need it: nodes, slices, classes, claims, and one pod with what it asks for."""

import msgspec

from fishplate.cli.explain import Subject
from fishplate.cli.fleets import Source, nodes_from
from fishplate.dra.world import World
from fishplate.errors import InputError, OutsideError
from fishplate.k8s.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate, default_claim
from fishplate.k8s.client import ClusterReader, NotFoundError, connect
from fishplate.k8s.kueue import Topology
from fishplate.k8s.node import Node as KubernetesNode
from fishplate.k8s.pod import Pod
from fishplate.k8s.resource import ResourceSlice

_DRA = "/apis/resource.k8s.io/v1"


def read_cluster(context: str | None) -> tuple[Source, World]:
    """All that new pods could use: cordoned nodes are left out."""
    return _read(connect(context), cordoned=False)


def read_surroundings(context: str | None) -> Source:
    """The same as one value, with Kueue's topologies where Kueue is installed."""
    cluster = connect(context)
    source, world = _read(cluster, cordoned=False)
    held = tuple(one for one in world.claims if one.status.allocation is not None)
    return source._replace(classes=world.classes, claims=held, topologies=_topologies(cluster))


def _topologies(cluster: ClusterReader) -> tuple[Topology, ...]:
    for version in ("v1beta1", "v1beta2", "v1alpha1"):
        try:
            return tuple(cluster.list(f"/apis/kueue.x-k8s.io/{version}/topologies", Topology))
        except (NotFoundError, OutsideError):  # not installed, or not ours to read: then it is not used
            continue
    return ()


def _read(cluster: ClusterReader, *, cordoned: bool) -> tuple[Source, World]:
    nodes = nodes_from(cluster.list("/api/v1/nodes", KubernetesNode), cordoned=cordoned)
    world = World(
        slices=tuple(cluster.list(f"{_DRA}/resourceslices", ResourceSlice)),
        classes=tuple(cluster.list(f"{_DRA}/deviceclasses", DeviceClass)),
        claims=tuple(cluster.list(f"{_DRA}/resourceclaims", ResourceClaim)),
    )
    return Source(nodes, world.slices), world


def read_pod_view(name: str, namespace: str, context: str | None) -> tuple[Source, World, list[Subject], list[str]]:
    """A pod of the live cluster, pending or not, with the claims it still waits for."""
    cluster = connect(context)
    try:
        pod = cluster.get(f"/api/v1/namespaces/{namespace}/pods/{name}", Pod)
    except NotFoundError as error:
        raise InputError(error.what, remedy=f"kubectl get pods -n {namespace} lists them") from error
    source, world = _read(cluster, cordoned=bool(pod.spec.node_name))
    claims, notes = _claims_of(cluster, pod, namespace)
    waiting = [claim for claim in claims if claim.status.allocation is None]
    if pod.spec.node_name:
        notes.append(f"the pod runs on {pod.spec.node_name}; its claims are allocated")
    # What it holds already does not stand in its own way, and what is not allocated yet holds nothing.
    names = {(claim.metadata.namespace, claim.metadata.name) for claim in claims} if pod.spec.node_name else set()
    others = tuple(one for one in world.claims if (one.metadata.namespace, one.metadata.name) not in names)
    subject = claims if pod.spec.node_name else waiting
    stripped = tuple(default_claim(ResourceClaim(metadata=claim.metadata, spec=claim.spec)) for claim in subject)
    nodes = tuple(node for node in source.nodes if not pod.spec.node_name or node.name == pod.spec.node_name)
    world = msgspec.structs.replace(world, claims=others)
    wanted = {} if pod.spec.node_name else pod.spec.node_selector
    return Source(nodes, source.slices), world, [Subject(f"pod {namespace}/{name}", stripped, wanted)], notes


def _claims_of(cluster: ClusterReader, pod: Pod, namespace: str) -> tuple[list[ResourceClaim], list[str]]:
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    claims, notes = [], []
    for one in pod.spec.resource_claims:
        name = one.resource_claim_name or made.get(one.name)
        if name:
            try:
                claims.append(cluster.get(f"{_DRA}/namespaces/{namespace}/resourceclaims/{name}", ResourceClaim))
                continue
            except NotFoundError:
                notes.append(f"claim {name} does not exist; the scheduler waits for it")
        template = one.resource_claim_template_name
        if template:
            path = f"{_DRA}/namespaces/{namespace}/resourceclaimtemplates/{template}"
            try:
                written = cluster.get(path, ResourceClaimTemplate)
            except NotFoundError:
                notes.append(f"claim template {template} does not exist; no claim can be made for the pod")
                continue
            notes.append(f"no claim has been made of template {template} yet; this is what it would give")
            claims.append(written.as_claim(f"{pod.metadata.name}-{one.name}"))
    return claims, notes
