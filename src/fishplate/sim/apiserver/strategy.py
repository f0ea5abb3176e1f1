"""What is particular to a kind when it is written: what is kept, reset, counted, checked."""

from collections.abc import Iterator

from fishplate.sim.apiserver import causes
from fishplate.sim.apiserver.claim_validation import (
    check_claim,
    check_claim_status,
    check_class,
    check_spec_change,
    check_template,
)
from fishplate.sim.apiserver.core_validation import (
    check_data,
    check_data_change,
    check_event,
    check_pod,
    check_pod_change,
)
from fishplate.sim.apiserver.kinds import NAMESPACE, Kind
from fishplate.sim.apiserver.metadata_validation import check_metadata, check_metadata_change
from fishplate.sim.apiserver.pod_defaults import admit_pod, quality_of_service
from fishplate.sim.apiserver.slice_validation import check_slice
from fishplate.sim.apiserver.status import Cause, invalid
from fishplate.sim.apiserver.store import Store
from fishplate.sim.apiserver.values import Object

_ADMIN_LABEL = "resource.kubernetes.io/admin-access"
# What a write keeps of the live object's metadata, whatever it says.
_FIXED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink")


def prepare_create(kind: Kind, value: Object) -> None:
    """Admission and the strategy's own changes to a new object."""
    if "status" in kind.subresources and not kind.keeps_status and kind.kind not in ("Pod", "Namespace"):
        value["status"] = {}
    match kind.kind:
        case "Pod":
            admit_pod(value)
            value["status"] = {"phase": "Pending", "qosClass": quality_of_service(value["spec"])}
        case "Namespace":
            value["spec"]["finalizers"] = ["kubernetes"]
            value["status"] = {"phase": "Active"}


def prepare_update(kind: Kind, new: Object, old: Object, subresource: str) -> None:
    """Keep what this door does not change."""
    meta, before = new["metadata"], old["metadata"]
    for name in _FIXED:
        if name in before:
            meta[name] = before[name]
        else:
            meta.pop(name, None)
    meta["name"] = before["name"]
    if kind.namespaced:
        meta["namespace"] = before["namespace"]
    if subresource == "status":
        _keep_all_but_status(kind, new, old)
    elif "status" in kind.subresources:
        new["status"] = old.get("status", {})
    if kind.kind == "Namespace" and subresource != "finalize":
        new["spec"] = old["spec"]
    if kind.counts_generations and subresource != "status" and new.get("spec") != old.get("spec"):
        meta["generation"] = before.get("generation", 0) + 1


def _keep_all_but_status(kind: Kind, new: Object, old: Object) -> None:
    if "spec" in old:
        new["spec"] = old["spec"]
    if kind.kind == "ResourceClaim":
        managed = new["metadata"].get("managedFields")
        new["metadata"] = {key: one for key, one in old["metadata"].items() if key != "managedFields"}
        if managed:
            new["metadata"]["managedFields"] = managed
    elif kind.kind == "Pod":
        for name in ("ownerReferences", "finalizers"):
            new["metadata"].pop(name, None)
            if name in old["metadata"]:
                new["metadata"][name] = old["metadata"][name]
        new["status"].setdefault("qosClass", old["status"].get("qosClass", "BestEffort"))


def validate_create(kind: Kind, value: Object, store: Store) -> None:
    found = [*check_metadata(kind, value["metadata"]), *_check_new(kind, value), *_check_admin(kind, value, store)]
    _refuse(kind, value, found)


def validate_update(kind: Kind, new: Object, old: Object, subresource: str, store: Store) -> None:
    found = [*check_metadata_change(new["metadata"], old["metadata"])]
    if subresource == "status":
        found += check_claim_status(new, old) if kind.kind == "ResourceClaim" else ()
    elif subresource == "":
        found += check_metadata(kind, new["metadata"])
        found += _check_changed(kind, new, old)
    _refuse(kind, new, found)


def _refuse(kind: Kind, value: Object, found: list[Cause]) -> None:
    if found:
        raise invalid(kind.kind, kind.group, value["metadata"].get("name", ""), found)


def _check_new(kind: Kind, value: Object) -> Iterator[Cause]:
    match kind.kind:
        case "ResourceSlice":
            yield from check_slice(value)
        case "ResourceClaim":
            yield from check_claim(value)
        case "ResourceClaimTemplate":
            yield from check_template(value)
        case "DeviceClass":
            yield from check_class(value)
        case "Pod":
            yield from check_pod(value)
        case "ConfigMap" | "Secret":
            yield from check_data(value)
        case "Event":
            yield from check_event(value)


def _check_changed(kind: Kind, new: Object, old: Object) -> Iterator[Cause]:
    match kind.kind:
        case "ResourceSlice":
            yield from check_slice(new, old)
        case "ResourceClaim":
            yield from check_spec_change(new, old, "resource.v1.ResourceClaimSpec")
        case "ResourceClaimTemplate":
            yield from check_spec_change(new, old, "resource.v1.ResourceClaimTemplateSpec")
        case "DeviceClass":
            yield from check_class(new)
        case "Pod":
            yield from check_pod_change(new, old)
        case "ConfigMap" | "Secret":
            yield from check_data_change(new, old)
            yield from check_data(new)


def _check_admin(kind: Kind, value: Object, store: Store) -> Iterator[Cause]:
    """adminAccess is for namespaces that say so."""
    if kind.kind == "ResourceClaim":
        spec, field = value["spec"], "spec.devices.requests"
    elif kind.kind == "ResourceClaimTemplate":
        spec, field = value["spec"]["spec"], "spec.spec.devices.requests"
    else:
        return
    asked = [
        i for i, r in enumerate(spec["devices"].get("requests") or ()) if (r.get("exactly") or {}).get("adminAccess")
    ]
    if not asked:
        return
    namespace = store.get(NAMESPACE, value["metadata"]["namespace"])
    labels = (namespace.object["metadata"].get("labels") if namespace else None) or {}
    if labels.get(_ADMIN_LABEL) != "true":
        said = f"admin access to devices requires the `{_ADMIN_LABEL}: true` label on the containing namespace"
        for index in asked:
            yield causes.forbidden(f"{field}[{index}].adminAccess", said)
