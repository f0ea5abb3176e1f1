"""Which Python function answers a call, and what is said when none does.

Three kinds of binding exist upstream and differ in their errors: one function for all overloads that checks for itself
(operators), overloads guarded by their declared argument types, and overloads without guards.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from fishplate.cel import operators
from fishplate.cel.library import (
    amounts,
    conversions,
    formats,
    lists,
    network,
    optionals,
    strings,
    text_format,
    urls,
)
from fishplate.cel.values import NO_SUCH_OVERLOAD, CelMap, Err, Value, type_name
from fishplate.k8s.quantity import Quantity
from fishplate.k8s.semver import Semver

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fishplate.cel.declarations import Overload
    from fishplate.cel.types import Type

_SINGLE: Mapping[str, Callable[..., Value]] = {
    "!_": operators.logical_not,
    "-_": operators.negate,
    "@not_strictly_false": operators.not_strictly_false,
    "_+_": operators.add,
    "_-_": operators.subtract,
    "_*_": operators.multiply,
    "_/_": operators.divide,
    "_%_": operators.modulo,
    "_<_": operators.less,
    "_<=_": operators.less_equal,
    "_>_": operators.greater,
    "_>=_": operators.greater_equal,
    "@in": operators.contains,
    "size": lists.size,
    "matches": strings.matches,
    "dyn": conversions.identity,
    "type": conversions.to_type,
    "sort": lists.sort,
    "@sortByAssociatedKeys": lists.sort_by,
}
_UNGUARDED = frozenset(("contains", "startsWith", "endsWith", "flatten"))
# Two-argument overloads that upstream binds as taking any number: they stop at the first bad argument.
_VARIADIC = frozenset(("string_format",))
_OVERLOADS: Mapping[str, Callable[..., Value]] = {
    **conversions.OVERLOADS,
    **strings.OVERLOADS,
    **lists.OVERLOADS,
    **optionals.OVERLOADS,
    **amounts.OVERLOADS,
    **network.OVERLOADS,
    **urls.OVERLOADS,
    **formats.OVERLOADS,
    **text_format.OVERLOADS,
}
_MODERN: Mapping[str, Callable[..., Value]] = {**lists.MODERN, **strings.MODERN}


class Binding(NamedTuple):
    """`eager` bindings evaluate every argument even after one failed, which shows in the cost."""

    call: Callable[..., Value]
    eager: bool


@cache
def bind(function: str, overloads: tuple[Overload, ...], chosen: str, *, modern: bool) -> Binding:
    """The binding of a call to `function`, where the checker narrowed it down to `chosen` (or to nothing: "")."""
    if function in _SINGLE:
        return Binding(_SINGLE[function], eager=True)
    found = [(overload, _implementation(overload.id, modern=modern)) for overload in overloads]
    picked = [pair for pair in found if pair[0].id == chosen] or found
    if len(picked) == 1:
        overload, implementation = picked[0]
        eager = len(overload.args) <= 2 and overload.id not in _VARIADIC
        if function in _UNGUARDED:
            return Binding(implementation, eager)
        return Binding(_guarded(function, picked), eager)
    return Binding(_guarded(function, picked), eager=False)


def _implementation(overload: str, *, modern: bool) -> Callable[..., Value]:
    if modern and overload in _MODERN:
        return _MODERN[overload]
    return _OVERLOADS.get(overload, _absent)


def _absent(*_: Value) -> Value:
    return NO_SUCH_OVERLOAD


def _guarded(function: str, candidates: list[tuple[Overload, Callable[..., Value]]]) -> Callable[..., Value]:
    unguarded = function in _UNGUARDED
    tables = [(tuple(map(_guard, overload.args)), implementation) for overload, implementation in candidates]

    def dispatch(*args: Value) -> Value:
        for guards, implementation in tables:
            if len(args) == len(guards):
                if unguarded:
                    return implementation(*args)
                for (kind, wanted), arg in zip(guards, args, strict=True):
                    if type(arg) is not kind and not accepts(wanted, arg):
                        break
                else:
                    return implementation(*args)
        return Err(f"no such overload: {function}({', '.join(type_name(arg) for arg in args)})")

    return dispatch


# What most values of a type are in Python: one look lets them through.
_USUAL: dict[str, type] = {"bool": bool, "int": int, "string": str}
_USUAL |= {"kubernetes.Semver": Semver, "kubernetes.Quantity": Quantity}


def _guard(wanted: Type) -> tuple[type | None, Type]:
    return _USUAL.get(wanted.runtime_name), wanted


def accepts(wanted: Type, value: Value) -> bool:
    """Whether a value may be passed where a type is declared; of lists and maps, only the first element counts."""
    if wanted.is_dyn or wanted.kind == "param":
        return True
    if wanted.runtime_name != type_name(value):
        return False
    if isinstance(value, tuple) and value:
        return accepts(wanted.params[0], value[0])
    if isinstance(value, CelMap) and len(value):
        key, item = next(value.items())
        return accepts(wanted.params[0], key) and accepts(wanted.params[1], item)
    return True
