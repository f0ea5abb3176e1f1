"""ResourceSlice: what the API server refuses, with its field paths."""

import re
from collections.abc import Iterator

from fishplate.k8s.quantity import Quantity, parse_quantity
from fishplate.k8s.resource import MAX_ATTRIBUTES_PER_DEVICE, MAX_DEVICES_PER_SLICE, MAX_STRING_BYTES
from fishplate.sim.apiserver import causes, names
from fishplate.sim.apiserver.device_validation import (
    check_all,
    check_binding_conditions,
    check_driver,
    check_list,
    check_node_selector,
    check_pool_name,
    check_qualified,
    check_taint,
)
from fishplate.sim.apiserver.goprint import print_value
from fishplate.sim.apiserver.status import Cause
from fishplate.sim.apiserver.types import load_types
from fishplate.sim.apiserver.values import Object

# Limits of resource.k8s.io/v1 in 1.36 (staging/src/k8s.io/api/resource/v1/types.go).
_MAX_ADVANCED_DEVICES = 64
_MAX_TAINTS = 16
_MAX_COUNTER_SETS = 8
_MAX_COUNTERS = 32
_MAX_CONSUMPTIONS = 2
_MAX_VALID_VALUES = 10
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)
_WAYS = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_DEVICE_WAYS = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)


def check_slice(value: Object, old: Object | None = None) -> Iterator[Cause]:
    spec = value["spec"]
    yield from check_driver(spec["driver"], "spec.driver")
    yield from _check_pool(spec["pool"], "spec.pool")
    if old is not None:
        yield from _check_fixed(spec, old["spec"])
    yield from _check_nodes(spec)
    devices, shared = spec.get("devices"), spec.get("sharedCounters")
    if devices and shared:
        yield causes.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    advanced = any(device.get("taints") or device.get("consumesCounters") for device in devices or ())
    limit = _MAX_ADVANCED_DEVICES if advanced else MAX_DEVICES_PER_SLICE
    per_device = bool(spec.get("perDeviceNodeSelection"))

    def device(one: Object, place: str) -> Iterator[Cause]:
        yield from _check_device(one, place)
        yield from _check_device_nodes(one, place, per_device=per_device)
        yield from check_binding_conditions(one, place)

    yield from check_list(devices or [], limit, device, "spec.devices", lambda d: d["name"])
    yield from check_list(
        shared or [], _MAX_COUNTER_SETS, _check_counter_set, "spec.sharedCounters", lambda s: s["name"]
    )


def _check_pool(pool: Object, field: str) -> Iterator[Cause]:
    yield from check_pool_name(pool["name"], f"{field}.name")
    if pool["resourceSliceCount"] <= 0:
        yield causes.invalid(f"{field}.resourceSliceCount", pool["resourceSliceCount"], "must be greater than zero")
    if pool["generation"] < 0:
        yield causes.invalid(f"{field}.generation", pool["generation"], "must be greater than or equal to zero")


def _check_fixed(spec: Object, old: Object) -> Iterator[Cause]:
    if spec["pool"]["name"] != old["pool"]["name"]:
        yield causes.invalid("spec.pool.name", spec["pool"]["name"], "field is immutable")
    for name in ("driver", "nodeName"):
        if spec.get(name) != old.get(name):
            yield causes.invalid(f"spec.{name}", spec.get(name), "field is immutable")


def _check_nodes(spec: Object) -> Iterator[Cause]:
    said = []
    name = spec.get("nodeName")
    if name:
        said.append("`nodeName`")
        yield from check_all(names.subdomain(name), "spec.nodeName", name)
    elif name is not None:
        yield causes.invalid("spec.nodeName", name, "must be either unset or set to a non-empty string")
    selector = spec.get("nodeSelector")
    if selector is not None:
        said.append("`nodeSelector`")
        yield from check_node_selector(selector, "spec.nodeSelector")
        terms = selector.get("nodeSelectorTerms") or []
        if len(terms) != 1:
            detail = "must have exactly one node selector term"
            yield causes.invalid("spec.nodeSelector.nodeSelectorTerms", terms, detail)
    for flag in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(flag):
            said.append(f"`{flag}`")
        elif spec.get(flag) is not None:
            yield causes.invalid(f"spec.{flag}", False, "must be either unset or set to true")
    if not said:
        yield causes.required("spec", _WAYS)
    elif len(said) > 1:
        yield causes.invalid("spec", f"{{{', '.join(said)}}}", f"{_WAYS}, but multiple fields are set")


def _check_device(device: Object, field: str) -> Iterator[Cause]:
    yield from check_all(names.label(device["name"]), f"{field}.name", device["name"])
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    total = len(attributes) + len(capacity)
    if total > MAX_ATTRIBUTES_PER_DEVICE:
        said = f"the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES_PER_DEVICE}"
        yield causes.invalid(field, total, said)
    for name in sorted(attributes):
        yield from check_qualified(name, f"{field}.attributes")
        yield from _check_attribute(attributes[name], f"{field}.attributes[{name}]")
    for name in sorted(capacity):
        yield from check_qualified(name, f"{field}.capacity")
        yield from _check_capacity(capacity[name], f"{field}.capacity[{name}]", device)
    yield from check_list(device.get("taints") or [], _MAX_TAINTS, check_taint, f"{field}.taints")
    consumed = device.get("consumesCounters") or []
    place = f"{field}.consumesCounters"
    yield from check_list(consumed, _MAX_CONSUMPTIONS, _check_consumption, place, lambda c: c["counterSet"])


