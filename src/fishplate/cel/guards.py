"""What generated selectors call: each lets through the values that the code understands, and refuses others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishplate.cel.library.lists import includes, includes_short
from fishplate.k8s.semver import Semver

if TYPE_CHECKING:
    from collections.abc import Callable

    from fishplate.cel.values import Value

# The API's limit for strings in attributes, and more than a list attribute can hold.
LONGEST_VALUE = 64


class Unsupported(Exception):
    """Not in the hot subset; or, at run time, a value that the generated code leaves to the reference evaluator."""


def _refuse() -> bool:
    raise Unsupported


def _short_text(value: object) -> str:
    if type(value) is str and len(value) <= LONGEST_VALUE:
        return value
    raise Unsupported


def _short_list(value: object) -> tuple[object, ...]:
    if type(value) is tuple and len(value) <= LONGEST_VALUE:
        return value
    raise Unsupported


def _version(value: object) -> Semver:
    if type(value) is Semver:
        return value
    raise Unsupported


def _integer(value: object) -> int:
    if type(value) is int:
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


NAMES: dict[str, object] = {
    "Unsupported": Unsupported,
    "Semver": Semver,
    "refuse": _refuse,
    "short_text": _short_text,
    "short_list": _short_list,
    "version": _version,
    "integer": _integer,
    "flag": _flag,
    "included": _included,
    "includes": includes,
    "includes_short": includes_short,
}
