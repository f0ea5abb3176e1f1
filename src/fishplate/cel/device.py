"""A device as selectors see it: driver, attributes, capacity, and whether it may be allocated more than once.

Nothing is converted before it is read. The attributes stay the mapping that a ResourceSlice was decoded to, keyed by
qualified name; generated selectors take the few values they want straight from it, and the nested maps that CEL talks
about are made only when the evaluator walks over them. What upstream does for every device, look at every attribute
and fail where one has no usable value, is done for every device here too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from fishplate.cel.values import CelMap, DomainMap, Value
from fishplate.errors import InputError
from fishplate.k8s.quantity import Quantity, parse_quantity
from fishplate.k8s.semver import Semver, parse_semver

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fishplate.k8s.resource import DeviceAttribute, DeviceCapacity, QuantityText

Scalar: TypeAlias = "int | bool | str | Semver"
AttributeValue: TypeAlias = "Scalar | tuple[Scalar, ...]"


class Device(msgspec.Struct, gc=False):
    """A view of a device in a slice. Cheap to make: one for each device of a fleet, again and again.

    `sound` says for which kind of environment every attribute was found usable: True for one that accepts lists, False
    for one that does not, None while nobody looked.
    """

    driver: str
    attributes: Mapping[str, DeviceAttribute]
    capacity: Mapping[str, DeviceCapacity] = {}
    allow_multiple_allocations: bool = False
    sound: bool | None = None

    def as_value(self, *, lists: bool) -> CelMap:
        """The `device` variable; InputError where an attribute has no usable value, whatever the selector reads."""
        return CelMap.of(
            {
                "driver": self.driver,
                "allowMultipleAllocations": self.allow_multiple_allocations,
                "attributes": by_domain(self.driver, self.read_attributes(lists=lists)),
                "capacity": by_domain(self.driver, self.read_capacity()),
            }
        )

    def read_attributes(self, *, lists: bool) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for name, attribute in self.attributes.items():
            try:
                values[name] = attribute_value(attribute, lists=lists)
            except InputError as error:
                raise InputError(f"attribute {name}: {error.what}") from error
        return values

    def read_capacity(self) -> dict[str, Value]:
        return {name: amount(entry.value) for name, entry in self.capacity.items()}


def attribute_value(attribute: DeviceAttribute, *, lists: bool) -> AttributeValue:
    """The one value, looked for in upstream's order; InputError says what upstream says.

    Lists come first where they are accepted. Where they are not, they are as good as not there.
    """
    if lists:
        for plain in (attribute.ints, attribute.bools, attribute.strings):
            if plain is not None:
                return plain
        if attribute.versions is not None:
            return tuple(_version(text) for text in attribute.versions)
    if attribute.int_ is not None:
        return attribute.int_
    if attribute.bool_ is not None:
        return attribute.bool_
    if attribute.string is not None:
        return attribute.string
    if attribute.version is not None:
        return _version(attribute.version)
    raise InputError("unsupported attribute value")


def _version(text: str) -> Semver:
    try:
        return parse_semver(text)
    except InputError as error:
        raise InputError(f"parse semantic version: {error.what}") from error


def amount(written: QuantityText) -> Quantity:
    """JSON allows a bare number where a quantity stands, and spaces around a text."""
    return parse_quantity(str(written).strip())


def by_domain(driver: str, values: Mapping[str, Value]) -> DomainMap:
    domains: dict[str, dict[str, Value]] = {}
    for name, value in values.items():
        domain, slash, key = name.partition("/")
        if slash:
            domains.setdefault(domain, {})[key] = value
        else:
            # Where `x` and `driver/x` both exist, upstream takes either; the qualified one is as good.
            domains.setdefault(driver, {}).setdefault(name, value)
    return DomainMap({(str, domain): (domain, CelMap.of(inner)) for domain, inner in domains.items()})