def _check_attribute(attribute: Object, field: str) -> Iterator[Cause]:
    for name in ("string", "version"):
        value = attribute.get(name)
        if value is not None and len(value.encode()) > MAX_STRING_BYTES:
            yield causes.too_long(f"{field}.{name}", MAX_STRING_BYTES)
        elif value is not None and name == "version" and not _SEMVER.fullmatch(value):
            said = "must be a string compatible with semver.org spec 2.0.0"
            yield causes.invalid(f"{field}.version", value, said)
    if not attribute:
        yield causes.invalid(field, "", "exactly one value must be specified")
    elif len(attribute) > 1:
        shown = print_value(load_types()["resource.v1.DeviceAttribute"], attribute)
        yield causes.invalid_as(field, shown, "exactly one value must be specified")


def _check_capacity(capacity: Object, field: str, device: Object) -> Iterator[Cause]:
    policy = capacity.get("requestPolicy")
    if policy is None:
        return
    field = f"{field}.requestPolicy"
    if not device.get("allowMultipleAllocations"):
        yield causes.forbidden(field, "allowMultipleAllocations must be true")
        return
    total = parse_quantity(capacity["value"])
    values, span, default = policy.get("validValues"), policy.get("validRange"), policy.get("default")
    if values and span is not None:
        said = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        yield causes.forbidden(field, said)
    elif default is None:
        if values or span is not None:
            yield causes.required(f"{field}.default", "required when validValues or validRange is defined")
    elif values:
        yield from _check_values(parse_quantity(default), total, values, f"{field}.validValues")
    elif span is not None:
        yield from _check_range(parse_quantity(default), total, span, f"{field}.validRange")


def _check_values(default: Quantity, total: Quantity, values: list[str], field: str) -> Iterator[Cause]:
    numbers = [parse_quantity(value) for value in values]
    for index in range(1, len(numbers)):
        if numbers[index - 1] > numbers[index]:
            yield causes.invalid(f"{field}[{index}]", values[index], "values must be sorted in ascending order")
    if len(values) > _MAX_VALID_VALUES:
        yield causes.too_many(field, len(values), _MAX_VALID_VALUES)
    for index, number in enumerate(numbers):
        if number > total:
            yield causes.invalid(f"{field}[{index}]", values[index], f"option is larger than capacity value: {total}")
    if default not in numbers:
        yield causes.invalid(field, str(default), "default value is not valid according to the requestPolicy")


def _check_range(default: Quantity, total: Quantity, span: Object, field: str) -> Iterator[Cause]:
    if span.get("min") is None:
        yield causes.required(f"{field}.min", "required when validRange is defined")
        return
    low = parse_quantity(span["min"])
    high = parse_quantity(span["max"]) if span.get("max") is not None else None
    if low > total:
        yield causes.invalid(f"{field}.min", str(low), f"min is larger than capacity value: {total}")
    if default < low:
        yield causes.invalid(f"{field}.min", str(default), f"default is less than min: {low}")
    if high is not None:
        if low > high:
            yield causes.invalid(f"{field}.max", str(low), f"min is larger than max: {high}")
        if high > total:
            yield causes.invalid(f"{field}.max", str(high), f"max is larger than capacity value: {total}")
        if default > high:
            yield causes.invalid(f"{field}.max", str(default), f"default is more than max: {high}")
    if span.get("step") is None:
        return
    step = parse_quantity(span["step"])
    one = low + step
    if one > total:
        said = f"one step {one} is larger than capacity value: {total}"
        yield causes.invalid(f"{field}.step", str(step), said)
    for value in filter(None, (default, high)):
        if step.value and (value.value - low.value) % step.value:
            said = f"value is not a multiple of a given step ({step}) from ({low})"
            yield causes.invalid(f"{field}.step", str(value), said)


def _check_counters(counters: Object | None, field: str) -> Iterator[Cause]:
    if not counters:
        yield causes.required(field)
        return
    if len(counters) > _MAX_COUNTERS:
        yield causes.too_many(field, len(counters), _MAX_COUNTERS)
        return
    for name in sorted(counters):
        yield from check_all(names.label(name), field, name)


def _check_counter_set(one: Object, field: str) -> Iterator[Cause]:
    if not one["name"]:
        yield causes.required(f"{field}.name")
    else:
        yield from check_all(names.label(one["name"]), f"{field}.name", one["name"])
    yield from _check_counters(one.get("counters"), f"{field}.counters")


def _check_consumption(one: Object, field: str) -> Iterator[Cause]:
    if not one["counterSet"]:
        yield causes.required(f"{field}.counterSet")
    else:
        yield from check_all(names.label(one["counterSet"]), f"{field}.counterSet", one["counterSet"])
    yield from _check_counters(one.get("counters"), f"{field}.counters")


def _check_device_nodes(device: Object, field: str, *, per_device: bool) -> Iterator[Cause]:
    said = [name for name in ("nodeName", "nodeSelector", "allNodes") if device.get(name) is not None]
    if not per_device:
        if said:
            detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to "
            yield causes.invalid(field, None, detail + "true in the ResourceSlice spec")
        return
    if device.get("nodeName") == "":
        yield causes.invalid(f"{field}.nodeName", "", "must not be empty")
        said.remove("nodeName")
    if device.get("nodeSelector") is not None:
        yield from check_node_selector(device["nodeSelector"], f"{field}.nodeSelector")
    if device.get("allNodes") is False:
        yield causes.invalid(f"{field}.allNodes", False, "must be either unset or set to true")
        said.remove("allNodes")
    if not said:
        yield causes.required(field, _DEVICE_WAYS)
    elif len(said) > 1:
        shown = ", ".join(f"`{name}`" for name in said)
        yield causes.invalid(field, f"{{{shown}}}", _DEVICE_WAYS)
