"""What of a device an expression reads, as far as the text tells: for memory of results, for explanation, for speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fishplate.cel.ast import Call, Expr, Fold, Ident, Literal, Select, children

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Path: TypeAlias = tuple[str, ...]
Aliases: TypeAlias = "Mapping[str, Path | None]"

# How long a path is once it has reached a value: device.driver, or device.attributes / domain / id.
_COMPLETE = {"driver": 1, "allowMultipleAllocations": 1, "attributes": 3, "capacity": 3}


class Reads(NamedTuple):
    """(kind, domain, id) of everything read; `everything` if some access could not be told from the text.

    Kinds are attribute, capacity, driver and allowMultipleAllocations. An attribute without a domain belongs to its
    driver's, so whoever remembers results by these values must remember them by driver too.
    """

    items: frozenset[tuple[str, str, str]]
    everything: bool


def device_path(expr: Expr, aliases: Aliases) -> Path | None:
    """(attributes, domain, id) and its beginnings, for selections with constant keys; None for anything else."""
    match expr:
        case Ident():
            if (name := expr.name.removeprefix(".")) in aliases:
                # What a leading dot means beside a variable of that name depends on the version; rare enough to pass.
                return aliases[name] if name == expr.name else None
            return () if name == "device" else None
        case Select() if not expr.test:
            base = device_path(expr.operand, aliases)
            return None if base is None else (*base, expr.field)
        case Call(function="_[_]", args=[container, Literal(value=str() as key)]):
            base = device_path(container, aliases)
            return None if base is None else (*base, key)
    return None


def find_reads(expr: Expr) -> Reads:
    items: set[tuple[str, str, str]] = set()
    everything = False
    for path in _walk(expr, {}):
        kind = path[0] if path else ""
        if len(path) < _COMPLETE.get(kind, 99):
            everything = True
        elif kind in ("attributes", "capacity"):
            items.add(("attribute" if kind == "attributes" else kind, path[1], path[2]))
        else:
            items.add((kind, "", ""))
    return Reads(frozenset(items), everything)


def _walk(expr: Expr, aliases: Aliases) -> Iterator[Path]:
    """The longest constant paths into the device."""
    path = device_path(expr, aliases)
    if path is not None:
        yield path
        return
    if (tested := tested_path(expr, aliases)) is not None:
        yield tested
        return
    if isinstance(expr, Fold):
        yield from _walk_fold(expr, aliases)
        return
    for child in children(expr):
        yield from _walk(child, aliases)


def _walk_fold(expr: Fold, aliases: Aliases) -> Iterator[Path]:
    bound = device_path(expr.init, aliases) if expr.is_bind else None
    inner = {**aliases, expr.accu: bound, expr.var: None} | ({expr.var2: None} if expr.var2 else {})
    if bound is None:
        yield from _walk(expr.init, aliases)
    yield from _walk(expr.range, aliases)
    for part in (expr.cond, expr.result) if expr.is_bind else (expr.cond, expr.step, expr.result):
        yield from _walk(part, inner)


def tested_path(expr: Expr, aliases: Aliases) -> Path | None:
    """The path behind `has(x.id)`, `"id" in x`, `x.?id` and `x[?"id"]`: presence is read, as the value would be."""
    match expr:
        case Select(test=True):
            base = device_path(expr.operand, aliases)
            return None if base is None else (*base, expr.field)
        case Call(function="@in", args=[Literal(value=str() as key), container]):
            base = device_path(container, aliases)
            # Whether a domain is present depends on every name; only ids can be told apart.
            return (*base, key) if base is not None and len(base) == 2 else None
        case Call(function="_?._" | "_[?_]", args=[container, Literal(value=str() as key)]):
            base = _domain_path(container, aliases)
            return (*base, key) if base is not None else None
    return None


def _domain_path(expr: Expr, aliases: Aliases) -> Path | None:
    """(attributes, domain), also where the domain is optional: every domain is there, if only as an empty map."""
    match expr:
        case Call(function="_[?_]", args=[container, Literal(value=str() as domain)]):
            base = device_path(container, aliases)
            return (*base, domain) if base is not None and len(base) == 1 else None
    base = device_path(expr, aliases)
    return base if base is not None and len(base) == 2 else None
