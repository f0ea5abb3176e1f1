"""The kinds served, in the order of discovery. Adding one is a line here and its type in data/types.txt."""

from functools import cached_property

import msgspec

from fishplate.sim.apiserver.status import KindName
from fishplate.sim.apiserver.types import Shape, load_types

# Kubernetes' release whose behaviour this is.
VERSION = "v1.36.4"
PREFERRED = ("", "apps", "batch", "coordination.k8s.io", "resource.k8s.io")


class Kind(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    kind: str
    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    selectable: tuple[str, ...] = ()  # fields beside metadata.name and metadata.namespace
    answers_status: bool = False  # a deletion that is done is answered by a Status, not by the object
    counts_generations: bool = False
    keeps_status: bool = False  # a status given on create is kept
    conversion_told: bool = False  # its complaint about a field selector names the kind

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def name(self) -> KindName:
        return KindName(kind=self.kind, plural=self.plural, group=self.group)

    @cached_property
    def shape(self) -> Shape:
        package = (self.group or "core").partition(".")[0]
        return load_types()[f"{package}.{self.version}.{self.kind}"]

    @cached_property
    def head(self) -> bytes:
        """What stands before the other fields of an object that is sent alone."""
        return b'{"kind":"%s","apiVersion":"%s",' % (self.kind.encode(), self.api_version.encode())

    @cached_property
    def root(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


_PODS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
)
_EVENTS = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)

KINDS: tuple[Kind, ...] = (
    Kind(kind="ConfigMap", plural="configmaps", short=("cm",), answers_status=True),
    Kind(kind="Event", plural="events", short=("ev",), selectable=_EVENTS, answers_status=True),
    Kind(
        kind="Namespace",
        plural="namespaces",
        namespaced=False,
        short=("ns",),
        subresources=("finalize", "status"),
        selectable=("status.phase", "name"),
    ),
    Kind(
        kind="Node",
        plural="nodes",
        namespaced=False,
        short=("no",),
        subresources=("status",),
        selectable=("spec.unschedulable",),
        answers_status=True,
        keeps_status=True,
    ),
    Kind(
        kind="Pod",
        plural="pods",
        short=("po",),
        categories=("all",),
        subresources=("binding", "status"),
        selectable=_PODS,
        counts_generations=True,
    ),
    Kind(kind="Secret", plural="secrets", selectable=("type",), answers_status=True),
    Kind(kind="ServiceAccount", plural="serviceaccounts", short=("sa",)),
    Kind(
        kind="DaemonSet",
        plural="daemonsets",
        group="apps",
        short=("ds",),
        categories=("all",),
        subresources=("status",),
        answers_status=True,
        counts_generations=True,
    ),
    Kind(
        kind="Job",
        plural="jobs",
        group="batch",
        categories=("all",),
        subresources=("status",),
        selectable=("status.successful",),
        answers_status=True,
        counts_generations=True,
    ),
    Kind(kind="Lease", plural="leases", group="coordination.k8s.io", answers_status=True),
    Kind(
        kind="DeviceClass", plural="deviceclasses", group="resource.k8s.io", namespaced=False, counts_generations=True
    ),
    Kind(kind="ResourceClaim", plural="resourceclaims", group="resource.k8s.io", subresources=("status",)),
    Kind(kind="ResourceClaimTemplate", plural="resourceclaimtemplates", group="resource.k8s.io"),
    Kind(
        kind="ResourceSlice",
        plural="resourceslices",
        group="resource.k8s.io",
        namespaced=False,
        selectable=("spec.driver", "spec.nodeName"),
        counts_generations=True,
        conversion_told=True,
    ),
)

BY_PATH: dict[tuple[str, str, str], Kind] = {(k.group, k.version, k.plural): k for k in KINDS}
BY_KIND: dict[tuple[str, str], Kind] = {(k.api_version, k.kind): k for k in KINDS}
GROUPS: dict[tuple[str, str], tuple[Kind, ...]] = {
    (group, "v1"): tuple(k for k in KINDS if k.group == group) for group in PREFERRED
}
NAMESPACE = BY_PATH["", "v1", "namespaces"]
POD = BY_PATH["", "v1", "pods"]
SERVICE_ACCOUNT = BY_PATH["", "v1", "serviceaccounts"]
CLAIM = BY_PATH["resource.k8s.io", "v1", "resourceclaims"]
