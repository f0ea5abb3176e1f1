"""Devices from the JSON of a ResourceSlice, for callers that hold no decoded slice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fishplate.cel.device import Device
from fishplate.errors import InputError
from fishplate.k8s.resource import DeviceAttribute, DeviceCapacity

if TYPE_CHECKING:
    from collections.abc import Mapping


def decode_device(
    driver: str,
    attributes: Mapping[str, Mapping[str, object]],
    capacity: Mapping[str, Mapping[str, object]] | None = None,
    *,
    allow_multiple_allocations: bool = False,
) -> Device:
    """A device from `attributes: {name: {string: …}}` and `capacity: {name: {value: …}}`.

    An attribute without a usable value does not fail here: upstream fails every selector on such a device.
    """
    try:
        values = msgspec.convert(attributes, dict[str, DeviceAttribute])
        amounts = msgspec.convert(capacity or {}, dict[str, DeviceCapacity])
    except msgspec.ValidationError as error:
        raise InputError(f"not the attributes and capacities of a device: {error}") from error
    return Device(driver, values, amounts, allow_multiple_allocations)
