"""What the API server fills in: the defaults of resource.k8s.io/v1 and core/v1, and fields of gates that are off.

Works on a conformed object of the caller's own, and changes it in place.
"""

import base64
from collections.abc import Callable

from fishplate.sim.apiserver.kinds import Kind
from fishplate.sim.apiserver.pod_defaults import default_pod_spec
from fishplate.sim.apiserver.values import Object

# Alpha in 1.36, so off: the API server drops them in silence.
_OFF_DEVICE = ("nodeAllocatableResourceMappings",)
_OFF_ATTRIBUTE = ("ints", "bools", "strings", "versions")


def apply_defaults(kind: Kind, value: Object, now: str) -> None:
    found = _DEFAULTS.get(kind.kind)
    if found is not None:
        found(value, now)


def _default_request(request: Object) -> None:
    for form in filter(None, [request.get("exactly"), *(request.get("firstAvailable") or ())]):
        form.setdefault("allocationMode", "ExactCount")
        if form["allocationMode"] == "ExactCount":
            form.setdefault("count", 1)
        for toleration in form.get("tolerations") or ():
            toleration.setdefault("operator", "Equal")


def default_claim_spec(spec: Object) -> None:
    for request in spec["devices"].get("requests") or ():
        _default_request(request)


def _default_claim(value: Object, now: str) -> None:
    default_claim_spec(value["spec"])
    allocation = (value.get("status") or {}).get("allocation") or {}
    for result in (allocation.get("devices") or {}).get("results") or ():
        for toleration in result.get("tolerations") or ():
            toleration.setdefault("operator", "Equal")


def _default_template(value: Object, now: str) -> None:
    default_claim_spec(value["spec"]["spec"])


def _default_slice(value: Object, now: str) -> None:
    for device in value["spec"].get("devices") or ():
        for name in _OFF_DEVICE:
            device.pop(name, None)
        for attribute in (device.get("attributes") or {}).values():
            for name in _OFF_ATTRIBUTE:
                attribute.pop(name, None)
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", now)


def _default_pod(value: Object, now: str) -> None:
    default_pod_spec(value["spec"])
    value["status"].setdefault("phase", "Pending")


def _default_namespace(value: Object, now: str) -> None:
    name = value["metadata"].get("name")
    if name:
        value["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
    value["status"].setdefault("phase", "Active")


def _default_node(value: Object, now: str) -> None:
    status = value["status"]
    if status.get("capacity"):
        status["allocatable"] = {**status["capacity"], **(status.get("allocatable") or {})}


def _default_secret(value: Object, now: str) -> None:
    value.setdefault("type", "Opaque")
    for key, text in (value.pop("stringData", None) or {}).items():
        value.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()


def _default_event(value: Object, now: str) -> None:
    if value.get("type") is None:
        value.pop("type", None)


def _default_daemon_set(value: Object, now: str) -> None:
    spec = value["spec"]
    default_pod_spec(spec["template"]["spec"])
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)


def _default_job(value: Object, now: str) -> None:
    spec = value["spec"]
    default_pod_spec(spec["template"]["spec"])
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    for key, default in (("parallelism", 1), ("backoffLimit", 6), ("suspend", False)):
        spec.setdefault(key, default)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")


_DEFAULTS: dict[str, Callable[[Object, str], None]] = {
    "ResourceClaim": _default_claim,
    "ResourceClaimTemplate": _default_template,
    "ResourceSlice": _default_slice,
    "Pod": _default_pod,
    "Namespace": _default_namespace,
    "Node": _default_node,
    "Secret": _default_secret,
    "Event": _default_event,
    "DaemonSet": _default_daemon_set,
    "Job": _default_job,
}
