"""What literals mean: escapes in strings and bytes, the ranges of numbers. ValueError carries the message to report."""

from __future__ import annotations

import math

from fishplate.cel.values import MAX_INT, MAX_UINT, MIN_INT, Uint

_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
_HEX_DIGITS = {"x": 2, "X": 2, "u": 4, "U": 8}
_MAX_RUNE = 0x10FFFF


def read_int(text: str, *, negative: bool) -> int:
    value = int(text, 0) if text.startswith("0x") else int(text)
    value = -value if negative else value
    if not MIN_INT <= value <= MAX_INT:
        raise ValueError("invalid int literal")
    return value


def read_uint(text: str) -> Uint:
    digits = text[:-1]
    value = int(digits, 0) if digits.startswith("0x") else int(digits)
    if value > MAX_UINT:
        raise ValueError("invalid uint literal")
    return Uint(value)


def read_double(text: str, *, negative: bool) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("invalid double literal")
    return -value if negative else value


def read_string(text: str) -> str:
    body, raw = _body(text)
    if raw or "\\" not in body:
        return body
    return "".join(char if isinstance(char, str) else chr(char) for char in _unescape(body, as_bytes=False))


def read_bytes(text: str) -> bytes:
    body, raw = _body(text[1:])
    if raw or "\\" not in body:
        return body.encode()
    out = bytearray()
    for char in _unescape(body, as_bytes=True):
        if isinstance(char, int):
            out.append(char)
        else:
            out += char.encode()
    return bytes(out)


def _body(text: str) -> tuple[str, bool]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    if len(text) >= 6 and text[:3] in ("'''", '"""'):
        return text[3:-3], raw
    return text[1:-1], raw


def _unescape(body: str, *, as_bytes: bool) -> list[str | int]:
    """Characters, and for numeric escapes the number itself."""
    out: list[str | int] = []
    position = 0
    while position < len(body):
        char = body[position]
        if char != "\\":
            out.append(char)
            position += 1
            continue
        kind = body[position + 1 : position + 2]
        if kind in _SIMPLE:
            out.append(_SIMPLE[kind])
            position += 2
        elif kind in _HEX_DIGITS:
            if as_bytes and kind in "uU":
                raise ValueError("unable to unescape string")
            size = _HEX_DIGITS[kind]
            out.append(_code(int(body[position + 2 : position + 2 + size], 16), as_bytes=as_bytes))
            position += 2 + size
        else:
            out.append(_code(int(body[position + 1 : position + 4], 8), as_bytes=as_bytes))
            position += 4
    return out


def _code(value: int, *, as_bytes: bool) -> int:
    if not as_bytes and (value > _MAX_RUNE or 0xD800 <= value <= 0xDFFF):
        raise ValueError("invalid unicode code point")
    return value
