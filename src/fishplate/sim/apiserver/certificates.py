"""A certificate authority of one's own and a server certificate, in the standard library alone.

Python's `ssl` uses certificates and cannot make them. The `cryptography` package can: 17 MB installed with
cffi, 62 ms to import (50.0.2); the `openssl` command is not on every machine. So here is the little DER that
one X.509 certificate needs, and ECDSA on P-256 with Python's integers: 30 ms for all.

What this refuses to be: cryptography for anything but a simulation. The arithmetic takes a time that depends on the
key, so the keys live for one run, on loopback, and protect nothing.
"""

import base64
import hashlib
import ipaddress
import secrets
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

# NIST P-256 (FIPS 186-4, D.1.2.3).
_P = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_Point = tuple[int, int] | None

_EC_PUBLIC_KEY = "1.2.840.10045.2.1"
_P256 = "1.2.840.10045.3.1.7"
_ECDSA_SHA256 = "1.2.840.10045.4.3.2"
_COMMON_NAME = "2.5.4.3"
_SUBJECT_KEY, _KEY_USAGE, _NAMES, _BASIC, _AUTHORITY_KEY, _EXTENDED_USAGE = (
    f"2.5.29.{n}" for n in (14, 15, 17, 19, 35, 37)
)
_SERVER_AUTH = "1.3.6.1.5.5.7.3.1"
_LIFE = timedelta(days=30)


def _add(left: _Point, right: _Point) -> _Point:
    if left is None or right is None:
        return left or right
    if left[0] == right[0]:
        if (left[1] + right[1]) % _P == 0:
            return None
        slope = (3 * left[0] * left[0] - 3) * pow(2 * left[1], -1, _P)
    else:
        slope = (right[1] - left[1]) * pow(right[0] - left[0], -1, _P)
    x = (slope * slope - left[0] - right[0]) % _P
    return x, (slope * (left[0] - x) - left[1]) % _P


def _multiply(factor: int, point: _Point) -> tuple[int, int]:
    total: _Point = None
    while factor:
        if factor & 1:
            total = _add(total, point)
        point = _add(point, point)
        factor >>= 1
    assert total is not None
    return total


class Key(NamedTuple):
    secret: int
    public: tuple[int, int]

    @property
    def point(self) -> bytes:
        """The public key, uncompressed."""
        return b"\x04" + self.public[0].to_bytes(32, "big") + self.public[1].to_bytes(32, "big")

    def sign(self, data: bytes) -> bytes:
        digest = int.from_bytes(hashlib.sha256(data).digest(), "big")
        while True:
            nonce = secrets.randbelow(_N - 1) + 1
            r = _multiply(nonce, _G)[0] % _N
            s = pow(nonce, -1, _N) * (digest + r * self.secret) % _N
            if r and s:
                return _sequence(_integer(r), _integer(s))


def make_key() -> Key:
    secret = secrets.randbelow(_N - 1) + 1
    return Key(secret, _multiply(secret, _G))


# DER, as much as is needed.


def _tagged(tag: int, data: bytes) -> bytes:
    size = len(data)
    if size < 128:
        return bytes((tag, size)) + data
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + data


def _sequence(*parts: bytes) -> bytes:
    return _tagged(0x30, b"".join(parts))


def _integer(value: int) -> bytes:
    return _tagged(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _octets(data: bytes) -> bytes:
    return _tagged(0x04, data)


def _bits(data: bytes, unused: int = 0) -> bytes:
    return _tagged(0x03, bytes((unused,)) + data)


def _oid(dotted: str) -> bytes:
    first, second, *rest = (int(part) for part in dotted.split("."))
    out = bytearray((first * 40 + second,))
    for part in rest:
        group = [part & 0x7F]
        while part := part >> 7:
            group.append(part & 0x7F | 0x80)
        out += bytes(reversed(group))
    return _tagged(0x06, bytes(out))


def _time(moment: datetime) -> bytes:
    return _tagged(0x18, moment.strftime("%Y%m%d%H%M%SZ").encode())


def _name(common: str) -> bytes:
    return _sequence(_tagged(0x31, _sequence(_oid(_COMMON_NAME), _tagged(0x0C, common.encode()))))


def _extension(oid: str, data: bytes, *, critical: bool = False) -> bytes:
    return _sequence(_oid(oid), *([_tagged(0x01, b"\xff")] if critical else []), _octets(data))


def _alternatives(names: list[str]) -> bytes:
    """DNS names and IP addresses."""
    parts = []
    for name in names:
        try:
            parts.append(_tagged(0x87, ipaddress.ip_address(name).packed))
        except ValueError:
            parts.append(_tagged(0x82, name.encode()))
    return _sequence(*parts)


def _extensions(key: Key, issuer: Key, names: list[str], *, authority: bool) -> bytes:
    key_id, issuer_id = (hashlib.sha1(k.point, usedforsecurity=False).digest() for k in (key, issuer))
    parts = [
        _extension(_BASIC, _sequence(_tagged(0x01, b"\xff")) if authority else _sequence(), critical=True),
        # Certificates and revocation lists for an authority, signatures for a server.
        _extension(_KEY_USAGE, _bits(b"\x06", 1) if authority else _bits(b"\x80", 7), critical=True),
        _extension(_SUBJECT_KEY, _octets(key_id)),
        _extension(_AUTHORITY_KEY, _sequence(_tagged(0x80, issuer_id))),
    ]
    if not authority:
        parts.append(_extension(_EXTENDED_USAGE, _sequence(_oid(_SERVER_AUTH))))
        parts.append(_extension(_NAMES, _alternatives(names)))
    return _tagged(0xA3, _sequence(*parts))


def _certificate(subject: str, key: Key, issuer: str, issuer_key: Key, names: list[str], *, authority: bool) -> bytes:
    now = datetime.now(UTC)
    algorithm = _sequence(_oid(_ECDSA_SHA256))
    body = _sequence(
        _tagged(0xA0, _integer(2)),
        _integer(secrets.randbits(120) | 1),
        algorithm,
        _name(issuer),
        _sequence(_time(now - timedelta(minutes=5)), _time(now + _LIFE)),
        _name(subject),
        _sequence(_sequence(_oid(_EC_PUBLIC_KEY), _oid(_P256)), _bits(key.point)),
        _extensions(key, issuer_key, names, authority=authority),
    )
    return _sequence(body, algorithm, _bits(issuer_key.sign(body)))


def _pem(label: str, data: bytes) -> str:
    text = base64.b64encode(data).decode()
    lines = "\n".join(text[i : i + 64] for i in range(0, len(text), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"


def _key_pem(key: Key) -> str:
    secret = _octets(key.secret.to_bytes(32, "big"))
    curve, public = _tagged(0xA0, _oid(_P256)), _tagged(0xA1, _bits(key.point))
    return _pem("EC PRIVATE KEY", _sequence(_integer(1), secret, curve, public))


class Certificates(NamedTuple):
    """PEM texts. The authority's key is not kept: it signs once."""

    authority: str
    certificate: str
    key: str


def make_certificates(names: list[str]) -> Certificates:
    """For a server that is reached under these names and addresses."""
    root, server = make_key(), make_key()
    authority = _certificate("fishplate-sim-ca", root, "fishplate-sim-ca", root, [], authority=True)
    certificate = _certificate("fishplate-sim", server, "fishplate-sim-ca", root, names, authority=False)
    return Certificates(_pem("CERTIFICATE", authority), _pem("CERTIFICATE", certificate), _key_pem(server))
