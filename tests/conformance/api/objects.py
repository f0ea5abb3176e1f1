"""Objects that the conversations use: as small as the API server lets them be."""

from typing import Any

Object = dict[str, Any]
Value = Any  # decoded JSON

DRA = "/apis/resource.k8s.io/v1"
SLICES = f"{DRA}/resourceslices"
CLASSES = f"{DRA}/deviceclasses"


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Value) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": {"a": "1"} if data is None else data,
    }


def pod(name: str, **spec: Value) -> Object:
    """A pod that no scheduler takes and that gets no token, so that nobody but the test touches it."""
    quiet = {"schedulerName": "nobody", "automountServiceAccountToken": False}
    containers = [{"name": "main", "image": "example.test/main:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {**quiet, "containers": containers, **spec},
    }


def node(name: str, **metadata: Value) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}}


def resource_slice(name: str, *, driver: str = "dra.net", node: str = "node-1", **spec: Value) -> Object:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": [device("nic-0")], **spec},
    }


def device(name: str, **fields: Value) -> Object:
    return {"name": name, "attributes": {"numa": {"int": 0}}, **fields}


def device_class(name: str, *expressions: str) -> Object:
    spec = {"selectors": [{"cel": {"expression": e}} for e in expressions]} if expressions else {}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def request(name: str = "nic", **fields: Value) -> Object:
    return {"name": name, "exactly": {"deviceClassName": "nics.example.test", **fields}}


def claim(name: str, *requests: Object, **devices: Value) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": list(requests) or [request()], **devices}},
    }


def claim_template(name: str, *requests: Object) -> Object:
    spec = {"devices": {"requests": list(requests) or [request()]}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": spec},
    }


def allocation(*devices: str, node: str = "node-1") -> Object:
    results = [{"request": "nic", "driver": "dra.net", "pool": node, "device": d} for d in devices]
    only = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [only]}]}}


def device_status(device: str, *, condition: str = "", driver: str = "dra.net", **fields: Value) -> Object:
    said = {"driver": driver, "pool": "node-1", "device": device, **fields}
    if condition:
        ready = {"type": condition, "status": "True", "reason": "Made", "message": "", "lastTransitionTime": NOW}
        said["conditions"] = [ready]
    return said


def consumer(name: str) -> Object:
    """Of a kind that no controller knows: one of pods that do not exist would soon be taken away."""
    return {"apiGroup": "example.test", "resource": "things", "name": name, "uid": f"u-{name}"}


NOW = "2026-01-02T03:04:05Z"
