"""ResourceClaim, ResourceClaimTemplate and DeviceClass: what the API server refuses, with its field paths."""

import ipaddress
import re
from collections.abc import Iterator

from fishplate.sim.apiserver import causes, names
from fishplate.sim.apiserver.device_validation import (
    check_all,
    check_binding_conditions,
    check_configuration,
    check_driver,
    check_fully_qualified,
    check_list,
    check_node_selector,
    check_pool_name,
    check_raw,
    check_selectors,
    check_toleration,
)
from fishplate.sim.apiserver.goprint import print_value
from fishplate.sim.apiserver.metadata_validation import check_annotations, check_labels
from fishplate.sim.apiserver.status import Cause
from fishplate.sim.apiserver.types import load_types
from fishplate.sim.apiserver.values import Object

_MAX = 32
_MAX_ALTERNATIVES = 8
_MAX_RESERVED = 256
_MAX_CONDITIONS = 8
_MODES = ("All", "ExactCount")
_SOURCES = ("FromClass", "FromClaim")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_EXTENDED = re.compile(r"[^/]+/[^/]+")


def check_claim_spec(spec: Object, field: str = "spec") -> Iterator[Cause]:
    devices = spec["devices"]
    known = _request_names(devices)
    field = f"{field}.devices"
    yield from check_list(devices.get("requests") or [], _MAX, _check_request, f"{field}.requests", lambda r: r["name"])

    def constraint(one: Object, place: str) -> Iterator[Cause]:
        return _check_constraint(one, place, known)

    def config(one: Object, place: str) -> Iterator[Cause]:
        yield from _check_references(one.get("requests") or [], f"{place}.requests", known)
        yield from check_configuration(one, place)

    yield from check_list(devices.get("constraints") or [], _MAX, constraint, f"{field}.constraints")
    yield from check_list(devices.get("config") or [], _MAX, config, f"{field}.config")


def _request_names(devices: Object) -> frozenset[str]:
    known = set()
    for request in devices.get("requests") or ():
        known.add(request["name"])
        known |= {f"{request['name']}/{one['name']}" for one in request.get("firstAvailable") or ()}
    return frozenset(known)


def _check_request(request: Object, field: str) -> Iterator[Cause]:
    yield from check_all(names.label(request["name"]), f"{field}.name", request["name"])
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    said = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not alternatives:
        yield causes.required(field, said)
    elif exactly is not None and alternatives:
        yield causes.invalid(field, None, f"{said}, but multiple fields are set")
    elif exactly is not None:
        yield from _check_wanted(exactly, f"{field}.exactly")
    else:
        place = f"{field}.firstAvailable"
        yield from check_list(alternatives, _MAX_ALTERNATIVES, _check_alternative, place, lambda r: r["name"])


def _check_alternative(one: Object, field: str) -> Iterator[Cause]:
    yield from check_all(names.label(one["name"]), f"{field}.name", one["name"])
    yield from _check_wanted(one, field)


