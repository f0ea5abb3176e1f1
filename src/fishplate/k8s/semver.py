"""Semantic versions as Kubernetes device attributes carry them: strict semver 2.0.0, no leading `v`, no short forms.

The messages are those of github.com/blang/semver, because users meet them in kube-scheduler's errors. Order and
equality follow semver precedence: build metadata does not count. Where the text matters (matchAttribute compares
strings), use `str()`.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache, total_ordering
from typing import TypeAlias

from fishplate.errors import InputError

# Nearly all versions are three short numbers; they are told, and read, at once.
PLAIN_VERSION = re.compile(r"(0|[1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"[0-9]*")
_WORD = re.compile(r"[0-9A-Za-z-]*")
_MAX_UINT64 = 2**64 - 1

_Identifier: TypeAlias = "tuple[int, int, str]"
_Key: TypeAlias = "tuple[int, int, int, int, tuple[_Identifier, ...]]"


@total_ordering
class Semver:
    """One version; `text` is what was written."""

    __slots__ = ("key", "text")

    def __init__(self, text: str, key: _Key) -> None:
        self.text = text
        self.key = key

    @property
    def major(self) -> int:
        return self.key[0]

    @property
    def minor(self) -> int:
        return self.key[1]

    @property
    def patch(self) -> int:
        return self.key[2]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Semver({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self.key == other.key

    def __lt__(self, other: Semver) -> bool:
        return self.key < other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=16384)
def parse_semver(text: str) -> Semver:
    """Equal texts give one object: a fleet runs few versions on many devices."""
    if plain := PLAIN_VERSION.fullmatch(text):
        return Semver(text, (*map(int, plain.groups()), 1, ()))  # type: ignore[arg-type]
    if not text:
        raise InputError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise InputError("No Major.Minor.Patch elements found")
    major = _number("major", parts[0])
    minor = _number("minor", parts[1])
    patch, plus, build = parts[2].partition("+")
    patch, dash, pre = patch.partition("-")
    number = _number("patch", patch)
    identifiers = tuple(_prerelease(part) for part in pre.split(".")) if dash else ()
    for part in build.split(".") if plus else ():
        if not part:
            raise InputError("Build meta data is empty")
        if not _WORD.fullmatch(part):
            raise InputError(f"Invalid character(s) found in build meta data {_quoted(part)}")
    # A release sorts after its own prereleases.
    return Semver(text, (major, minor, number, 0 if identifiers else 1, identifiers))


def normalize_semver(text: str) -> str:
    """What CEL's `semver(text, true)` parses: no leading `v`, no leading zeros, three components."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part.encode()) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1] and stripped[0] in "0123456789" else "0" + stripped
    if len(parts) < 3 and any(mark in parts[-1] for mark in "+-"):
        raise InputError("short version cannot contain PreRelease/Build meta data")
    return ".".join(parts + ["0"] * (3 - len(parts)))


def _number(place: str, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise InputError(f"Invalid character(s) found in {place} number {_quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise InputError(f"{place.capitalize()} number must not contain leading zeroes {_quoted(text)}")
    return _uint(text)


def _prerelease(text: str) -> _Identifier:
    if not text:
        raise InputError("Prerelease is empty")
    if _NUMBER.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise InputError(f"Numeric PreRelease version must not contain leading zeroes {_quoted(text)}")
        return (0, _uint(text), "")
    if not _WORD.fullmatch(text):
        raise InputError(f"Invalid character(s) found in prerelease {_quoted(text)}")
    return (1, 0, text)


def _uint(text: str) -> int:
    if not text:
        raise InputError('strconv.ParseUint: parsing "": invalid syntax')
    if (value := int(text)) > _MAX_UINT64:
        raise InputError(f"strconv.ParseUint: parsing {_quoted(text)}: value out of range")
    return value


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
