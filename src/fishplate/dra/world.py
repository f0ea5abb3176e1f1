"""Plain values that allocation starts from: nodes, slices, classes, claims, and what claims hold already."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from fishplate.k8s.claim import DeviceClass, ResourceClaim, default_claim
from fishplate.k8s.quantity import Quantity, parse_quantity
from fishplate.k8s.resource import QuantityText, ResourceSlice

if TYPE_CHECKING:
    from collections.abc import Iterable

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

    def defaulted(self) -> World:
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


def read_quantity(text: QuantityText) -> Quantity:
    return parse_quantity(text if isinstance(text, str) else _number_text(text))


def _number_text(number: float) -> str:
    """A bare JSON number; Kubernetes reads its text, which is lost, so the shortest text stands in."""
    return str(number) if isinstance(number, int) else repr(number)