def _check_wanted(wanted: Object, field: str) -> Iterator[Cause]:
    name = wanted["deviceClassName"]
    if name:
        yield from check_all(names.subdomain(name), f"{field}.deviceClassName", name)
    else:
        yield causes.required(f"{field}.deviceClassName")
    yield from check_selectors(wanted.get("selectors") or [], f"{field}.selectors")
    mode, count = wanted.get("allocationMode", ""), wanted.get("count", 0)
    if mode not in _MODES:
        yield causes.unsupported(f"{field}.allocationMode", mode, _MODES)
    elif mode == "All" and count:
        yield causes.invalid(f"{field}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount" and count <= 0:
        yield causes.invalid(f"{field}.count", count, "must be greater than zero")
    for index, toleration in enumerate(wanted.get("tolerations") or ()):
        yield from check_toleration(toleration, f"{field}.tolerations[{index}]")


def _check_references(requests: list[str], field: str, known: frozenset[str]) -> Iterator[Cause]:
    yield from check_list(requests, _MAX, lambda name, place: _check_reference(name, place, known), field, str)


def _check_reference(name: str, field: str, known: frozenset[str]) -> Iterator[Cause]:
    for part in name.split("/"):
        yield from check_all(names.label(part), field, part)
    if name not in known:
        said = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
        yield causes.invalid(field, name, said)


def _check_constraint(constraint: Object, field: str, known: frozenset[str]) -> Iterator[Cause]:
    yield from _check_references(constraint.get("requests") or [], f"{field}.requests", known)
    if constraint.get("matchAttribute") is not None:
        yield from check_fully_qualified(constraint["matchAttribute"], f"{field}.matchAttribute")
    elif constraint.get("distinctAttribute") is not None:
        yield from check_fully_qualified(constraint["distinctAttribute"], f"{field}.distinctAttribute")
    else:
        said = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        yield causes.required(field, said)


def check_claim(value: Object) -> Iterator[Cause]:
    yield from check_claim_spec(value["spec"])


def check_template(value: Object) -> Iterator[Cause]:
    meta = value["spec"].get("metadata") or {}
    yield from check_labels(meta.get("labels") or {}, "spec.labels")
    yield from check_annotations(meta.get("annotations") or {}, "spec.annotations")
    yield from check_claim_spec(value["spec"]["spec"], "spec.spec")


def check_spec_change(new: Object, old: Object, shape: str) -> Iterator[Cause]:
    if new["spec"] != old["spec"]:
        shown = print_value(load_types()[shape], new["spec"])
        yield causes.invalid_as("spec", shown, "field is immutable")


def check_class(value: Object) -> Iterator[Cause]:
    spec = value["spec"]
    yield from check_selectors(spec.get("selectors") or [], "spec.selectors")
    yield from check_list(spec.get("config") or [], _MAX, check_configuration, "spec.config")
    name = spec.get("extendedResourceName")
    if name is not None and not _is_extended_resource(name):
        yield causes.invalid("spec.extendedResourceName", name, "must be a valid extended resource name")


def _is_extended_resource(name: str) -> bool:
    if not _EXTENDED.fullmatch(name) or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not names.qualified_name(f"requests.{name}")


def check_claim_status(new: Object, old: Object) -> Iterator[Cause]:
    status, before = new.get("status") or {}, old.get("status") or {}
    reserved = status.get("reservedFor") or []
    yield from check_list(reserved, _MAX_RESERVED, _check_consumer, "status.reservedFor", lambda r: r["uid"])
    allocation = status.get("allocation")
    results = allocation["devices"].get("results") or [] if allocation else []
    held = {_identity(result) for result in results}
    yield from _check_device_statuses(status.get("devices") or [], held)
    if reserved and allocation is None:
        yield causes.forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    elif new["metadata"].get("deletionTimestamp") and any(r not in (before.get("reservedFor") or ()) for r in reserved):
        said = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield causes.forbidden("status.reservedFor", said)
    if allocation is None:
        return
    if before.get("allocation") is None:
        yield from _check_allocation(allocation, _request_names(new["spec"]["devices"]))
    elif before["allocation"] != allocation:
        shown = print_value(load_types()["resource.v1.AllocationResult"], allocation)
        yield causes.invalid_as("status.allocation", shown, "field is immutable")


def _check_consumer(consumer: Object, field: str) -> Iterator[Cause]:
    for name in ("resource", "name", "uid"):
        if not consumer.get(name):
            yield causes.required(f"{field}.{name}")


def _identity(device: Object) -> tuple[str, str, str, str]:
    return device["driver"], device["pool"], device["device"], device.get("shareID") or ""


def _show_identity(device: Object) -> str:
    names_of = ("Driver", "Pool", "Device", "ShareID")
    return causes.quote(dict(zip(names_of, _identity(device), strict=True)))


def _check_device_statuses(devices: list[Object], held: set[tuple[str, str, str, str]]) -> Iterator[Cause]:
    seen: set[tuple[str, str, str, str]] = set()
    repeated: list[Cause] = []
    for index, device in enumerate(devices):
        field = f"status.devices[{index}]"
        yield from _check_device_status(device, field, held)
        if _identity(device) in seen:
            repeated.append(causes.duplicate_as(field, _show_identity(device)))
        seen.add(_identity(device))
    yield from repeated


def _check_device_status(device: Object, field: str, held: set[tuple[str, str, str, str]]) -> Iterator[Cause]:
    yield from check_driver(device["driver"], f"{field}.driver")
    yield from check_pool_name(device["pool"], f"{field}.pool")
    yield from check_all(names.label(device["device"]), f"{field}.device", device["device"])
    yield from _check_share(device, field)
    if _identity(device) not in held:
        yield causes.invalid_as(field, _show_identity(device), "must be an allocated device in the claim")
    conditions = device.get("conditions") or []
    if len(conditions) > _MAX_CONDITIONS:
        yield causes.too_many(f"{field}.conditions", len(conditions), _MAX_CONDITIONS)
    for index, condition in enumerate(conditions):
        yield from _check_condition(condition, f"{field}.conditions[{index}]")
    if device.get("data") is not None:
        yield from check_raw(device["data"], f"{field}.data")
    if device.get("networkData") is not None:
        yield from _check_network(device["networkData"], f"{field}.networkData")


def _check_share(holder: Object, field: str) -> Iterator[Cause]:
    share = holder.get("shareID")
    if share is not None and not _UUID.fullmatch(share):
        said = "must be a lowercase UUID in 8-4-4-4-12 format"
        yield causes.invalid(f"{field}.shareID", share, said)


def _check_condition(condition: Object, field: str) -> Iterator[Cause]:
    yield from check_all(names.qualified_name(condition["type"]), f"{field}.type", condition["type"])
    if condition["status"] not in ("True", "False", "Unknown"):
        yield causes.unsupported(f"{field}.status", condition["status"], ("False", "True", "Unknown"))
    if condition.get("lastTransitionTime") is None:
        yield causes.required(f"{field}.lastTransitionTime")
    if not condition["reason"]:
        yield causes.required(f"{field}.reason")


def _check_network(network: Object, field: str) -> Iterator[Cause]:
    for name, limit in (("interfaceName", 256), ("hardwareAddress", 128)):
        if len(network.get(name, "")) > limit:
            yield causes.too_long(f"{field}.{name}", limit)
    yield from check_list(network.get("ips") or [], 16, _check_address, f"{field}.ips", str)


def _check_address(address: str, field: str) -> Iterator[Cause]:
    try:
        if "/" not in address:
            raise ValueError(address)
        ipaddress.ip_interface(address)
    except ValueError:
        said = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        yield causes.invalid(field, address, said)


def _check_allocation(allocation: Object, known: frozenset[str]) -> Iterator[Cause]:
    field = "status.allocation"

    def result(one: Object, place: str) -> Iterator[Cause]:
        yield from _check_reference(one["request"], f"{place}.request", known)
        yield from check_driver(one["driver"], f"{place}.driver")
        yield from check_pool_name(one["pool"], f"{place}.pool")
        yield from check_all(names.label(one["device"]), f"{place}.device", one["device"])
        yield from check_binding_conditions(one, place)
        yield from _check_share(one, place)

    def config(one: Object, place: str) -> Iterator[Cause]:
        if not one.get("source"):
            yield causes.required(f"{place}.source")
        elif one["source"] not in _SOURCES:
            yield causes.unsupported(f"{place}.source", one["source"], _SOURCES)
        yield from _check_references(one.get("requests") or [], f"{place}.requests", known)
        yield from check_configuration(one, place)

    devices = allocation["devices"]
    yield from check_list(devices.get("results") or [], _MAX, result, f"{field}.devices.results")
    yield from check_list(devices.get("config") or [], 2 * _MAX, config, f"{field}.devices.config")
    if allocation.get("nodeSelector") is not None:
        yield from check_node_selector(allocation["nodeSelector"], f"{field}.nodeSelector")
