"""Plain values that allocation starts from: nodes, slices, classes, claims, and what claims hold already."""

from collections.abc import Iterable
from typing import NamedTuple, Self, TypeAlias

import msgspec

from fishplate.k8s.claim import DeviceClass, DeviceRequestAllocationResult, ResourceClaim, default_claim
from fishplate.k8s.quantity import Quantity, parse_quantity
from fishplate.k8s.resource import QuantityText, ResourceSlice

DeviceID: TypeAlias = tuple[str, str, str]
"""Driver, pool, device."""
PoolID: TypeAlias = tuple[str, str]
"""Driver, pool."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    labels: dict[str, str] = {}


Spelling: TypeAlias = tuple[str, tuple[str, ...], int]
"""Driver, attribute names as they are written, and how many devices."""


class Sheet(NamedTuple):
    """A slice whose devices all have the same attribute names, as columns.

    `spelling` stands for the driver, those names and how many devices there are; `devices` are the devices' names. For
    each attribute name `columns` has a number that stands for the values of all devices: equal numbers mean equal
    values, device by device.
    """

    origin: ResourceSlice
    pool: PoolID
    spelling: int
    devices: tuple[str, ...]
    columns: tuple[int, ...]


class Oddities(NamedTuple):
    """What can be said of slices whatever the claim. See `fishplate.dra.oddities`.

    `pools`: those that must not be judged by likeness. `sheets`: by the slice's id, where attributes are all that tells
    devices of that driver apart. `spellings`: by their number.
    """

    pools: frozenset[PoolID]
    sheets: dict[int, Sheet]
    spellings: tuple[Spelling, ...]


class World(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster at one moment. `claims` are those that matter for what is in use: the ones with an allocation."""

    slices: tuple[ResourceSlice, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    odd: Oddities | None = None
    """None if nobody looked."""

    def defaulted(self) -> Self:
        """The world as the API server would have stored it; needed for hand-written YAML."""
        return msgspec.structs.replace(self, claims=tuple(default_claim(claim) for claim in self.claims))


class Holdings(NamedTuple):
    """What is taken: whole devices by pool (and by which claim), shares, and the capacity that shares consume."""

    devices: dict[PoolID, dict[str, str]]
    shared: set[DeviceID]
    capacity: dict[DeviceID, dict[str, Quantity]]

    def owner(self, identity: DeviceID) -> str | None:
        """The claim that holds the whole device."""
        held = self.devices.get(identity[:2])
        return None if held is None else held.get(identity[2])

    def add(self, result: DeviceRequestAllocationResult, owner: str, *, consumable: bool) -> None:
        """Admin access holds nothing; a share holds capacity instead of the device."""
        if result.admin_access:
            return
        if not consumable or result.share_id is None:
            self.devices.setdefault((result.driver, result.pool), {})[result.device] = owner
            return
        identity = (result.driver, result.pool, result.device)
        self.shared.add(identity)
        if result.consumed_capacity is not None:
            taken = self.capacity.setdefault(identity, {})
            for name, amount in result.consumed_capacity.items():
                consumed = read_quantity(amount)
                taken[name] = taken[name] + consumed if name in taken else consumed


def count_holdings(claims: Iterable[ResourceClaim], *, consumable: bool) -> Holdings:
    """A large fleet has tens of thousands of results, so the common one costs no call, and its driver's name is kept
    once: comparing with a text that lies elsewhere for each costs more than all the rest."""
    holdings = Holdings({}, set(), {})
    devices, drivers = holdings.devices, dict[str, str]()
    for claim in claims:
        allocation = claim.status.allocation
        if allocation is None:
            continue
        owner = str(claim)
        for result in allocation.devices.results:
            if result.admin_access or result.share_id is not None:
                holdings.add(result, owner, consumable=consumable)
                continue
            pool = (drivers.setdefault(result.driver, result.driver), result.pool)
            held = devices.get(pool)
            if held is None:
                devices[pool] = {result.device: owner}
            else:
                held[result.device] = owner
    return holdings


class WrittenQuantity(Quantity):
    """A quantity that remembers how it was written: upstream's notion of "the same as the default" includes that."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        read = parse_quantity(text)
        super().__init__(read.mantissa, read.exponent, read.family, small=read.small)
        self.text = text


def read_quantity(text: QuantityText) -> WrittenQuantity:
    return WrittenQuantity((text if isinstance(text, str) else _number_text(text)).strip())


def _number_text(number: float) -> str:
    """A bare JSON number; Kubernetes reads its text, which is lost, so the shortest text stands in."""
    return str(number) if isinstance(number, int) else repr(number)
