"""When two nodes are alike for a set of claims: the same search, step for step, under other names.

A node's devices become symbols. A symbol stands for all that the search can see of a device: which requests select it
(or with which error), whether it is in use, its taints, capacity and shares. Devices that no request can ever take are
left out. Attribute values that only constraints read are compared, never looked at, so they count up to renaming: the
first value seen on a node is 0, the next different one is 1. Nodes with equal sequences are alike.

Sound by construction, and only where the search cannot see more than symbols: nodes whose pools are complete, sound,
free of counters and theirs alone. `describe` returns None for every other node, and that node must be asked itself.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fishplate.dra.constraints import Comparable, comparable, find_attribute
from fishplate.dra.oddities import find_oddities
from fishplate.dra.pools import Candidate, Pool
from fishplate.dra.requests import Preparation
from fishplate.errors import AllocationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fishplate.dra.requests import Prepared
    from fishplate.dra.scene import Scene
    from fishplate.dra.world import DeviceID, Node, Sheet
    from fishplate.k8s.claim import DeviceConstraint, ResourceClaim
    from fishplate.k8s.resource import Device, DeviceAttribute, ResourceSlice

Key: TypeAlias = tuple[object, ...]
_INERT = 0
_NONE: dict[str, str] = {}


class _Layout:
    """Devices of one driver that have the same of the wanted names, and the symbols of those seen so far.

    Devices of a driver mostly agree, so the last layout is tried first: reading it fails where a name is missing.
    """

    __slots__ = ("absent", "read", "symbols")

    def __init__(self, wanted: Sequence[str], present: tuple[str, ...]) -> None:
        self.absent = frozenset(wanted) - set(present)
        self.read: Callable[[Mapping[str, DeviceAttribute]], object] = (
            itemgetter(*present) if present else _read_nothing
        )
        self.symbols: dict[object, int] = {}


class _Reader(NamedTuple):
    """Slices of one spelling: which of their columns are read, and the symbols of the devices in slices seen so far."""

    read: Callable[[tuple[int, ...]], object]
    symbols: dict[object, tuple[int, ...]]


def _has_twin(name: str, driver: str, present: tuple[str, ...]) -> bool:
    """Whether the other spelling of this name is there."""
    return f"{driver}/{name}" in present or (name.startswith(f"{driver}/") and name[len(driver) + 1 :] in present)


def _read_nothing(_anything: object) -> object:
    return None


class Likeness:
    """Made for one scene and one pod's claims; AllocationError if they make no sense anywhere."""

    def __init__(self, scene: Scene, node: Node, claims: Sequence[ResourceClaim]) -> None:
        self._scene = scene
        odd = scene.world.odd if scene.world.odd is not None else find_oddities(scene.world.slices)
        self._odd = odd
        self._used = scene.holdings.devices
        self._preparation = Preparation(scene, node, [])
        self._prepared = [self._preparation.prepare(claim) for claim in claims]
        wanted = [each for claim in self._prepared for alternatives in claim.requests for each in alternatives]
        # Those two look at devices in use.
        self._minds_used = any(each.admin or each.takes_all for each in wanted)
        self._constrained = sorted(
            {name for claim in claims for each in claim.spec.devices.constraints for name in _attribute_names(each)}
        )
        self._reads = self._collect_reads()
        self._whole = self._reads is None
        self._more = self._minds_used or self._whole or bool(scene.holdings.capacity)
        self._sheets: dict[int, Sheet] = {} if self._more else odd.sheets
        self._readers: dict[int, _Reader] = {}
        self._latest: dict[str, _Layout] = {}
        self._layouts: dict[tuple[str, tuple[str, ...]], _Layout] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        self._meanings: dict[int, tuple[int, tuple[Comparable, ...]]] = {}
        self._bases: dict[Key, int] = {}
        self._canonical: dict[tuple[int, ...], int] = {}
        self._numbers: dict[Key, int] = {}

    def _collect_reads(self) -> frozenset[tuple[str, str, str]] | None:
        """What selectors read of a device; None if that cannot be told."""
        found: set[tuple[str, str, str]] = set()
        for each in self._all_selectors():
            program = self._scene.selectors.compile(each)
            if isinstance(program, str):
                continue
            if program.reads.everything:
                return None
            found |= program.reads.items
        return frozenset(found)

    def _all_selectors(self) -> list[str]:
        wanted = [each for claim in self._prepared for alternatives in claim.requests for each in alternatives]
        lists = [
            selectors for each in wanted for selectors in (each.device_class.spec.selectors, each.written.selectors)
        ]
        return [selector.cel.expression for selectors in lists for selector in selectors if selector.cel is not None]

    def describe(self, node: Node) -> int | None:
        """Equal for nodes that are alike; None for a node that has to be asked itself."""
        slices = self._scene.local_slices(node)
        if slices is None:
            return None
        symbols: list[int] = []
        for origin in slices:
            if not self._add_symbols(origin, symbols):
                return None
        raw = tuple(symbols)
        number = self._canonical.get(raw)
        if number is None:
            number = self._canonical[raw] = self._numbers.setdefault(self._rename(raw), len(self._numbers))
        return number

    def _add_symbols(self, origin: ResourceSlice, symbols: list[int]) -> bool:
        """What a survey of a large fleet spends its time in: no device is looked at where its like was seen."""
        sheet = self._sheets.get(id(origin))
        if sheet is None:
            return self._look_closely(origin, symbols)
        _, pool, spelling, names, columns = sheet
        reader = self._readers.get(spelling)
        if reader is None:
            reader = self._readers[spelling] = self._make_reader(spelling)
        read, known = reader
        key = read(columns)
        found = known.get(key)
        if found is None:
            found = known[key] = tuple(
                self._find_symbol(origin, device, in_use=False) for device in origin.spec.devices
            )
        used = self._used.get(pool, _NONE)
        for symbol, name in zip(found, names, strict=True):
            if symbol and name not in used:
                symbols.append(symbol)
        return True

    def _make_reader(self, spelling: int) -> _Reader:
        driver, names, _ = self._odd.spellings[spelling]
        positions = [names.index(name) for name in self._wanted_names(driver) if name in names]
        return _Reader(itemgetter(*positions) if positions else _read_nothing, {})

    def _look_closely(self, origin: ResourceSlice, symbols: list[int]) -> bool:
        """Device by device; False if the slice must not be judged at all."""
        pool = (origin.spec.driver, origin.spec.pool.name)
        if pool in self._odd.pools:
            return False
        used = self._used.get(pool, _NONE)
        for device in origin.spec.devices:
            in_use = device.name in used
            if self._minds_used or not in_use:
                symbol = self._find_symbol(origin, device, in_use=in_use)
                if symbol:
                    symbols.append(symbol)
        return True

    def _find_symbol(self, origin: ResourceSlice, device: Device, *, in_use: bool) -> int:
        driver, attributes = origin.spec.driver, device.attributes
        layout = self._latest.get(driver)
        if layout is None or (layout.absent and not attributes.keys().isdisjoint(layout.absent)):
            layout = self._find_layout(driver, attributes)
        try:
            key = layout.read(attributes)
        except KeyError:
            layout = self._find_layout(driver, attributes)
            key = layout.read(attributes)
        if self._more or device.allow_multiple_allocations or device.capacity:
            identity = (driver, origin.spec.pool.name, device.name)
            key = (key, self._describe_more(identity, device, in_use=in_use))
        symbol = layout.symbols.get(key)
        if symbol is None:
            symbol = layout.symbols[key] = self._learn(origin, device, in_use=in_use)
        return symbol

    def _find_layout(self, driver: str, attributes: Mapping[str, DeviceAttribute]) -> _Layout:
        wanted = self._wanted_names(driver)
        present = tuple(name for name in wanted if name in attributes)
        # A name without its domain where the full one is present: such a device is odd and never gets here.
        wanted = tuple(name for name in wanted if name in present or not _has_twin(name, driver, present))
        layout = self._layouts.get((driver, present))
        if layout is None:
            layout = self._layouts[driver, present] = _Layout(wanted, present)
        self._latest[driver] = layout
        return layout

    def _describe_more(self, identity: DeviceID, device: Device, *, in_use: bool) -> Key:
        """Beyond attributes that are read. All attributes, where they count, come last: not once selectors answered."""
        shares: object = None
        holdings = self._scene.holdings
        if identity in holdings.shared or identity in holdings.capacity:
            held = holdings.capacity.get(identity, {})
            shares = tuple(sorted((name, amount.nanos) for name, amount in held.items()))
        whole = tuple(sorted(device.attributes.items(), key=itemgetter(0))) if self._whole else None
        return (tuple(device.capacity.items()), device.allow_multiple_allocations, shares, in_use, whole)

    def _wanted_names(self, driver: str) -> tuple[str, ...]:
        """Every name under which something that is read may stand in a device of this driver."""
        names = self._names.get(driver)
        if names is None:
            found: dict[str, None] = {}
            for kind, domain, name in sorted(self._reads or ()):
                if kind == "attribute":
                    found[f"{domain}/{name}"] = None
                    if domain == driver:
                        found[name] = None
            for full in self._constrained:
                found[full] = None
                domain, _, rest = full.partition("/")
                if domain == driver:
                    found[rest] = None
            names = self._names[driver] = tuple(found)
        return names

    def _learn(self, origin: ResourceSlice, device: Device, *, in_use: bool) -> int:
        """Ask every request about a device the like of which was not seen yet."""
        candidate = Candidate(device, origin, Pool((origin.spec.driver, "")), consumable=self._scene.profile.consumable)
        answers = tuple(self._ask(prepared, candidate) for prepared in self._prepared)
        if not any(answer is not False for claim in answers for answer in claim):
            return _INERT
        more = self._describe_more(candidate.id, device, in_use=in_use)[:-1]
        base = self._bases.setdefault((answers, more), len(self._bases))
        values = tuple(self._compared(device, origin.spec.driver, name) for name in self._constrained)
        symbol = len(self._meanings) + 1
        self._meanings[symbol] = (base, values)
        return symbol

    def _ask(self, prepared: Prepared, candidate: Candidate) -> tuple[bool | str, ...]:
        answers: list[bool | str] = []
        for alternatives in prepared.requests:
            for wanted in alternatives:
                try:
                    answers.append(self._preparation.is_selectable(prepared.claim, wanted, candidate, {}))
                except AllocationError as error:
                    answers.append(error.what.replace(f" on device {candidate}", ""))
        return tuple(answers)

    def _compared(self, device: Device, driver: str, name: str) -> Comparable:
        found = find_attribute(device, driver, name)
        if found is None:
            return ("missing", None)
        return comparable(found)

    def _rename(self, symbols: tuple[int, ...]) -> Key:
        """Values of constrained attributes by order of appearance."""
        columns = range(len(self._constrained))
        order: list[dict[Comparable, int]] = [{} for _ in columns]
        renamed: list[object] = []
        for symbol in symbols:
            base, values = self._meanings[symbol]
            renamed.append(base)
            for column in columns:
                value = values[column]
                if value is None or value[0] == "missing":
                    # Of no known type, or not there: constraints tell these two from values, not by equality.
                    renamed.append("unknown" if value is None else "missing")
                else:
                    renamed.append(order[column].setdefault(value, len(order[column])))
        return tuple(renamed)


def _attribute_names(constraint: DeviceConstraint) -> tuple[str, ...]:
    return tuple(name for name in (constraint.match_attribute, constraint.distinct_attribute) if name is not None)
