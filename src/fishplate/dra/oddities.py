"""Devices that a survey of a fleet must not judge by what selectors read of them, found once, when slices are loaded.

Equal attributes become one object on the way: a fleet's devices repeat themselves, and 10,000 nodes take a third of the
memory, which is also a third of the time to go over them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishplate.errors import InputError
from fishplate.k8s.semver import parse_semver

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fishplate.dra.world import DeviceID
    from fishplate.k8s.resource import Device, DeviceAttribute, ResourceSlice


def find_oddities(slices: Iterable[ResourceSlice]) -> frozenset[DeviceID]:
    """Odd are devices

    - with a list, no value or no valid version in any attribute: every selector fails on them, whatever it reads;
    - with two spellings of one attribute, with and without the driver's domain;
    - whose name their slice has twice, which makes the pool invalid;
    - with counters, binding conditions or taints, or shared without any capacity: there the search sees more than
      attributes and capacity.
    """
    seen: dict[DeviceAttribute, tuple[DeviceAttribute, bool]] = {}
    spelled: dict[tuple[str, tuple[str, ...]], bool] = {}
    odd: set[DeviceID] = set()
    for origin in slices:
        driver, devices = origin.spec.driver, origin.spec.devices
        repeated = len({device.name for device in devices}) != len(devices)
        for device in devices:
            attributes = device.attributes
            names = (driver, tuple(attributes))
            is_odd = spelled.get(names)
            if is_odd is None:
                is_odd = spelled[names] = any(f"{driver}/{name}" in attributes for name in attributes)
            for name, attribute in attributes.items():
                known = seen.get(attribute)
                if known is None:
                    known = seen[attribute] = (attribute, not _is_plain(attribute))
                attributes[name] = known[0]
                is_odd = is_odd or known[1]
            if is_odd or repeated or _is_special(device):
                odd.add((driver, origin.spec.pool.name, device.name))
    return frozenset(odd)


def _is_special(device: Device) -> bool:
    return bool(
        device.consumes_counters
        or device.binding_conditions is not None
        or device.taints
        or (device.allow_multiple_allocations and not device.capacity)
    )


def _is_plain(attribute: DeviceAttribute) -> bool:
    if attribute.ints is not None or attribute.bools is not None:
        return False
    if attribute.strings is not None or attribute.versions is not None:
        return False
    if attribute.version is None:
        return attribute.value is not None
    try:
        parse_semver(attribute.version)
    except InputError:
        return False
    return True
