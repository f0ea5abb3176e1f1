"""The outermost frame of an evaluation: it knows one name, `device`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishplate.cel.tracker import COST_LIMIT, Tracker
from fishplate.cel.values import Err, Value

if TYPE_CHECKING:
    from fishplate.cel.device import Device


class Root:
    __slots__ = ("_device", "_value", "modern", "tracker")

    def __init__(self, device: Device | None, *, modern: bool, limit: int = COST_LIMIT) -> None:
        self._device = device
        self._value: Value = None
        self.modern = modern
        self.tracker = Tracker(limit)

    def resolve(self, name: str) -> Value:
        if name.removeprefix(".") != "device" or self._device is None:
            return Err(f"no such attribute(s): {name}")
        if self._value is None:
            self._value = self._device.as_value()
        return self._value
