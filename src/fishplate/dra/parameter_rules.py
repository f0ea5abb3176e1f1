"""Wrong values of a NetworkConfig, in the words of upstream's validation (pkg/apis/validation.go).

Works on the JSON values, beside the check of their types: what has the wrong type is told there and passed over here.
"""

import ipaddress
import re
from collections.abc import Iterator, Mapping

from fishplate.documents import Path, Problem

_MIN_MTU, _MAX_NAME = 68, 15  # RFC 791; IFNAMSIZ - 1
_SCOPE_UNIVERSE, _SCOPE_LINK = 0, 253
_RESERVED_TABLES = (253, 254, 255)
_MAC = re.compile(
    r"(?:[0-9a-f]{2}([:-]))(?:[0-9a-f]{2}\1)*[0-9a-f]{2}\Z|[0-9a-f]{4}(?:\.[0-9a-f]{4})+\Z", re.IGNORECASE
)
_MAC_BYTES = (6, 8, 20)
_INT32 = range(-(2**31), 2**31)
# Under what upstream's messages speak of these fields.
_SIZES = {
    "gsoMaxSize": "gsoMaxSize",
    "groMaxSize": "groMaxSize",
    "gsoIPv4MaxSize": "gsov4MaxSize",
    "groIPv4MaxSize": "grov4MaxSize",
}


def find_value_problems(config: Mapping[str, object]) -> Iterator[Problem]:
    interface = _mapping(config.get("interface"))
    yield from _find_interface_problems(interface)
    for index, route in enumerate(_items(config.get("routes"))):
        yield from _find_route_problems(route, ("routes", index))
    rules = _items(config.get("rules"))
    if rules and interface.get("vrf") is not None:
        yield Problem(("rules",), "rules are not supported when VRF is enabled")
    else:
        for index, rule in enumerate(rules):
            yield from _find_rule_problems(rule, ("rules", index))
    for index, neighbor in enumerate(_items(config.get("neighbors"))):
        yield from _find_neighbor_problems(neighbor, ("neighbors", index))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _items(value: object) -> list[Mapping[str, object]]:
    return [_mapping(one) for one in value] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _find_interface_problems(interface: Mapping[str, object]) -> Iterator[Problem]:
    path: Path = ("interface",)
    yield from _find_name_problems(_text(interface.get("name")), (*path, "name"))
    addresses = interface.get("addresses")
    for index, one in enumerate(addresses if isinstance(addresses, list) else []):
        if isinstance(one, str) and not _is_prefix(one):
            yield Problem((*path, "addresses", index), f"invalid IP CIDR format '{one}'")
    if interface.get("dhcp") is True and addresses:
        yield Problem(path, "dhcp and addresses are mutually exclusive")
    for name in ("mtu", "arpIgnore", "arpAnnounce", *_SIZES):
        number = _number(interface.get(name))
        if number is not None and number not in _INT32:
            yield Problem((*path, name), f"{number} is no 32-bit integer")
    mtu = _number(interface.get("mtu"))
    if mtu is not None and mtu < _MIN_MTU:
        yield Problem((*path, "mtu"), f"must be at least {_MIN_MTU}, got {mtu}")
    address = interface.get("hardwareAddr")
    if isinstance(address, str) and not _is_mac(address):
        yield Problem((*path, "hardwareAddress"), f"invalid Hardware Address format '{address}'")
    for name, shown in _SIZES.items():
        size = _number(interface.get(name))
        if size is not None and size <= 0:
            yield Problem((*path, shown), f"must be positive, got {size}")
    ignore, announce = _number(interface.get("arpIgnore")), _number(interface.get("arpAnnounce"))
    if ignore is not None and ignore not in (0, 1, 2, 3, 8):
        yield Problem((*path, "arpIgnore"), f"must be one of 0, 1, 2, 3, or 8, got {ignore}")
    if announce is not None and announce not in (0, 1, 2):
        yield Problem((*path, "arpAnnounce"), f"must be between 0 and 2, got {announce}")
    if isinstance(interface.get("vrf"), Mapping):
        yield from _find_vrf_problems(_mapping(interface["vrf"]), (*path, "vrf"))


def _find_name_problems(name: str, path: Path) -> Iterator[Problem]:
    if len(name.encode("utf-8", "surrogatepass")) > _MAX_NAME:
        yield Problem(path, f"name '{name}' exceeds maximum length of {_MAX_NAME} characters")
    if "/" in name:
        yield Problem(path, f"name '{name}' cannot contain '/'")
    if any(char in " \t\n\v\f\r" for char in name):
        yield Problem(path, f"name '{name}' cannot contain whitespace")
    if name in (".", ".."):
        yield Problem(path, f"name '{name}' cannot be '.' or '..'")
    for char in name:
        if not (char.isalpha() or char.isdecimal() or char in "-_./" or char.isspace()):
            allowed = "Only letters, digits, '-', '_', '.' are recommended"
            yield Problem(path, f"name '{name}' contains invalid character '{char}'. {allowed}")


