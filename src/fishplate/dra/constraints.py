"""matchAttribute and distinctAttribute while a claim is being allocated.

A constraint sees each device of its claim as it is tentatively taken (`add`) and given back (`remove`, in reverse
order). Both are monotonic: what one refuses, more devices do not make acceptable. With the gate DRAListTypeAttributes
values are lists: to match is to have a value in common, to be distinct is to have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from fishplate.dra.profile import Distinct
from fishplate.errors import AllocationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fishplate.dra.pools import Candidate
    from fishplate.dra.profile import Profile
    from fishplate.k8s.claim import DeviceConstraint, ResourceClaim
    from fishplate.k8s.resource import Device, DeviceAttribute

Element: TypeAlias = "tuple[str, object]"
"""Type and value."""
Comparable: TypeAlias = "Element | None"
"""Type and value; None for a value of no known type, which equals nothing, itself included."""
Value = TypeVar("Value")


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


class MatchLists(_Scope):
    """All devices share a value: lists (a plain value is a list of one) that have something in common.

    Without `restores` a device that is given back has narrowed the choice for good, until the last one is gone.
    """

    def __init__(self, attribute: str, requests: tuple[str, ...], *, restores: bool) -> None:
        super().__init__(attribute, requests)
        self._restores = restores
        self._count = 0
        self._common: list[frozenset[Element]] = []

    def add(self, request: str, candidate: Candidate) -> bool:
        found = find_attribute(candidate.device, candidate.id[0], self.attribute)
        values = None if found is None else elements(found)
        if values is None:
            return False
        if self._count:
            values &= self._common[-1]
            if not values:
                return False
        self._common = [*self._common[: self._count], values] if self._restores else [values]
        self._count += 1
        return True

    def remove(self, request: str) -> None:
        self._count -= 1
        if self._restores:
            self._common.pop()

    def explain(self, candidate: Candidate) -> Refusal | None:
        found = find_attribute(candidate.device, candidate.id[0], self.attribute)
        if found is None:
            return Refusal(f"attribute {self.attribute} is not set")
        values = elements(found)
        if values is None or (self._count and not values & self._common[-1]):
            common = _show_all(self._common[-1]) if self._count else "no value"
            return Refusal(f"{self.attribute} is {_show_all(values)}, devices already chosen have {common} in common")
        return None


class DistinctValues(_Scope, Generic[Value]):
    """No two devices share a value; how long values are remembered depends on the minor version."""

    def __init__(self, attribute: str, requests: tuple[str, ...], kind: Distinct, forms: Forms[Value]) -> None:
        super().__init__(attribute, requests)
        self._kind = kind
        self._forms = forms
        self._seen: list[Value] = []
        self._latest: dict[str, Value] = {}
        self._count = 0

    def _remembered(self) -> list[Value]:
        return self._seen if self._kind is Distinct.ALL else list(self._latest.values())

    def _read(self, found: DeviceAttribute, candidate: Candidate) -> Value:
        return self._forms.read(found, candidate if self._kind is Distinct.SAME_DEVICE else None)

    def add(self, request: str, candidate: Candidate) -> bool:
        found = find_attribute(candidate.device, candidate.id[0], self.attribute)
        if found is None:
            return False
        value = self._read(found, candidate)
        if (self._count or self._kind is Distinct.ALL) and self._forms.clash(value, self._remembered()):
            return False
        self._count += 1
        self._latest[request] = value
        if self._kind is Distinct.ALL:
            self._seen.append(value)
        return True

    def remove(self, request: str) -> None:
        self._count -= 1
        # One entry for each request: giving back a second device forgets the first one, too.
        self._latest.pop(request, None)
        if self._kind is Distinct.ALL:
            self._seen.pop()

    def explain(self, candidate: Candidate) -> Refusal | None:
        found = find_attribute(candidate.device, candidate.id[0], self.attribute)
        if found is None:
            return Refusal(f"attribute {self.attribute} is not set")
        value = self._read(found, candidate)
        if self._forms.clash(value, self._remembered()):
            return Refusal(f"{self.attribute} is {self._forms.show(value)}, which a device already chosen has")
        return None


class Forms(NamedTuple, Generic[Value]):
    """How attributes are read, compared with those of devices chosen already, and shown."""

    read: Callable[[DeviceAttribute, Candidate | None], Value]
    clash: Callable[[Value, list[Value]], bool]
    show: Callable[[Value], str]


def build_constraints(claim: ResourceClaim, profile: Profile) -> list[Constraint]:
    return [_build(claim, index, written, profile) for index, written in enumerate(claim.spec.devices.constraints)]


def _build(claim: ResourceClaim, index: int, written: DeviceConstraint, profile: Profile) -> Constraint:
    if written.match_attribute is not None:
        if profile.lists:
            return MatchLists(written.match_attribute, written.requests, restores=profile.restores_lists)
        return Match(written.match_attribute, written.requests)
    if written.distinct_attribute is not None and profile.distinct is not Distinct.UNKNOWN:
        if profile.lists:
            return DistinctValues(written.distinct_attribute, written.requests, profile.distinct, _LISTS)
        return DistinctValues(written.distinct_attribute, written.requests, profile.distinct, _PLAIN)
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


def elements(attribute: DeviceAttribute) -> frozenset[Element] | None:
    """A list's values, or the plain value as the only one; None if there is none."""
    lists: tuple[tuple[str, tuple[object, ...] | None], ...] = (
        ("int", attribute.ints),
        ("bool", attribute.bools),
        ("string", attribute.strings),
        ("version", attribute.versions),
    )
    for kind, values in lists:
        if values:
            return frozenset((kind, value) for value in values)
    plain = comparable(attribute)
    return None if plain is None else frozenset((plain,))


def _read_plain(attribute: DeviceAttribute, identity: Candidate | None) -> Comparable:
    value = comparable(attribute)
    return (value[0], identity.id) if value is not None and identity is not None else value


def _clash_plain(value: Comparable, known: list[Comparable]) -> bool:
    return bool(known) and (value is None or value in known)


def _clash_lists(values: frozenset[Element] | None, known: list[frozenset[Element] | None]) -> bool:
    return values is None or any(other is not None and not values.isdisjoint(other) for other in known)


def _show(value: Comparable) -> str:
    return "of an unknown type" if value is None else f"{value[1]!r}"


def _show_all(values: frozenset[Element] | None) -> str:
    return "of an unknown type" if values is None else ", ".join(sorted(repr(value) for _, value in values))


_PLAIN = Forms(_read_plain, _clash_plain, _show)
_LISTS = Forms(lambda attribute, _: elements(attribute), _clash_lists, _show_all)
