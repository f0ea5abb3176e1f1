"""Defaults of a pod's spec (pkg/apis/core/v1/defaults.go), and what admission adds to a new pod."""

from fishplate.sim.apiserver.values import Object

_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_MODE = 0o644
_EVICTION_S = 300
_AWAY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def default_pod_spec(spec: Object) -> None:
    for key, value in (
        ("restartPolicy", "Always"),
        ("dnsPolicy", "ClusterFirst"),
        ("schedulerName", "default-scheduler"),
        ("terminationGracePeriodSeconds", 30),
        ("enableServiceLinks", True),
    ):
        spec.setdefault(key, value)
    spec.setdefault("securityContext", {})
    if spec.get("serviceAccountName"):
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for group in ("initContainers", "containers"):
        for container in spec.get(group) or ():
            _default_container(container, host_network=bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def _default_container(container: Object, *, host_network: bool) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if container.get("image"):
        container.setdefault("imagePullPolicy", "Always" if _is_latest(container["image"]) else "IfNotPresent")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host_network:
            port.setdefault("hostPort", port["containerPort"])
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for name in ("readinessProbe", "livenessProbe", "startupProbe"):
        if container.get(name):
            _default_probe(container[name])
    resources = container.get("resources") or {}
    for key, value in (resources.get("limits") or {}).items():
        resources.setdefault("requests", {}).setdefault(key, value)


def _is_latest(image: str) -> bool:
    if "@" in image:
        return False
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag in ("", "latest")


def _default_probe(probe: Object) -> None:
    for key, value in _PROBE.items():
        probe.setdefault(key, value)
    if probe.get("httpGet"):
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")
    if probe.get("grpc"):
        probe["grpc"].setdefault("service", "")


def _default_volume(volume: Object) -> None:
    for name in ("configMap", "secret", "projected", "downwardAPI"):
        if volume.get(name) is not None:
            volume[name].setdefault("defaultMode", _MODE)
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}


def admit_pod(value: Object) -> None:
    """What the default admission plugins add: account, priority, tolerations of a node that goes away."""
    spec = value["spec"]
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerations = spec.setdefault("tolerations", [])
    for key in _AWAY:
        if not any(_tolerates(one, key) for one in tolerations):
            away = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _EVICTION_S}
            tolerations.append(away)


def _tolerates(toleration: Object, key: str) -> bool:
    same = toleration.get("key", "") in ("", key)
    return same and toleration.get("effect", "") in ("", "NoExecute")


def quality_of_service(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort, by the resources of all containers."""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    named = [c.get("resources") or {} for c in containers]
    if not any(r.get("requests") or r.get("limits") for r in named):
        return "BestEffort"
    for resources in named:
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        if any(key not in limits or requests.get(key) != limits[key] for key in ("cpu", "memory")):
            return "Burstable"
    return "Guaranteed"
