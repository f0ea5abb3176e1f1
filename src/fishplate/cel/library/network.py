"""Kubernetes' ip and cidr libraries, on Go's net/netip rules: no zones, no IPv4-mapped IPv6, strict decimal fields."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, TypeAlias

from fishplate.cel import gotext
from fishplate.cel.values import Err, Opaque, Value

if TYPE_CHECKING:
    from collections.abc import Callable

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_BITS = re.compile(r"0|[1-9][0-9]{0,2}")


class Ip(Opaque):
    __slots__ = ("address",)
    type_name = "net.IP"

    def __init__(self, address: _Address) -> None:
        self.address = address

    def same(self, other: Value) -> bool:
        return isinstance(other, Ip) and self.address == other.address

    def size(self) -> int:
        return len(self.address.packed)


class Cidr(Opaque):
    """An address with a prefix length; the host bits are kept as written."""

    __slots__ = ("address", "bits")
    type_name = "net.CIDR"

    def __init__(self, address: _Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    def same(self, other: Value) -> bool:
        return isinstance(other, Cidr) and self.address == other.address and self.bits == other.bits

    def size(self) -> int:
        return -(-self.bits // 8)

    def contains(self, address: _Address) -> bool:
        if address.version != self.address.version:
            return False
        shift = address.max_prefixlen - self.bits
        return int(address) >> shift == int(self.address) >> shift


def _parse(text: str) -> _Address | str:
    """The address, or what is wrong with it."""
    if "." not in text and ":" not in text:
        return f"ParseAddr({gotext.quote(text)}): unable to parse IP"
    try:
        return ipaddress.ip_address(text)
    except ValueError as error:
        return f"ParseAddr({gotext.quote(text)}): {error}"


def _objection(address: _Address, text: str) -> str:
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return f"IP address {gotext.quote(text)} with zone value is not allowed"
        if address.ipv4_mapped is not None:
            return f"IPv4-mapped IPv6 address {gotext.quote(text)} is not allowed"
    return ""


def ip(text: str) -> Ip | Err:
    address = _parse(text)
    if isinstance(address, str):
        return Err(f"IP Address {gotext.quote(text)} parse error during conversion from string: {address}")
    if objection := _objection(address, text):
        return Err(objection)
    return Ip(address)


def cidr(text: str) -> Cidr | Err:
    head = "network address parse error during conversion from string: "
    address_text, slash, bits = text.rpartition("/")
    address = _parse(address_text) if slash else f"netip.ParsePrefix({gotext.quote(text)}): no '/'"
    if isinstance(address, str):
        return Err(f"{head}{head}{address}")
    if not _BITS.fullmatch(bits) or int(bits) > address.max_prefixlen:
        return Err(f"{head}{head}netip.ParsePrefix({gotext.quote(text)}): bad bits after slash: {gotext.quote(bits)}")
    if objection := _objection(address, text):
        return Err(f"{head}{objection}")
    return Cidr(address, int(bits))


def _is_link_local_multicast(value: Ip) -> Value:
    packed = value.address.packed
    if len(packed) == 4:
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02


def _is_link_local(value: Ip) -> bool:
    packed = value.address.packed
    if len(packed) == 4:
        return packed[:2] == b"\xa9\xfe"
    return packed[0] == 0xFE and packed[1] & 0xC0 == 0x80


def _is_global_unicast(value: Ip) -> Value:
    address = value.address
    broadcast = address.packed == b"\xff\xff\xff\xff"
    special = address.is_unspecified or address.is_loopback or address.is_multicast
    return not (broadcast or special or _is_link_local(value))


def _contains_ip(network: Cidr, other: Ip) -> Value:
    return network.contains(other.address)


def _contains_ip_text(network: Cidr, text: str) -> Value:
    other = ip(text)
    # Upstream hands the network, not the failed address, to its complaint: the parse error is lost.
    return Err("no such overload") if isinstance(other, Err) else _contains_ip(network, other)


def _contains_cidr(network: Cidr, other: Cidr) -> Value:
    return network.bits <= other.bits and network.contains(other.address)


def _contains_cidr_text(network: Cidr, text: str) -> Value:
    other = cidr(text)
    return other if isinstance(other, Err) else _contains_cidr(network, other)


def _masked(network: Cidr) -> Value:
    shift = network.address.max_prefixlen - network.bits
    return Cidr(type(network.address)(int(network.address) >> shift << shift), network.bits)


def _is_canonical(text: str) -> Value:
    address = ip(text)
    return address if isinstance(address, Err) else str(address.address) == text


OVERLOADS: dict[str, Callable[..., Value]] = {
    "string_to_ip": ip,
    "is_ip": lambda text: not isinstance(ip(text), Err),
    "ip_is_canonical": _is_canonical,
    "ip_family": lambda value: value.address.version,
    "ip_is_unspecified": lambda value: value.address.is_unspecified,
    "ip_is_loopback": lambda value: value.address.is_loopback,
    "ip_is_link_local_multicast": _is_link_local_multicast,
    "ip_is_link_local_unicast": _is_link_local,
    "ip_is_global_unicast": _is_global_unicast,
    "ip_to_string": lambda value: str(value.address),
    "string_to_cidr": cidr,
    "is_cidr": lambda text: not isinstance(cidr(text), Err),
    "cidr_contains_ip_ip": _contains_ip,
    "cidr_contains_ip_string": _contains_ip_text,
    "cidr_contains_cidr": _contains_cidr,
    "cidr_contains_cidr_string": _contains_cidr_text,
    "cidr_ip": lambda network: Ip(network.address),
    "cidr_prefix_length": lambda network: network.bits,
    "cidr_masked": _masked,
    "cidr_to_string": lambda network: f"{network.address}/{network.bits}",
}
