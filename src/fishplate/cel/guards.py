"""What generated selectors call: each lets through the values that the code understands, and refuses others."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from fishplate.cel.attributes import look_up
from fishplate.cel.device import attribute_value, by_domain
from fishplate.cel.library.lists import includes, includes_short
from fishplate.cel.values import EMPTY_MAP, NONE, CelMap, DomainMap, Err, Optional, equal
from fishplate.k8s.quantity import Quantity, parse_quantity
from fishplate.k8s.semver import PLAIN_VERSION, Semver, parse_semver

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fishplate.cel.device import Device
    from fishplate.cel.values import Value
    from fishplate.k8s.resource import DeviceAttribute, QuantityText

_Kind = TypeVar("_Kind")

# The API's limits: for strings in attributes (and more than a list attribute can hold), for names, for attributes.
LONGEST_VALUE = 64
LONGEST_NAME = 63 + 1 + 32
MOST_ENTRIES = 32
_MOST_VERSIONS = 4096
# Fleets run few versions, so those that were found to parse are remembered, up to a bound.
SOUND_VERSIONS: set[str] = set()


class Unsupported(Exception):
    """Not in the hot subset; or, at run time, a value that the generated code leaves to the reference evaluator."""


def _refuse() -> bool:
    raise Unsupported


def _miss() -> None:
    raise KeyError


def _absorb(decides: bool, *terms: Callable[[], bool]) -> bool:
    """`&&` and `||` where a missing key waits for a side that decides."""
    missed = False
    for term in terms:
        try:
            if term() is decides:
                return decides
        except KeyError:
            missed = True
    if missed:
        raise KeyError
    return not decides


def _has_domain(names: Mapping[str, object], driver: str, domain: str) -> bool:
    if driver == domain and any("/" not in name for name in names):
        return True
    prefix = f"{domain}/"
    # A name is split at its first slash, so a domain that holds one is never there.
    return "/" not in domain and any(name.startswith(prefix) for name in names)


def _check_attribute(attribute: DeviceAttribute, lists: bool) -> None:
    """Raises InputError where the attribute has no usable value; nothing is read of it here."""
    version = attribute.version
    if version is not None and PLAIN_VERSION.fullmatch(version) is not None:
        if len(SOUND_VERSIONS) < _MOST_VERSIONS:
            SOUND_VERSIONS.add(version)
        if attribute.versions is None:
            return
    attribute_value(attribute, lists=lists)


def _list_value(attribute: DeviceAttribute) -> Value:
    return attribute_value(attribute, lists=True)


def _amount(written: QuantityText) -> Quantity:
    return parse_quantity(written if type(written) is str else str(written))


def _short(value: Value) -> Value:
    """Any attribute's value, unless it is longer than the API allows."""
    if type(value) is str:
        return _short_text(value)
    if type(value) is tuple:
        for item in _short_list(value):
            _short(item)
    return value


def _measure(names: Mapping[str, object], driver: str) -> None:
    if len(names) > MOST_ENTRIES or len(driver) > LONGEST_VALUE or max(map(len, names), default=0) > LONGEST_NAME:
        raise Unsupported


def _domains(names: Mapping[str, object], driver: str) -> list[str]:
    """The keys of device.attributes or device.capacity, unless that is larger than the API allows."""
    _measure(names, driver)
    return list(dict.fromkeys([name.partition("/")[0] if "/" in name else driver for name in names]))


def _ids(names: Mapping[str, object], driver: str, domain: str) -> list[str]:
    """The keys of one domain."""
    _measure(names, driver)
    found: dict[str, None] = {}
    for name in names:
        head, slash, tail = name.partition("/")
        if (head if slash else driver) == domain:
            found[tail if slash else name] = None
    return list(found)


def _whole(device: Device, table: str, lists: bool) -> DomainMap:
    """device.attributes or device.capacity as a map."""
    read = device.read_attributes(lists=lists) if table == "attributes" else device.read_capacity()
    _measure(read, device.driver)
    for value in read.values():
        _short(value)
    return by_domain(device.driver, read)


def _bound(value: Value) -> Value:
    """What cel.bind binds: upstream forgets there that an empty device.attributes has every domain."""
    return EMPTY_MAP if type(value) is DomainMap and not len(value) else value


def _only(kind: type[_Kind]) -> Callable[[object], _Kind]:
    def guard(value: object) -> _Kind:
        if type(value) is kind:
            return value
        raise Unsupported

    return guard


def _short_text(value: object) -> str:
    if type(value) is str and len(value) <= LONGEST_VALUE:
        return value
    raise Unsupported


def _short_list(value: object) -> tuple[object, ...]:
    if type(value) is tuple and len(value) <= LONGEST_VALUE:
        return value
    raise Unsupported


def _flag(value: object) -> bool:
    if value is True or value is False:
        return value
    raise Unsupported


def _included(value: object, wanted: object, search: Callable[[Value, Value], Value]) -> bool:
    if type(value) is tuple and len(value) > LONGEST_VALUE:
        raise Unsupported
    return _flag(search(value, wanted))


def _sure(value: Value) -> Value:
    if type(value) is Err:
        raise Unsupported
    return value


def _element(container: Value, key: Value) -> Value:
    return _sure(look_up(container, key, optional=False))


def _is_member(value: Value, members: frozenset[tuple[type, Value]]) -> bool:
    """`in` over constants. Versions are left out: upstream panics on them."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or kind is float:
        return (kind, value) in members
    raise Unsupported


def _turns(over: Value) -> tuple[Value, ...]:
    """What a loop with one variable walks over."""
    if type(over) is tuple:
        return over
    if isinstance(over, CelMap):
        return tuple(key for key, _ in over.items())
    raise Unsupported


def _pairs(over: Value) -> list[tuple[Value, Value]]:
    """What a loop with two variables walks over."""
    if type(over) is tuple:
        return list(enumerate(over))
    if isinstance(over, CelMap):
        return list(over.items())
    raise Unsupported


NAMES: dict[str, object] = {
    "Err": Err,
    "NONE": NONE,
    "Optional": Optional,
    "Semver": Semver,
    "absorb": _absorb,
    "amount": _amount,
    "bound": _bound,
    "check_attribute": _check_attribute,
    "domains": _domains,
    "element": _element,
    "equal": equal,
    "flag": _flag,
    "has_domain": _has_domain,
    "ids": _ids,
    "included": _included,
    "includes": includes,
    "includes_short": includes_short,
    "integer": _only(int),
    "is_member": _is_member,
    "list_value": _list_value,
    "missing": _miss,
    "option": _only(Optional),
    "pairs": _pairs,
    "parse_semver": parse_semver,
    "refuse": _refuse,
    "short": _short,
    "short_list": _short_list,
    "short_text": _short_text,
    "sound_versions": SOUND_VERSIONS,
    "sure": _sure,
    "text": _only(str),
    "turns": _turns,
    "version": _only(Semver),
    "whole": _whole,
}
