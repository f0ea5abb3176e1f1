"""Worlds with one feature taken out, to see whether the feature decided anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

World = dict[str, Any]
_LISTS = "list attributes"


def _specs(world: World) -> Iterator[World]:
    return (one["spec"] for one in world["slices"])


def _devices(world: World) -> Iterator[World]:
    for spec in _specs(world):
        yield from spec.get("devices", [])


def _requests(world: World) -> Iterator[World]:
    for claim in world["claims"]:
        for request in claim["spec"]["devices"]["requests"]:
            if "exactly" in request:
                yield request["exactly"]
            yield from request.get("firstAvailable", [])


def _drop(parts: Iterator[World], *keys: str) -> None:
    for part in parts:
        for key in keys:
            part.pop(key, None)


def _level_generations(world: World) -> None:
    for spec in _specs(world):
        spec["pool"]["generation"] = 1


def _complete_pools(world: World) -> None:
    """Every slice agrees on how many of its generation there are."""
    for spec in _specs(world):
        same = [
            other
            for other in _specs(world)
            if (other["driver"], other["pool"]["name"], other["pool"]["generation"])
            == (spec["driver"], spec["pool"]["name"], spec["pool"]["generation"])
        ]
        spec["pool"]["resourceSliceCount"] = len(same)


def _unique_devices(world: World) -> None:
    seen: set[tuple[str, str, str]] = set()
    for spec in _specs(world):
        for device in spec.get("devices", []):
            while (spec["driver"], spec["pool"]["name"], device["name"]) in seen:
                device["name"] += "-2"
            seen.add((spec["driver"], spec["pool"]["name"], device["name"]))


def _everywhere(world: World) -> None:
    for part in (*_specs(world), *_devices(world)):
        if "nodeSelector" in part:
            del part["nodeSelector"]
            part["allNodes"] = True


def _one_place(world: World) -> None:
    for spec in _specs(world):
        if spec.pop("perDeviceNodeSelection", None):
            spec["nodeName"] = world["node"]["name"]


def _exactly_one(world: World) -> None:
    for request in _requests(world):
        if request.get("allocationMode") == "All":
            request["allocationMode"], request["count"] = "ExactCount", 1


def _first_only(world: World) -> None:
    for claim in world["claims"]:
        for request in claim["spec"]["devices"]["requests"]:
            request["firstAvailable"] = request.get("firstAvailable", [])[:1]
            if not request["firstAvailable"]:
                del request["firstAvailable"]


def _drop_constraint(key: str) -> Callable[[World], None]:
    def remove(world: World) -> None:
        for claim in world["claims"]:
            devices = claim["spec"]["devices"]
            if "constraints" in devices:
                devices["constraints"] = [one for one in devices["constraints"] if key not in one]

    return remove


def _plain_values(world: World) -> None:
    for device in _devices(world):
        for name, value in device.get("attributes", {}).items():
            for plural in ("ints", "bools", "strings", "versions"):
                if value.get(plural):
                    device["attributes"][name] = {plural[:-1]: value[plural][0]}


def _one_device(world: World) -> None:
    for request in _requests(world):
        if request.get("count", 0) > 1:
            request["count"] = 1


def _few_devices(world: World) -> None:
    for request in _requests(world):
        if request.get("count", 0) > 4:
            request["count"] = 4


def _drop_policies(world: World) -> None:
    for device in _devices(world):
        for entry in device.get("capacity", {}).values():
            entry.pop("requestPolicy", None)


def _free(world: World) -> None:
    world["allocated"] = []


def _no_shares(world: World) -> None:
    for claim in world["allocated"]:
        for result in claim["status"]["allocation"]["devices"]["results"]:
            result.pop("shareID", None)
            result.pop("consumedCapacity", None)


_REMOVALS: dict[str, Callable[[World], None]] = {
    "pool generations": _level_generations,
    "pool completeness": _complete_pools,
    "duplicate device names": _unique_devices,
    "node selectors": _everywhere,
    "per-device node selection": _one_place,
    "class selectors": lambda world: _drop((one["spec"] for one in world["classes"]), "selectors"),
    "request selectors": lambda world: _drop(_requests(world), "selectors"),
    "device count": _one_device,
    "allocation mode All": _exactly_one,
    "firstAvailable": _first_only,
    "matchAttribute": _drop_constraint("matchAttribute"),
    "distinctAttribute": _drop_constraint("distinctAttribute"),
    _LISTS: _plain_values,
    "adminAccess": lambda world: _drop(_requests(world), "adminAccess"),
    "taints": lambda world: _drop(_devices(world), "taints"),
    "tolerations": lambda world: _drop(_requests(world), "tolerations"),
    "shared counters": lambda world: _drop(_devices(world), "consumesCounters"),
    "multiple allocations": lambda world: _drop(_devices(world), "allowMultipleAllocations"),
    "capacity requests": lambda world: _drop(_requests(world), "capacity"),
    "capacity request policies": _drop_policies,
    "binding conditions": lambda world: _drop(_devices(world), "bindingConditions", "bindingFailureConditions"),
    "bindsToNode": lambda world: _drop(_devices(world), "bindsToNode"),
    "result limit": _few_devices,
    "devices in use": _free,
    "shares in use": _no_shares,
    "class config": lambda world: _drop((one["spec"] for one in world["classes"]), "config"),
    "claim config": lambda world: _drop((one["spec"]["devices"] for one in world["claims"]), "config"),
}
FEATURES = tuple(_REMOVALS)


def features_of(minor: str) -> tuple[str, ...]:
    """Those that this minor version knows."""
    return tuple(name for name in FEATURES if name != _LISTS or minor not in ("1.34", "1.35"))


def remove_feature(world: World, feature: str) -> World | None:
    """The world without it; None if it has no such feature."""
    # Worlds are plain JSON: through its text a copy takes a tenth of the time.
    changed: World = msgspec.json.decode(msgspec.json.encode(world))
    _REMOVALS[feature](changed)
    return None if changed == world else changed
