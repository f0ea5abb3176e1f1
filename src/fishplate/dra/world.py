"""Plain values that allocation starts from: nodes, slices, classes, claims, and what claims hold already."""

from collections.abc import Iterable
from typing import NamedTuple, Self, TypeAlias

import msgspec

from fishplate.errors import InputError
from fishplate.k8s.claim import DeviceClass, ResourceClaim, default_claim
from fishplate.k8s.quantity import Quantity, parse_quantity
from fishplate.k8s.resource import DeviceAttribute, QuantityText, ResourceSlice
from fishplate.k8s.semver import parse_semver

DeviceID: TypeAlias = tuple[str, str, str]
"""Driver, pool, device."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    labels: dict[str, str] = {}


class World(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster at one moment. `claims` are those that matter for what is in use: the ones with an allocation."""

    slices: tuple[ResourceSlice, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    odd: frozenset[DeviceID] | None = None
    """Devices on which every selector fails; None if nobody looked. `find_odd_devices` looks."""

    def defaulted(self) -> Self:
        """The world as the API server would have stored it; needed for hand-written YAML."""
        return msgspec.structs.replace(self, claims=tuple(default_claim(claim) for claim in self.claims))


class Holdings(NamedTuple):
    """What is taken: whole devices (and by which claim), shares, and the capacity that shares consume."""

    devices: dict[DeviceID, str]
    shared: dict[DeviceID, str]
    capacity: dict[DeviceID, dict[str, Quantity]]


def count_holdings(claims: Iterable[ResourceClaim], *, consumable: bool) -> Holdings:
    """Admin access holds nothing; a share holds capacity instead of the device."""
    holdings = Holdings({}, {}, {})
    for claim in claims:
        if claim.status.allocation is None:
            continue
        for result in claim.status.allocation.devices.results:
            if result.admin_access:
                continue
            identity = (result.driver, result.pool, result.device)
            if not consumable or result.share_id is None:
                holdings.devices[identity] = str(claim)
                continue
            holdings.shared[identity] = str(claim)
            if result.consumed_capacity is not None:
                held = holdings.capacity.setdefault(identity, {})
                for name, amount in result.consumed_capacity.items():
                    consumed = read_quantity(amount)
                    held[name] = held[name] + consumed if name in held else consumed
    return holdings


def find_odd_devices(slices: Iterable[ResourceSlice]) -> frozenset[DeviceID]:
    """Devices with a list, no value or no valid version in some attribute: there, what selectors read is not all."""
    return frozenset(
        (origin.spec.driver, origin.spec.pool.name, device.name)
        for origin in slices
        for device in origin.spec.devices
        for attribute in device.attributes.values()
        if attribute.string is None
        and attribute.int_ is None
        and attribute.bool_ is None
        and not _is_version(attribute)
    )


def _is_version(attribute: DeviceAttribute) -> bool:
    if attribute.version is None:
        return False
    try:
        parse_semver(attribute.version)
    except InputError:
        return False
    return True


def read_quantity(text: QuantityText) -> Quantity:
    return parse_quantity(text if isinstance(text, str) else _number_text(text))


def _number_text(number: float) -> str:
    """A bare JSON number; Kubernetes reads its text, which is lost, so the shortest text stands in."""
    return str(number) if isinstance(number, int) else repr(number)
