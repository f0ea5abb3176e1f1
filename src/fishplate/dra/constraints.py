"""matchAttribute and distinctAttribute while a claim is being allocated.

A constraint sees each device of its claim as it is tentatively taken (`add`) and given back (`remove`, in reverse
order). Both are monotonic: what one refuses, more devices do not make acceptable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from fishplate.dra.profile import Distinct
from fishplate.errors import AllocationError

if TYPE_CHECKING:
    from fishplate.dra.pools import Candidate
    from fishplate.dra.profile import Profile
    from fishplate.k8s.claim import DeviceConstraint, ResourceClaim
    from fishplate.k8s.resource import Device, DeviceAttribute

Comparable: TypeAlias = "tuple[str, object] | None"
"""Type and value; None for a value of no known type, which equals nothing, itself included."""


class Refusal(NamedTuple):
    """Why a device was refused; the values are for people."""

    text: str


class Constraint(Protocol):
    def applies(self, request: str, subrequest: str) -> bool: ...

    def add(self, request: str, candidate: Candidate) -> bool: ...

    def remove(self, request: str) -> None: ...

    def explain(self, candidate: Candidate) -> Refusal | None: ...


class _Scope:
    """The requests a constraint is about; none named means all."""

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        self.attribute = attribute
        self._requests = frozenset(requests)

    def applies(self, request: str, subrequest: str) -> bool:
        names = self._requests
        return not names or request in names or (subrequest != "" and f"{request}/{subrequest}" in names)


class Match(_Scope):
    """All devices share one value, of one type; the first device may have any."""

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        super().__init__(attribute, requests)
        self._count = 0
        self._value: Comparable = None

    def add(self, request: str, candidate: Candidate) -> bool:
        found = find_attribute(candidate.device, candidate.id[0], self.attribute)
        if found is None:
            return False
        value = comparable(found)
        if self._count == 0:
            self._value = value
        elif value is None or value != self._value:
            return False
        self._count += 1
        return True

    def remove(self, request: str) -> None:
        self._count -= 1

    def explain(self, candidate: Candidate) -> Refusal | None:
        found = find_attribute(candidate.device, candidate.id[0], self.attribute)
        if found is None:
            return Refusal(f"attribute {self.attribute} is not set")
        value = comparable(found)
        if self._count and (value is None or value != self._value):
            return Refusal(f"{self.attribute} is {_show(value)}, devices already chosen have {_show(self._value)}")
        return None


class DistinctValues(_Scope):
    """No two devices share a value; how long values are remembered depends on the minor version."""

    def __init__(self, attribute: str, requests: tuple[str, ...], kind: Distinct) -> None:
        super().__init__(attribute, requests)
        self._kind = kind
        self._seen: list[tuple[str, Comparable]] = []
        self._latest: dict[str, Comparable] = {}
        self._count = 0

    def _remembered(self) -> list[Comparable]:
        if self._kind is Distinct.ALL:
            return [value for _, value in self._seen]
        return list(self._latest.values())

    def _value(self, candidate: Candidate) -> Comparable:
        found = find_attribute(candidate.device, candidate.id[0], self.attribute)
        value = None if found is None else comparable(found)
        if value is not None and self._kind is Distinct.SAME_DEVICE:
            return (value[0], candidate.id)
        return value

    def add(self, request: str, candidate: Candidate) -> bool:
        if find_attribute(candidate.device, candidate.id[0], self.attribute) is None:
            return False
        value = self._value(candidate)
        if self._count or self._kind is Distinct.ALL:
            known = self._remembered()
            if known and (value is None or value in known):
                return False
        self._count += 1
        self._latest[request] = value
        if self._kind is Distinct.ALL:
            self._seen.append((request, value))
        return True

    def remove(self, request: str) -> None:
        self._count -= 1
        # One entry for each request: giving back a second device forgets the first one, too.
        self._latest.pop(request, None)
        if self._kind is Distinct.ALL:
            self._seen.pop()

    def explain(self, candidate: Candidate) -> Refusal | None:
        if find_attribute(candidate.device, candidate.id[0], self.attribute) is None:
            return Refusal(f"attribute {self.attribute} is not set")
        value = self._value(candidate)
        known = self._remembered()
        if known and (value is None or value in known):
            return Refusal(f"{self.attribute} is {_show(value)}, which a device already chosen has")
        return None


def build_constraints(claim: ResourceClaim, profile: Profile) -> list[Constraint]:
    return [_build(claim, index, written, profile) for index, written in enumerate(claim.spec.devices.constraints)]


def _build(claim: ResourceClaim, index: int, written: DeviceConstraint, profile: Profile) -> Constraint:
    if written.match_attribute is not None:
        return Match(written.match_attribute, written.requests)
    if written.distinct_attribute is not None and profile.distinct is not Distinct.UNKNOWN:
        return DistinctValues(written.distinct_attribute, written.requests, profile.distinct)
    raise AllocationError(f"claim {claim}, constraint #{index}: empty constraint (unsupported constraint type?)")


def find_attribute(device: Device, driver: str, name: str) -> DeviceAttribute | None:
    """By its full name, or without the domain where that is the driver's."""
    found = device.attributes.get(name)
    if found is not None:
        return found
    domain, slash, rest = name.partition("/")
    return device.attributes.get(rest) if slash and domain == driver else None


def comparable(attribute: DeviceAttribute) -> Comparable:
    if attribute.string is not None:
        return ("string", attribute.string)
    if attribute.int_ is not None:
        return ("int", attribute.int_)
    if attribute.bool_ is not None:
        return ("bool", attribute.bool_)
    if attribute.version is not None:
        return ("version", attribute.version)
    return None


def _show(value: Comparable) -> str:
    return "of an unknown type" if value is None else f"{value[1]!r}"
