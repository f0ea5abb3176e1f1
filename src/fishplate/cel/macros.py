"""Macros: calls that the parser rewrites into comprehensions, conditionals and presence tests.

The expansions fix evaluation order, cost and error absorption, so they follow cel-go node for node. All macros of the
DRA environments are the same from 1.34 on; none is gated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from fishplate.cel.ast import (
    ACCUMULATOR,
    HIDDEN_ACCUMULATOR,
    Call,
    Entry,
    Expr,
    Fold,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Message,
    Select,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from fishplate.cel.values import Value

UNUSED = "#unused"


class MacroError(Exception):
    """The macro matched, but its arguments are not what it needs; `node` is where."""

    def __init__(self, node: int, message: str) -> None:
        super().__init__(message)
        self.node = node
        self.message = message


class Macros:
    """Builds nodes; those made by an expansion all stand where the macro call stands."""

    def __init__(self, new_id: Callable[[int], int], offsets: dict[int, int]) -> None:
        self._new_id = new_id
        self._offsets = offsets
        self._offset = 0

    def call(self, node: int, function: str, args: list[Expr], target: Expr | None = None) -> Expr:
        """The expansion, if (function, arguments, receiver) is a macro; a plain call otherwise."""
        expand = _EXPANSIONS.get((function, len(args), target is not None))
        if expand is not None:
            saved = self._offset
            self._offset = self._offsets[node]
            expanded = expand(self, target, args)
            self._offset = saved
            if expanded is not None:
                del self._offsets[node]
                return expanded
        return Call(node, function, args, target)

    def _id(self) -> int:
        return self._new_id(self._offset)

    def literal(self, value: Value) -> Expr:
        return Literal(self._id(), value)

    def ident(self, name: str) -> Expr:
        return Ident(self._id(), name)

    def accu(self) -> Expr:
        return Ident(self._id(), HIDDEN_ACCUMULATOR)

    def list_of(self, *elements: Expr) -> Expr:
        return ListExpr(self._id(), list(elements))

    def function(self, name: str, *args: Expr) -> Expr:
        return Call(self._id(), name, list(args))

    def method(self, name: str, target: Expr, *args: Expr) -> Expr:
        return Call(self._id(), name, list(args), target)

    def presence(self, operand: Expr, field: str) -> Expr:
        return Select(self._id(), operand, field, test=True)

    def fold(self, over: Expr, names: tuple[str, str], init: Expr, cond: Expr, step: Expr, result: Expr) -> Expr:
        return Fold(self._id(), over, *names, HIDDEN_ACCUMULATOR, init, cond, step, result)

    def bind(self, name: str, init: Expr, body: Callable[[], Expr]) -> Expr:
        """`cel.bind(name, init, body)`: a fold over nothing, whose accumulator is the bound name."""
        over, never, step = self.list_of(), self.literal(False), self.ident(name)
        return Fold(self._id(), over, UNUSED, "", name, init, never, step, body())

    def copy(self, expr: Expr) -> Expr:
        """The same expression under fresh ids, at its own place."""
        node = self._new_id(self._offsets[expr.id])
        match expr:
            case Literal():
                return Literal(node, expr.value)
            case Ident():
                return Ident(node, expr.name)
            case Select():
                return Select(node, self.copy(expr.operand), expr.field, test=expr.test)
            case Call():
                args = [self.copy(arg) for arg in expr.args]
                return Call(node, expr.function, args, None if expr.target is None else self.copy(expr.target))
            case ListExpr():
                return ListExpr(node, [self.copy(element) for element in expr.elements], expr.optional)
            case MapExpr():
                return MapExpr(node, [self._copy_entry(entry) for entry in expr.entries])
            case Message():
                return Message(node, expr.name, [self._copy_entry(entry) for entry in expr.entries])
            case Fold():
                parts = [self.copy(part) for part in (expr.range, expr.init, expr.cond, expr.step, expr.result)]
                return Fold(node, parts[0], expr.var, expr.var2, expr.accu, *parts[1:])

    def _copy_entry(self, entry: Entry) -> Entry:
        node = self._id()
        key = entry.key if entry.key.id == entry.id else self.copy(entry.key)
        return Entry(node, key, self.copy(entry.value), optional=entry.optional)


_Expansion: TypeAlias = "Callable[[Macros, Expr | None, list[Expr]], Expr | None]"


def _has(make: Macros, _: Expr | None, args: list[Expr]) -> Expr:
    argument = args[0]
    if not isinstance(argument, Select):
        raise MacroError(argument.id, "invalid argument to has() macro")
    return make.presence(argument.operand, argument.field)


def _variable(expr: Expr, message: str) -> str:
    if not isinstance(expr, Ident):
        raise MacroError(expr.id, message)
    if expr.name in (ACCUMULATOR, HIDDEN_ACCUMULATOR):
        raise MacroError(expr.id, "iteration variable overwrites accumulator variable")
    return expr.name


def _variables(args: list[Expr], count: int, message: str) -> tuple[str, str]:
    if count == 1:
        return _variable(args[0], message), ""
    for arg in args[:2]:
        if not isinstance(arg, Ident):
            raise MacroError(arg.id, message)
    if isinstance(args[0], Ident) and isinstance(args[1], Ident) and args[0].name == args[1].name:
        raise MacroError(args[1].id, f"duplicate variable name: {args[0].name}")
    return _variable(args[0], message), _variable(args[1], message)


def _all(count: int) -> _Expansion:
    def expand(make: Macros, target: Expr | None, args: list[Expr]) -> Expr:
        names = _variables(args, count, "argument must be a simple name")
        init = make.literal(True)
        cond = make.function("@not_strictly_false", make.accu())
        step = make.function("_&&_", make.accu(), args[count])
        return make.fold(_present(target), names, init, cond, step, make.accu())

    return expand


def _exists(count: int) -> _Expansion:
    def expand(make: Macros, target: Expr | None, args: list[Expr]) -> Expr:
        names = _variables(args, count, "argument must be a simple name")
        init = make.literal(False)
        cond = make.function("@not_strictly_false", make.function("!_", make.accu()))
        step = make.function("_||_", make.accu(), args[count])
        return make.fold(_present(target), names, init, cond, step, make.accu())

    return expand


def _exists_one(count: int) -> _Expansion:
    def expand(make: Macros, target: Expr | None, args: list[Expr]) -> Expr:
        names = _variables(args, count, "argument must be a simple name")
        init, cond = make.literal(0), make.literal(True)
        counted = make.function("_+_", make.accu(), make.literal(1))
        step = make.function("_?_:_", args[count], counted, make.accu())
        result = make.function("_==_", make.accu(), make.literal(1))
        return make.fold(_present(target), names, init, cond, step, result)

    return expand


def _map(make: Macros, target: Expr | None, args: list[Expr]) -> Expr:
    return _collect(make, target, args, 1, "argument is not an identifier")


def _transform_list(make: Macros, target: Expr | None, args: list[Expr]) -> Expr:
    return _collect(make, target, args, 2, "argument must be a simple name")


def _collect(make: Macros, target: Expr | None, args: list[Expr], count: int, message: str) -> Expr:
    names = _variables(args, count, message)
    *filters, transform = args[count:]
    if count == 2:
        step = _filtered(make, filters, make.function("_+_", make.accu(), make.list_of(transform)))
        init, cond = make.list_of(), make.literal(True)
    else:
        init, cond = make.list_of(), make.literal(True)
        step = _filtered(make, filters, make.function("_+_", make.accu(), make.list_of(transform)))
    return make.fold(_present(target), names, init, cond, step, make.accu())


def _filter(make: Macros, target: Expr | None, args: list[Expr]) -> Expr:
    names = _variables(args, 1, "argument is not an identifier")
    init, cond = make.list_of(), make.literal(True)
    step = make.function("_+_", make.accu(), make.list_of(args[0]))
    return make.fold(_present(target), names, init, cond, _filtered(make, [args[1]], step), make.accu())


def _filtered(make: Macros, filters: list[Expr], step: Expr) -> Expr:
    return make.function("_?_:_", filters[0], step, make.accu()) if filters else step


def _transform_map(*, entries: bool) -> _Expansion:
    def expand(make: Macros, target: Expr | None, args: list[Expr]) -> Expr:
        names = _variables(args, 2, "argument must be a simple name")
        *filters, transform = args[2:]
        accu = make.accu()
        key = [] if entries else [make.ident(names[0])]
        step = _filtered(make, filters, make.function("cel.@mapInsert", accu, *key, transform))
        init = MapExpr(make._id(), [])
        return make.fold(_present(target), names, init, make.literal(True), step, make.accu())

    return expand


def _bind(make: Macros, target: Expr | None, args: list[Expr]) -> Expr | None:
    if not (isinstance(target, Ident) and target.name == "cel"):
        return None
    if not isinstance(args[0], Ident):
        raise MacroError(args[0].id, "cel.bind() variable names must be simple identifiers")
    return make.bind(args[0].name, args[1], lambda: args[2])


def _opt_map(*, flat: bool) -> _Expansion:
    def expand(make: Macros, target: Expr | None, args: list[Expr]) -> Expr:
        if not isinstance(args[0], Ident):
            name = "optFlatMap" if flat else "optMap"
            raise MacroError(args[0].id, f"{name}() variable name must be a simple identifier")
        receiver = _present(target)
        present = make.method("hasValue", receiver)
        over = make.list_of()
        value = make.method("value", make.copy(receiver))
        never, step = make.literal(False), make.ident(args[0].name)
        bound: Expr = Fold(make._id(), over, UNUSED, "", args[0].name, value, never, step, args[1])
        if not flat:
            bound = make.function("optional.of", bound)
        return make.function("_?_:_", present, bound, make.function("optional.none"))

    return expand


def _sort_by(make: Macros, target: Expr | None, args: list[Expr]) -> Expr:
    receiver = _present(target)
    source = make.ident("@__sortBy_input__")
    if isinstance(receiver, Literal | MapExpr | Message):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(receiver.id, message)
    keys = _map(make, make.copy(source), args)
    ordered = make.method("@sortByAssociatedKeys", make.copy(source), keys)
    over, never = make.list_of(), make.literal(False)
    return Fold(make._id(), over, UNUSED, "", "@__sortBy_input__", receiver, never, source, ordered)


def _present(target: Expr | None) -> Expr:
    assert target is not None  # the table below matches receiver macros only with a receiver
    return target


_EXPANSIONS: dict[tuple[str, int, bool], _Expansion] = {
    ("has", 1, False): _has,
    ("all", 2, True): _all(1),
    ("all", 3, True): _all(2),
    ("exists", 2, True): _exists(1),
    ("exists", 3, True): _exists(2),
    ("exists_one", 2, True): _exists_one(1),
    ("exists_one", 3, True): _exists_one(2),
    ("existsOne", 3, True): _exists_one(2),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map(entries=False),
    ("transformMap", 4, True): _transform_map(entries=False),
    ("transformMapEntry", 3, True): _transform_map(entries=True),
    ("transformMapEntry", 4, True): _transform_map(entries=True),
    ("bind", 3, True): _bind,
    ("optMap", 2, True): _opt_map(flat=False),
    ("optFlatMap", 2, True): _opt_map(flat=True),
    ("sortBy", 2, True): _sort_by,
}
MACRO_KEYS = frozenset(f"{name}:{count}:{'true' if receiver else 'false'}" for name, count, receiver in _EXPANSIONS)
