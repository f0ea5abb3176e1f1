"""The syntax tree. Every node has an id, unique in its tree; positions and types are kept beside the tree, by id."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fishplate.cel.values import Value


class Literal:
    __slots__ = ("id", "value")

    def __init__(self, node: int, value: Value) -> None:
        self.id = node
        self.value = value


class Ident:
    __slots__ = ("id", "name")

    def __init__(self, node: int, name: str) -> None:
        self.id = node
        self.name = name


class Select:
    """`operand.field`; a presence test where it came from has()."""

    __slots__ = ("field", "id", "operand", "test")

    def __init__(self, node: int, operand: Expr, field: str, *, test: bool = False) -> None:
        self.id = node
        self.operand = operand
        self.field = field
        self.test = test


class Call:
    __slots__ = ("args", "function", "id", "target")

    def __init__(self, node: int, function: str, args: list[Expr], target: Expr | None = None) -> None:
        self.id = node
        self.function = function
        self.args = args
        self.target = target

    @property
    def operands(self) -> list[Expr]:
        return self.args if self.target is None else [self.target, *self.args]


class ListExpr:
    __slots__ = ("elements", "id", "optional")

    def __init__(self, node: int, elements: list[Expr], optional: frozenset[int] = frozenset()) -> None:
        self.id = node
        self.elements = elements
        self.optional = optional


class Entry:
    """One `key: value` of a map, or `field: value` of a message, whose key is then a bare name."""

    __slots__ = ("id", "key", "optional", "value")

    def __init__(self, node: int, key: Expr, value: Expr, *, optional: bool) -> None:
        self.id = node
        self.key = key
        self.value = value
        self.optional = optional


class MapExpr:
    __slots__ = ("entries", "id")

    def __init__(self, node: int, entries: list[Entry]) -> None:
        self.id = node
        self.entries = entries


class Message:
    __slots__ = ("entries", "id", "name")

    def __init__(self, node: int, name: str, entries: list[Entry]) -> None:
        self.id = node
        self.name = name
        self.entries = entries


class Fold:
    """A comprehension: what the macros over lists and maps expand to, and cel.bind too."""

    __slots__ = ("accu", "cond", "id", "init", "range", "result", "step", "var", "var2")

    def __init__(
        self, node: int, over: Expr, var: str, var2: str, accu: str, init: Expr, cond: Expr, step: Expr, result: Expr
    ) -> None:
        self.id = node
        self.range = over
        self.var = var
        self.var2 = var2
        self.accu = accu
        self.init = init
        self.cond = cond
        self.step = step
        self.result = result

    @property
    def is_bind(self) -> bool:
        """cel.bind and its like: an empty range whose only point is the accumulator's name."""
        empty = isinstance(self.range, ListExpr) and not self.range.elements
        never = isinstance(self.cond, Literal) and self.cond.value is False
        return empty and never and self.accu != ACCUMULATOR


ACCUMULATOR = "__result__"
HIDDEN_ACCUMULATOR = "@result"

Expr: TypeAlias = Literal | Ident | Select | Call | ListExpr | MapExpr | Message | Fold


def children(expr: Expr) -> Iterator[Expr]:
    match expr:
        case Select():
            yield expr.operand
        case Call():
            yield from expr.operands
        case ListExpr():
            yield from expr.elements
        case MapExpr():
            for entry in expr.entries:
                yield entry.key
                yield entry.value
        case Message():
            for entry in expr.entries:
                yield entry.value
        case Fold():
            yield from (expr.range, expr.init, expr.cond, expr.step, expr.result)


def walk(expr: Expr) -> Iterator[Expr]:
    yield expr
    for child in children(expr):
        yield from walk(child)