def _find_vrf_problems(vrf: Mapping[str, object], path: Path) -> Iterator[Problem]:
    if not vrf.get("name"):
        yield Problem((*path, "name"), "cannot be empty")
    table = _number(vrf.get("table"))
    if table is not None and table <= 0:
        yield Problem((*path, "table"), f"must be a positive integer, got {table}")
    if table in _RESERVED_TABLES:
        yield Problem((*path, "table"), f"cannot use reserved table ID {table}")


def _find_route_problems(route: Mapping[str, object], path: Path) -> Iterator[Problem]:
    destination = _text(route.get("destination"))
    family = _network_family(destination)
    if not destination:
        yield Problem((*path, "destination"), "cannot be empty")
    elif family is None:
        shown = f"invalid CIDR format '{destination}' (host routes use /32 or /128)"
        yield Problem((*path, "destination"), shown)
    scope = _number(route.get("scope")) or 0
    if scope not in (_SCOPE_UNIVERSE, _SCOPE_LINK):
        allowed = f"only Link ({_SCOPE_LINK}) or Universe ({_SCOPE_UNIVERSE}) allowed"
        yield Problem((*path, "scope"), f"invalid scope '{scope}', {allowed}")
    if not route.get("gateway") and scope != _SCOPE_LINK:
        yield Problem((*path, "gateway"), "must be specified for Universe scope routes")
    for name in ("gateway", "source"):
        if address := _text(route.get(name)):
            own = _address_family(address)
            if own is None:
                yield Problem((*path, name), f"invalid IP address format '{address}'")
            elif family is not None and own != family:
                shown = f"'{address}' must be the same IP family as destination '{destination}'"
                yield Problem((*path, name), shown)
    yield from _find_table_problems(route, path)


def _find_rule_problems(rule: Mapping[str, object], path: Path) -> Iterator[Problem]:
    priority = _number(rule.get("priority")) or 0
    if not 0 <= priority <= 32767:
        yield Problem((*path, "priority"), f"must be an integer between 0 and 32767, got {priority}")
    yield from _find_table_problems(rule, path)
    source, destination = _text(rule.get("source")), _text(rule.get("destination"))
    families = {
        name: _network_family(text) for name, text in (("source", source), ("destination", destination)) if text
    }
    for name, family in families.items():
        if family is None:
            yield Problem((*path, name), f"invalid CIDR format '{rule[name]}'")
    if None not in families.values() and len(set(families.values())) == 2:
        yield Problem(path, f"source '{source}' and destination '{destination}' must be the same IP family")


def _find_table_problems(given: Mapping[str, object], path: Path) -> Iterator[Problem]:
    table = _number(given.get("table"))
    if table is not None and table < 0:
        yield Problem((*path, "table"), f"must be a non-negative integer, got {table}")


def _find_neighbor_problems(neighbor: Mapping[str, object], path: Path) -> Iterator[Problem]:
    destination, address = _text(neighbor.get("destination")), _text(neighbor.get("hardwareAddr"))
    if not destination:
        yield Problem((*path, "destination"), "cannot be empty")
    elif _address_family(destination) is None:
        yield Problem((*path, "destination"), f"invalid IP address format '{destination}'")
    if not address:
        yield Problem((*path, "hardwareAddress"), "cannot be empty")
    elif not _is_mac(address):
        yield Problem((*path, "hardwareAddress"), f"invalid Hardware Address format '{address}'")


# -- addresses ---------------------------------------------------------------------------------------------------


def _is_prefix(text: str) -> bool:
    """As Go's netip: an address, a slash and a number; no netmask."""
    return _network_family(text) is not None


def _network_family(text: str) -> int | None:
    address, slash, bits = text.partition("/")
    family = _address_family(address)
    if not slash or family is None or not (bits.isascii() and bits.isdecimal()):
        return None
    return family if len(bits) <= 3 and int(bits) <= (32 if family == 4 else 128) else None


def _address_family(text: str) -> int | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return None if getattr(address, "scope_id", None) else address.version


def _is_mac(text: str) -> bool:
    """As Go's net.ParseMAC: 6, 8 or 20 bytes, by colons, dashes, or dots between groups of four."""
    digits = re.sub(r"[:.-]", "", text)
    return _MAC.match(text) is not None and len(digits) // 2 in _MAC_BYTES
