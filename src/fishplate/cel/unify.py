"""Unification of static types, with the leniencies of cel-go's checker: `dyn` and errors go with everything."""

from __future__ import annotations

from typing import TypeAlias

from fishplate.cel.types import DYN, Type

Bindings: TypeAlias = dict[str, Type]

_PLAIN = ("bool", "bytes", "double", "int", "string", "uint", "any", "duration", "timestamp", "struct")
_NULLABLE = ("opaque", "struct", "any", "duration", "timestamp")


def assignable(bindings: Bindings, left: list[Type], right: list[Type]) -> Bindings | None:
    """New bindings under which each type on the left goes with the one on the right; None if there are none."""
    trial = dict(bindings)
    return trial if _lists(trial, left, right) else None


def substitute(bindings: Bindings, given: Type, *, free_to_dyn: bool = False) -> Type:
    bound = bindings.get(given.text)
    if bound is not None:
        return substitute(bindings, bound, free_to_dyn=free_to_dyn)
    if given.kind == "param":
        return DYN if free_to_dyn else given
    if not given.params:
        return given
    params = tuple(substitute(bindings, param, free_to_dyn=free_to_dyn) for param in given.params)
    return given if params == given.params else Type(given.kind, given.name, params)


def most_general(left: Type, right: Type) -> Type:
    return left if _less_specific(left, right) else right


def _lists(bindings: Bindings, left: tuple[Type, ...] | list[Type], right: tuple[Type, ...] | list[Type]) -> bool:
    return len(left) == len(right) and all(_fits(bindings, one, two) for one, two in zip(left, right, strict=True))


def _fits(bindings: Bindings, left: Type, right: Type) -> bool:
    if right.kind == "param":
        valid, bound = _substitutable(bindings, left, right)
        if valid:
            return True
        if bound:
            return False
    if left.kind == "param":
        return _substitutable(bindings, right, left)[0]
    if left.is_dyn or right.is_dyn or left.kind == "error" or right.kind == "error":
        return True
    if left.kind == "null":
        return right.kind in _NULLABLE or right.kind == "null"
    if right.kind == "null":
        return left.kind in _NULLABLE
    if left.kind in _PLAIN:
        return left.kind == right.kind and left.name == right.name
    if left.kind == "type":
        return right.kind == "type"
    return left.kind == right.kind and left.name == right.name and _lists(bindings, left.params, right.params)


def _substitutable(bindings: Bindings, given: Type, param: Type) -> tuple[bool, bool]:
    """Whether `given` may stand for `param`, and whether `param` was bound before."""
    if given == param:
        return True, True
    bound = bindings.get(param.text)
    if bound is not None:
        if given == bound:
            return True, True
        if not _fits(bindings, given, bound):
            return False, True
        wider = most_general(given, bound)
        if _absent(bindings, param, wider):
            bindings[param.text] = wider
        return True, True
    if _absent(bindings, param, given):
        bindings[param.text] = given
        return True, False
    return False, False


def _absent(bindings: Bindings, param: Type, within: Type) -> bool:
    """The occurs check: a parameter must not be bound to something that contains it."""
    if param == within:
        return False
    if within.kind == "param":
        bound = bindings.get(within.text)
        return bound is None or _absent(bindings, param, bound)
    return all(_absent(bindings, param, inner) for inner in within.params)


def _less_specific(left: Type, right: Type) -> bool:
    if left.is_dyn or left.kind == "param":
        return True
    if right.is_dyn or right.kind == "param" or left.kind != right.kind:
        return False
    if left.kind in ("opaque", "list", "map"):
        same = left.name == right.name and len(left.params) == len(right.params)
        return same and all(_less_specific(one, two) for one, two in zip(left.params, right.params, strict=True))
    return left.kind == "type" or left == right
