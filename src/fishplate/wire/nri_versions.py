"""What a runtime understands: which NRI it speaks, and which events that NRI knows. The facts are in data/."""

from __future__ import annotations

import functools
import re
import tomllib
from importlib import resources
from typing import TYPE_CHECKING, TypeVar

from fishplate.wire.nri import Event

if TYPE_CHECKING:
    from collections.abc import Mapping

Version = tuple[int, int, int]
_T = TypeVar("_T")

# The first NRI that tells its version.
_TELLS: Version = (0, 12, 0)
_VERSION = re.compile(r"v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?:[-~+]?(alpha|beta|rc))?", re.IGNORECASE)


def infer_nri_version(name: str, version: str, told: str) -> Version | None:
    """What the runtime told, or what the table says of its release, or None."""
    if told:
        return max(_parse(told) or _TELLS, _TELLS)  # a build that does not know its version says 0.0.0-unknown
    table = _tables()[0].get(name)
    release = _parse(version)
    return _latest(table, release) if table and release else None


def plan_events(wanted: Event, nri: Version | None) -> Event:
    """What to subscribe to: what is wanted and known there. Of a runtime nobody knows, only the oldest set is sure."""
    return wanted & Event(_latest(_tables()[1], nri or (0, 0, 0)) or 0)


def _parse(text: str) -> Version | None:
    """A pre-release counts as just before its release: it may lack what the release has."""
    found = _VERSION.match(text)
    if found is None:
        return None
    major, minor, patch = int(found[1]), int(found[2]), int(found[3] or 0)
    return (major, minor, patch - 1) if found[4] else (major, minor, patch)


def _latest(table: Mapping[Version, _T], version: Version) -> _T | None:
    since = max((entry for entry in table if entry <= version), default=None)
    return None if since is None else table[since]


@functools.cache
def _tables() -> tuple[dict[str, dict[Version, Version]], dict[Version, int]]:
    text = resources.files("fishplate.wire").joinpath("data/nri_versions.toml").read_text()
    found = tomllib.loads(text)
    runtimes = {
        name: {_exact(release): _exact(nri) for release, nri in table.items()}
        for name, table in found["runtimes"].items()
    }
    return runtimes, {_exact(since): mask for since, mask in found["events"].items()}


def _exact(text: str) -> Version:
    major, minor, patch = text.split(".")
    return int(major), int(minor), int(patch)
