"""Tables: what `kubectl get` shows, computed by the server (pkg/printers/internalversion)."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from fishplate.sim.apiserver.kinds import Kind
from fishplate.sim.apiserver.store import Stored
from fishplate.sim.apiserver.values import Object, Value

Cells = list[Any]
_NONE = "<none>"
_UNKNOWN = "<unknown>"
_ROLE = "node-role.kubernetes.io/"


def _duration(seconds: float) -> str:
    """As apimachinery's HumanDuration: two units at most, the second while it still matters."""
    s = int(seconds)
    if s < 0:
        return "0s" if s >= -1 else "<invalid>"
    minutes, hours, days = s // 60, s // 3600, s // 86400
    if s < 120:
        return f"{s}s"
    if minutes < 10:
        return f"{minutes}m{s % 60}s" if s % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 365 * 2:
        return f"{days}d"
    return f"{days // 365}y{days % 365}d" if days < 365 * 8 else f"{days // 365}y"


def age_of(stamp: str | None, now: datetime) -> str:
    if not stamp:
        return _UNKNOWN
    return _duration((now - datetime.fromisoformat(stamp)).total_seconds())


def _age(value: Object, now: datetime) -> str:
    return age_of(value["metadata"].get("creationTimestamp"), now)


def _plain(value: Object, now: datetime) -> Cells:
    return [_age(value, now)]


def _claim(value: Object, now: datetime) -> Cells:
    status = value.get("status") or {}
    states = ["deleted"] if value["metadata"].get("deletionTimestamp") else []
    if status.get("allocation"):
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    return [",".join(states or ["pending"]), _age(value, now)]


def _slice(value: Object, now: datetime) -> Cells:
    spec = value["spec"]
    node = spec.get("nodeName") or ("<all>" if spec.get("allNodes") else "<unset>")
    return [node, spec["driver"], spec["pool"]["name"], _age(value, now)]


