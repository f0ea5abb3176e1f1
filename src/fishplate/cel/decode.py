"""Devices from the JSON of a ResourceSlice: the one place where attribute values get their types."""

from __future__ import annotations

from sys import intern
from typing import TYPE_CHECKING

from fishplate.cel.device import Device
from fishplate.errors import InputError
from fishplate.k8s.quantity import Quantity, parse_quantity
from fishplate.k8s.semver import parse_semver

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fishplate.cel.device import AttributeValue, Scalar

_PLAIN: dict[str, type] = {"string": str, "int": int, "bool": bool}
_SCALARS = frozenset(("int", "bool", "string", "version"))
_LISTS = {"ints": "int", "bools": "bool", "strings": "string", "versions": "version"}


def decode_device(
    driver: str,
    attributes: Mapping[str, Mapping[str, object]],
    capacity: Mapping[str, Mapping[str, object]] | None = None,
    *,
    allow_multiple_allocations: bool = False,
) -> Device:
    """A device from `attributes: {name: {string: …}}` and `capacity: {name: {value: …}}`.

    An attribute without a usable value does not fail here: upstream fails every selector on such a device, so the
    device carries the message.
    """
    values: dict[str, AttributeValue] = {}
    problem = ""
    for name, attribute in attributes.items():
        # Most attributes hold one plain value; this loop is the cost of reading a fleet, so they take the short way.
        if len(attribute) == 1:
            ((kind, value),) = attribute.items()
            if _PLAIN.get(kind) is type(value):
                values[intern(name)] = value  # type: ignore[assignment]
                continue
        try:
            values[intern(name)] = decode_attribute(attribute)
        except InputError as error:
            problem = problem or f"attribute {name}: {error.what}"
    amounts: dict[str, Quantity] = {}
    for name, entry in (capacity or {}).items():
        amount = entry.get("value")
        amounts[intern(name)] = amount if isinstance(amount, Quantity) else parse_quantity(str(amount))
    return Device(driver, values, amounts, allow_multiple_allocations=allow_multiple_allocations, problem=problem)


def decode_attribute(attribute: Mapping[str, object]) -> AttributeValue:
    """The value of the one field that is set; InputError says what upstream says."""
    if len(attribute) == 1:
        ((kind, value),) = attribute.items()
        if kind in _SCALARS and value is not None:
            return _scalar(kind, value)
    for plural, singular in _LISTS.items():
        items = attribute.get(plural)
        if isinstance(items, list | tuple):
            return tuple(_scalar(singular, item) for item in items)
    for kind in ("int", "bool", "string", "version"):
        value = attribute.get(kind)
        if value is not None:
            return _scalar(kind, value)
    raise InputError("unsupported attribute value")


def _scalar(kind: str, value: object) -> Scalar:
    if kind == "version" and isinstance(value, str):
        try:
            return parse_semver(value)
        except InputError as error:
            raise InputError(f"parse semantic version: {error.what}") from error
    if isinstance(value, bool | int | str):
        return value
    raise InputError("unsupported attribute value")
