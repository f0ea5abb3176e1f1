"""What a survey of a fleet must know of its devices whatever the claim: found once, when slices are loaded.

Devices lie scattered over hundreds of megabytes, and going to each of 80,000 for each question takes longer than all
else together. So a slice is noted down as columns, one small number for the values of one attribute on all its devices;
a question then reads a few numbers for each slice and no device at all. There is no sheet where columns do not tell
everything: for odd pools, and where the devices of a driver differ in more than attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishplate.dra.world import Oddities, Sheet
from fishplate.errors import InputError
from fishplate.k8s.semver import parse_semver

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fishplate.dra.world import PoolID, Spelling
    from fishplate.k8s.resource import Device, DeviceAttribute, ResourceSlice


def find_oddities(slices: Iterable[ResourceSlice]) -> Oddities:
    """Odd, and not to be judged by what selectors read, is a pool with devices

    - with a list, no value or no valid version in any attribute: every selector fails on them, whatever it reads;
    - with two spellings of one attribute, with and without the driver's domain;
    - of one name in one slice, which makes the pool invalid;
    - with counters, binding conditions or taints, or shared without any capacity: there the search sees more than
      attributes and capacity.

    Even a device in use can spoil its pool, or move it to the end.
    """
    finder = _Finder()
    for origin in slices:
        finder.look(origin)
    return finder.conclude()


class _Finder:
    def __init__(self) -> None:
        self._odd: set[PoolID] = set()
        # Where texts are the same on many nodes, one serves all: a survey then finds it in the processor's cache.
        self._drivers: dict[str, str] = {}
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._sheets: dict[int, Sheet] = {}
        self._capacities: dict[str, set[object]] = {}
        self._spellings: dict[Spelling, int] = {}
        self._twins: set[int] = set()
        self._columns: dict[tuple[DeviceAttribute, ...], int] = {}
        self._odd_columns: set[int] = set()

    def conclude(self) -> Oddities:
        mixed = {driver for driver, kinds in self._capacities.items() if len(kinds) > 1 or None in kinds}
        if mixed or self._odd:
            self._sheets = {
                key: sheet
                for key, sheet in self._sheets.items()
                if sheet.pool[0] not in mixed and sheet.pool not in self._odd
            }
        return Oddities(frozenset(self._odd), self._sheets, tuple(self._spellings))

    def look(self, origin: ResourceSlice) -> None:
        spec = origin.spec
        driver, devices = self._drivers.setdefault(spec.driver, spec.driver), spec.devices
        pool = (driver, spec.pool.name)
        names = tuple([device.name for device in devices])
        names = self._names.setdefault(names, names)
        kinds = self._capacities.setdefault(driver, set())
        spellings = set()
        for device in devices:
            spellings.add(self._number_spelling((driver, tuple(device.attributes), len(devices))))
            kinds.add(None if device.allow_multiple_allocations else tuple(device.capacity.items()))
            if _is_special(device):
                self._odd.add(pool)
        if len(set(names)) != len(names) or not self._twins.isdisjoint(spellings):
            self._odd.add(pool)
        if len(spellings) > 1:
            # Each device by itself: only whether it is odd can be told in advance.
            columns = [(attribute,) for device in devices for attribute in device.attributes.values()]
        else:
            columns = list(zip(*(device.attributes.values() for device in devices), strict=True))
        numbers = tuple([self._number_column(column) for column in columns])
        if not self._odd_columns.isdisjoint(numbers):
            self._odd.add(pool)
        if len(spellings) == 1:
            self._sheets[id(origin)] = Sheet(origin, pool, spellings.pop(), names, numbers)

    def _number_spelling(self, spelling: Spelling) -> int:
        number = self._spellings.get(spelling)
        if number is None:
            number = self._spellings[spelling] = len(self._spellings)
            driver, names, _ = spelling
            if any(f"{driver}/{name}" in names for name in names):
                self._twins.add(number)
        return number

    def _number_column(self, column: tuple[DeviceAttribute, ...]) -> int:
        number = self._columns.get(column)
        if number is None:
            number = self._columns[column] = len(self._columns)
            if not all(map(_is_plain, column)):
                self._odd_columns.add(number)
        return number


def _is_special(device: Device) -> bool:
    return bool(
        device.consumes_counters
        or device.binding_conditions is not None
        or device.taints
        or (device.allow_multiple_allocations and not device.capacity)
    )


def _is_plain(attribute: DeviceAttribute) -> bool:
    if attribute.ints is not None or attribute.bools is not None:
        return False
    if attribute.strings is not None or attribute.versions is not None:
        return False
    if attribute.version is None:
        return attribute.value is not None
    try:
        parse_semver(attribute.version)
    except InputError:
        return False
    return True
