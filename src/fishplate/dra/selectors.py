"""CEL selectors of classes and requests: compiled once, asked about candidates, with kube-scheduler's messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishplate.cel import Device as CelDevice
from fishplate.cel import Program, environment
from fishplate.errors import AllocationError, CelCompileError, CelRuntimeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fishplate.dra.pools import Candidate
    from fishplate.dra.profile import Profile
    from fishplate.k8s.claim import DeviceSelector
    from fishplate.k8s.resource import Device

_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue())"
    " or guarding the check with has() for optional fields"
)


class Selectors:
    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._environment = environment(profile.minor, profile.gates)
        self._programs: dict[str, Program | str] = {}

    def compile(self, expression: str) -> Program | str:
        """The program, or why there is none."""
        known = self._programs.get(expression)
        if known is None:
            try:
                known = self._environment.compile(expression)
            except CelCompileError as error:
                known = error.what
            self._programs[expression] = known
        return known

    def first_false(self, owner: str, selectors: Iterable[DeviceSelector], candidate: Candidate) -> int:
        """The position of the first selector that says no, -1 if all say yes."""
        for index, selector in enumerate(selectors):
            if selector.cel is None:
                raise AllocationError(f"{owner}: selector #{index}: CEL expression empty (unsupported selector type?)")
            program = self.compile(selector.cel.expression)
            if isinstance(program, str):
                raise AllocationError(f"{owner}: selector #{index}: CEL compile error: {program}")
            if candidate.seen is None:
                candidate.seen = self.view(candidate.device, candidate.id[0])
            try:
                matches = program.matches(candidate.seen)
            except CelRuntimeError as error:
                raise self._failure(owner, index, candidate, error.what) from error
            if not matches:
                return index
        return -1

    def _failure(self, owner: str, index: int, candidate: Candidate, text: str) -> AllocationError:
        where = ""
        if self._profile.errors_name_device:
            where = f" on device {candidate}"
            text += _HINT if "no such key:" in text else ""
        return AllocationError(f"{owner}: selector #{index}{where}: CEL runtime error: {text}")

    def view(self, device: Device, driver: str) -> CelDevice:
        """The device as selectors see it."""
        multiple = self._profile.knows_capacity and bool(device.allow_multiple_allocations)
        return CelDevice(driver, device.attributes, device.capacity, multiple)