def _pod_reason(value: Object) -> str:
    status = value.get("status") or {}
    reason = str(status.get("reason") or status.get("phase") or "")
    containers = status.get("containerStatuses") or []
    for container in reversed(containers):
        state = container.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif state.get("terminated") is not None:
            reason = ended.get("reason") or f"ExitCode:{ended.get('exitCode', 0)}"
    if reason == "Completed" and any((c.get("state") or {}).get("running") for c in containers):
        reason = "Running" if all(c.get("ready") for c in containers) else "NotReady"
    if value["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return reason


def _pod(value: Object, now: datetime) -> Cells:
    spec, status = value["spec"], value.get("status") or {}
    containers = status.get("containerStatuses") or []
    running = [c for c in containers if c.get("ready") and (c.get("state") or {}).get("running") is not None]
    gates = spec.get("readinessGates") or []
    good = {c["type"] for c in status.get("conditions") or () if c.get("status") == "True"}
    met = sum(gate["conditionType"] in good for gate in gates)
    return [
        f"{len(running)}/{len(spec['containers'])}",
        _pod_reason(value),
        str(sum(c.get("restartCount", 0) for c in containers)),
        _age(value, now),
        (status.get("podIPs") or [{}])[0].get("ip") or _NONE,
        spec.get("nodeName") or _NONE,
        status.get("nominatedNodeName") or _NONE,
        f"{met}/{len(gates)}" if gates else _NONE,
    ]


def _node(value: Object, now: datetime) -> Cells:
    spec, status = value["spec"], value.get("status") or {}
    ready = next((c for c in status.get("conditions") or () if c["type"] == "Ready"), None)
    states = [("Ready" if ready["status"] == "True" else "NotReady") if ready else "Unknown"]
    if spec.get("unschedulable"):
        states.append("SchedulingDisabled")
    labels = value["metadata"].get("labels") or {}
    roles = sorted(key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE))
    info = status.get("nodeInfo") or {}
    addresses: dict[str, str] = {}
    for one in status.get("addresses") or ():
        addresses.setdefault(one["type"], one["address"])
    return [
        ",".join(states),
        ",".join(roles) or _NONE,
        _age(value, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", _NONE),
        addresses.get("ExternalIP", _NONE),
        info.get("osImage") or _UNKNOWN,
        info.get("kernelVersion") or _UNKNOWN,
        info.get("containerRuntimeVersion") or _UNKNOWN,
    ]


def _namespace(value: Object, now: datetime) -> Cells:
    return [value["status"].get("phase", ""), _age(value, now)]


def _config_map(value: Object, now: datetime) -> Cells:
    return [len(value.get("data") or ()) + len(value.get("binaryData") or ()), _age(value, now)]


def _secret(value: Object, now: datetime) -> Cells:
    return [value.get("type", ""), len(value.get("data") or ()), _age(value, now)]


def _lease(value: Object, now: datetime) -> Cells:
    return [value["spec"].get("holderIdentity", ""), _age(value, now)]


def _event(value: Object, now: datetime) -> Cells:
    about, source = value["involvedObject"], value.get("source") or {}
    first = value.get("firstTimestamp") or value.get("eventTime")
    last = value.get("lastTimestamp") or first
    where = source.get("component") or value.get("reportingComponent", "")
    return [
        age_of(last, now),
        value.get("type", ""),
        value.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        about.get("fieldPath", ""),
        f"{where}, {source['host']}" if source.get("host") else where,
        value.get("message", "").strip(),
        age_of(first, now),
        str(value.get("count", 1)),
        value["metadata"]["name"],
    ]


def _template_columns(value: Object) -> Cells:
    containers = value["spec"]["template"]["spec"].get("containers") or []
    labels = (value["spec"].get("selector") or {}).get("matchLabels") or {}
    return [
        ",".join(c["name"] for c in containers),
        ",".join(c.get("image", "") for c in containers),
        ",".join(f"{key}={labels[key]}" for key in sorted(labels)) or _NONE,
    ]


def _job(value: Object, now: datetime) -> Cells:
    spec, status = value["spec"], value.get("status") or {}
    done = {c["type"] for c in status.get("conditions") or () if c.get("status") == "True"}
    state = next((s for s in ("Complete", "Failed", "Suspended") if s in done), "Running")
    wanted = spec.get("completions")
    total = str(wanted) if wanted is not None else f"1 of {spec.get('parallelism', 1)}"
    took = ""
    if status.get("startTime"):
        end = datetime.fromisoformat(status["completionTime"]) if status.get("completionTime") else now
        took = age_of(status["startTime"], end)
    head = [state, f"{status.get('succeeded', 0)}/{total}", took, _age(value, now)]
    return head + _template_columns(value)


def _daemon_set(value: Object, now: datetime) -> Cells:
    status = value.get("status") or {}
    names = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    selector = value["spec"]["template"]["spec"].get("nodeSelector") or {}
    shown = ",".join(f"{key}={selector[key]}" for key in sorted(selector)) or _NONE
    counts = [status.get(name, 0) for name in (*names, "numberAvailable")]
    return [*counts, shown, _age(value, now), *_template_columns(value)]


# Columns beside Name; `+` marks those that only `-o wide` shows, `#` numbers.
_COLUMNS: dict[str, tuple[str, Callable[[Object, datetime], Cells]]] = {
    "ResourceClaim": ("State Age", _claim),
    "ResourceSlice": ("Node Driver Pool Age", _slice),
    "Pod": ("Ready Status Restarts Age +IP +Node +Nominated_Node +Readiness_Gates", _pod),
    "Node": (
        "Status Roles Age Version +Internal-IP +External-IP +OS-Image +Kernel-Version +Container-Runtime",
        _node,
    ),
    "Namespace": ("Status Age", _namespace),
    "ConfigMap": ("Data Age", _config_map),
    "Secret": ("Type Data Age", _secret),
    "Lease": ("Holder Age", _lease),
    "Event": ("Last_Seen Type Reason Object +Subobject +Source Message +First_Seen +Count +@Name", _event),
    "Job": ("Status Completions Duration Age +Containers +Images +Selector", _job),
    "DaemonSet": (
        "#Desired #Current #Ready #Up-to-date #Available Node_Selector Age +Containers +Images +Selector",
        _daemon_set,
    ),
}


def _column(word: str) -> Object:
    bare = word.lstrip("+#@")
    return {
        "name": bare.replace("_", " "),
        "type": "integer" if "#" in word else "string",
        "format": "name" if "@" in word else "",
        "description": "",
        "priority": 1 if "+" in word else 0,
    }


def make_table(kind: Kind, items: list[Stored], metadata: Object, include: str, now: datetime) -> Object:
    """`include` is what each row carries of its object: Metadata, Object or None."""
    words, cells = _COLUMNS.get(kind.kind, ("Age", _plain))
    named = "@Name" in words
    columns = [_column(word) for word in words.split()]
    rows = []
    for stored in items:
        row = cells(stored.object, now)
        carried: Value = None
        if include == "Object":
            carried = {"kind": kind.kind, "apiVersion": kind.api_version, **stored.object}
        elif include != "None":
            carried = partial_metadata(stored)
        rows.append({"cells": row if named else [stored.name, *row], "object": carried})
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns if named else [_column("@Name"), *columns],
        "rows": rows,
    }


def partial_metadata(stored: Stored) -> Object:
    head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return head | {"metadata": stored.object["metadata"]}
