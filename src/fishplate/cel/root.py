"""The outermost frame of an evaluation: it knows one name, `device`."""

from __future__ import annotations

from fishplate.cel.tracker import COST_LIMIT, Tracker
from fishplate.cel.values import CelMap, Err, Value


class Root:
    __slots__ = ("_device", "modern", "tracker")

    def __init__(self, device: CelMap | None, *, modern: bool, limit: int = COST_LIMIT) -> None:
        self._device = device
        self.modern = modern
        self.tracker = Tracker(limit)

    def resolve(self, name: str) -> Value:
        if name.removeprefix(".") != "device" or self._device is None:
            return Err(f"no such attribute(s): {name}")
        return self._device
