"""Pods, ConfigMaps, Secrets, Events: the mistakes that people make with the kinds beside the devices.

Not all of kube-apiserver's rules for pods: those that decide whether a pod with claims is meant as it was written.
"""

from collections.abc import Iterator

from fishplate.sim.apiserver import causes, names
from fishplate.sim.apiserver.goprint import print_value
from fishplate.sim.apiserver.status import Cause
from fishplate.sim.apiserver.types import load_types
from fishplate.sim.apiserver.values import Object

_MAX_DATA = 1 << 20
_MAY_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod(value: Object) -> Iterator[Cause]:
    spec = value["spec"]
    claims = spec.get("resourceClaims") or []
    known = [claim["name"] for claim in claims]
    for index, claim in enumerate(claims):
        yield from _check_pod_claim(claim, f"spec.resourceClaims[{index}]", known[:index])
    if not spec.get("containers"):
        yield causes.required("spec.containers")
    seen: list[str] = []
    for group in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(group) or ()):
            yield from _check_container(container, f"spec.{group}[{index}]", known, seen)
            seen.append(container["name"])


def _check_pod_claim(claim: Object, field: str, before: list[str]) -> Iterator[Cause]:
    for text in names.label(claim["name"]):
        yield causes.invalid(f"{field}.name", claim["name"], text)
    if claim["name"] in before:
        yield causes.duplicate(f"{field}.name", claim["name"])
    said = [name for name in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(name) is not None]
    shown = print_value(load_types()["core.v1.PodResourceClaim"], claim)
    if len(said) > 1:
        detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        yield causes.invalid_as(field, shown, detail)
    elif not said:
        detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        yield causes.invalid_as(field, shown, detail)


def _check_container(container: Object, field: str, claims: list[str], seen: list[str]) -> Iterator[Cause]:
    name = container["name"]
    if not name:
        yield causes.required(f"{field}.name")
    else:
        for text in names.label(name):
            yield causes.invalid(f"{field}.name", name, text)
    if name in seen:
        yield causes.duplicate(f"{field}.name", name)
    if not container.get("image"):
        yield causes.required(f"{field}.image")
    for index, claim in enumerate((container.get("resources") or {}).get("claims") or ()):
        if claim["name"] not in claims:
            said = "must be one of the names in pod.spec.resourceClaims"
            said += "" if claims else " which is empty"
            yield causes.missing(f"{field}.resources.claims[{index}]", claim["name"], said)


def check_pod_change(new: Object, old: Object) -> Iterator[Cause]:
    """Only images, the deadline and added tolerations."""
    before, after = _fixed_part(old["spec"]), _fixed_part(new["spec"])
    kept = all(one in (new["spec"].get("tolerations") or ()) for one in old["spec"].get("tolerations") or ())
    if before != after or not kept:
        yield causes.forbidden("spec", _MAY_CHANGE)


def _fixed_part(spec: Object) -> Object:
    left = {k: v for k, v in spec.items() if k not in ("activeDeadlineSeconds", "tolerations")}
    for group in ("containers", "initContainers"):
        if group in left:
            left[group] = [{k: v for k, v in c.items() if k != "image"} for c in left[group]]
    return left


def check_data(value: Object) -> Iterator[Cause]:
    """ConfigMap and Secret: keys and total size."""
    total = 0
    for field in ("data", "binaryData"):
        for key, one in (value.get(field) or {}).items():
            total += len(one)
            if not key or len(key) > 253 or not all(c.isalnum() or c in "-_." for c in key):
                said = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  "
                said += "or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                yield causes.invalid(f"{field}[{key}]", key, said)
    if total > _MAX_DATA:
        yield causes.too_long("", _MAX_DATA)


def check_data_change(new: Object, old: Object) -> Iterator[Cause]:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield causes.forbidden("immutable", "field is immutable when `immutable` is set")
    for field in ("data", "binaryData"):
        if (new.get(field) or {}) != (old.get(field) or {}):
            yield causes.forbidden(field, "field is immutable when `immutable` is set")


def check_event(value: Object) -> Iterator[Cause]:
    about, namespace = value["involvedObject"].get("namespace", ""), value["metadata"].get("namespace", "")
    if (about or "default") != namespace:
        yield causes.invalid("involvedObject.namespace", about, "does not match event.namespace")
