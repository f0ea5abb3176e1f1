"""What is served: groups, versions, kinds and their verbs, in the old form and the aggregated one."""

from fishplate.sim.apiserver.kinds import GROUPS, VERSION, Kind
from fishplate.sim.apiserver.values import Object

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SUBRESOURCES = {"status": ["get", "patch", "update"], "binding": ["create"], "finalize": ["update"]}


def _verbs(kind: Kind) -> list[str]:
    return [verb for verb in _VERBS if not (kind.kind == "Namespace" and verb == "deletecollection")]


def _resource(kind: Kind) -> Object:
    said: Object = {
        "name": kind.plural,
        "singularName": kind.kind.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _verbs(kind),
    }
    if kind.short:
        said["shortNames"] = list(kind.short)
    if kind.categories:
        said["categories"] = list(kind.categories)
    return said


def _subresource(kind: Kind, name: str) -> Object:
    said = "Binding" if name == "binding" else kind.kind
    full = f"{kind.plural}/{name}"
    head = {"name": full, "singularName": "", "namespaced": kind.namespaced, "kind": said}
    return head | {"verbs": _SUBRESOURCES[name]}


def resource_list(group: str, version: str) -> Object | None:
    """APIResourceList of one group and version."""
    kinds = GROUPS.get((group, version))
    if kinds is None:
        return None
    resources = []
    for kind in kinds:
        resources.append(_resource(kind))
        resources += [_subresource(kind, name) for name in kind.subresources]
    name = f"{group}/{version}" if group else version
    head: Object = {"kind": "APIResourceList", "groupVersion": name, "resources": resources}
    return head | ({"apiVersion": "v1"} if group else {})


def _group(group: str) -> Object:
    version = {"groupVersion": f"{group}/v1", "version": "v1"}
    return {"name": group, "versions": [version], "preferredVersion": version}


def group_info(group: str) -> Object | None:
    if not group or (group, "v1") not in GROUPS:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group)}


def group_list() -> Object:
    groups = [_group(group) for group, _ in GROUPS if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def core_versions(address: str) -> Object:
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def aggregated(*, core: bool) -> Object:
    """APIGroupDiscoveryList: everything in one answer."""
    items = []
    for (group, version), kinds in GROUPS.items():
        if (group == "") == core:
            resources = [_aggregate(kind) for kind in kinds]
            one = {"version": version, "resources": resources, "freshness": "Current"}
            items.append({"metadata": {"name": group} if group else {}, "versions": [one]})
    head = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
    return head | {"metadata": {}, "items": items}


def _aggregate(kind: Kind) -> Object:
    said: Object = {
        "resource": kind.plural,
        "responseKind": {"group": "", "version": "", "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.kind.lower(),
        "verbs": _verbs(kind),
    }
    if kind.short:
        said["shortNames"] = list(kind.short)
    if kind.categories:
        said["categories"] = list(kind.categories)
    if kind.subresources:
        said["subresources"] = [_aggregate_subresource(kind, name) for name in kind.subresources]
    return said


def _aggregate_subresource(kind: Kind, name: str) -> Object:
    response = {"group": "", "version": "", "kind": "Binding" if name == "binding" else kind.kind}
    return {"subresource": name, "responseKind": response, "verbs": _SUBRESOURCES[name]}


def version_info() -> Object:
    major, minor = VERSION.removeprefix("v").split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "none",
        "platform": "fishplate/sim",
    }
