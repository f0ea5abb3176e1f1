"""The cost estimate: the most an expression can cost on any device that the API accepts.

kube-apiserver refuses selectors whose estimate exceeds 1,000,000; kube-scheduler does not look at it. The walk mirrors
cel-go's checker.Cost, including what it does not know: an unknown size is 2**64-1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fishplate.cel import sizes
from fishplate.cel.ast import (
    ACCUMULATOR,
    HIDDEN_ACCUMULATOR,
    Call,
    Expr,
    Fold,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Message,
    Select,
)
from fishplate.cel.estimate_calls import Estimate, Operand, estimate_call
from fishplate.cel.sizes import ONE, TOP, UNKNOWN, ZERO, Range, fixed
from fishplate.cel.types import DYN

if TYPE_CHECKING:
    from fishplate.cel.checker import Checked
    from fishplate.cel.types import Type

_LIST, _MAP, _MESSAGE = fixed(10), fixed(30), fixed(40)
_SCALARS = ("bool", "double", "duration", "int", "timestamp", "uint")


class _Entries(NamedTuple):
    """What a list or map holds: sizes of keys and of values."""

    is_list: bool
    key: Range
    value: Range

    def union(self, other: _Entries) -> _Entries:
        return _Entries(self.is_list, self.key.union(other.key), self.value.union(other.value))


class _Local(NamedTuple):
    path: tuple[str, ...]
    size: Range | None
    entries: _Entries | None


def estimate_cost(checked: Checked, *, modern: bool) -> int:
    """The highest cost; `modern` is cel-go 0.29 (Kubernetes 1.37)."""
    return _Coster(checked, modern=modern).cost(checked.expr).high


class _Coster:
    def __init__(self, checked: Checked, *, modern: bool) -> None:
        self._checked = checked
        self._modern = modern
        self._paths: dict[int, tuple[str, ...]] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, _Entries] = {}
        self._locals: dict[str, list[_Local]] = {}

    # -- what is known of a node

    def _type(self, expr: Expr) -> Type:
        return self._checked.types.get(expr.id, DYN)

    def _local(self, expr: Expr) -> _Local | None:
        if isinstance(expr, Ident) and (stack := self._locals.get(self._name(expr))):
            return stack[-1]
        return None

    def _name(self, expr: Ident) -> str:
        return self._checked.names.get(expr.id, expr.name)

    def _path(self, expr: Expr) -> tuple[str, ...]:
        local = self._local(expr)
        return local.path if local else self._paths.get(expr.id, ())

    def size(self, expr: Expr) -> Range | None:
        if expr.id in self._sizes:
            return self._sizes[expr.id]
        if (known := _literal_size(expr)) is not None:
            return known
        if (declared := sizes.declared_size(self._path(expr))) is not None:
            self._sizes[expr.id] = declared
            return declared
        if _is_scalar(self._type(expr)):
            return ONE
        local = self._local(expr)
        return local.size if local else None

    def _size_or_unknown(self, expr: Expr) -> Range:
        return self.size(expr) or UNKNOWN

    def _entries_of(self, expr: Expr) -> _Entries | None:
        if expr.id in self._entries:
            return self._entries[expr.id]
        local = self._local(expr)
        return local.entries if local else None

    def _set_size(self, expr: Expr, size: Range | None) -> None:
        if size is not None:
            self._sizes[expr.id] = size

    def _set_entries(self, expr: Expr, entries: _Entries | None) -> None:
        if entries is not None:
            self._entries[expr.id] = entries

    # -- the walk

    def cost(self, expr: Expr) -> Range:
        if expr.id in self._checked.names and not isinstance(expr, Message):
            name = self._checked.names[expr.id]
            stack = self._locals.get(name)
            self._paths[expr.id] = stack[-1].path if stack else (name,)
            return ONE
        match expr:
            case Literal():
                return ZERO
            case Ident():
                return ONE
            case Select():
                return self._select(expr)
            case Call():
                return self._call(expr)
            case ListExpr():
                return self._list(expr)
            case MapExpr():
                return self._map(expr)
            case Message():
                return self._sum([entry.value for entry in expr.entries]).plus(_MESSAGE)
            case Fold():
                return self._bind(expr) if expr.is_bind else self._fold(expr)

    def _sum(self, exprs: list[Expr]) -> Range:
        total = ZERO
        for expr in exprs:
            total = total.plus(self.cost(expr))
        return total

    def _select(self, expr: Select) -> Range:
        total = self.cost(expr.operand)
        if expr.test:
            return total
        if self._type(expr.operand).kind in ("map", "struct", "param"):
            total = total.plus(ONE)
        self._paths[expr.id] = (*self._path(expr.operand), expr.field)
        return total

    def _operand(self, expr: Expr) -> Operand:
        path = self._path(expr)
        if path and path[0] in (ACCUMULATOR, HIDDEN_ACCUMULATOR):
            path = ()
        return Operand(path, self._type(expr), expr, self.size(expr))

    def _call(self, expr: Call) -> Range:
        if expr.function == "dyn":
            total = self.cost(expr.args[0]).plus(ONE)
            self._set_size(expr, self.size(expr.args[0]))
            self._set_entries(expr, self._entries_of(expr.args[0]))
            return total
        costs: list[Range] = []
        args: list[Operand] = []
        for arg in expr.args:
            costs.append(self.cost(arg))
            args.append(self._operand(arg))
        overloads = self._checked.overloads.get(expr.id, [])
        if not overloads:
            return ZERO
        total, target = ZERO, None
        if expr.target is not None:
            total = self.cost(expr.target)
            target = self._operand(expr.target)
        called = Range(TOP, 0)
        result: Range | None = None
        for overload in overloads:
            one = self._overload(expr, overload, target, args, costs)
            called = called.union(one.cost)
            if one.size is not None:
                result = one.size if result is None else result.union(one.size)
            if overload in ("index_list", "index_map"):
                entries = self._entries_of(expr.args[0])
                result = entries.value if entries else None
                step = "@items" if overload == "index_list" else "@values"
                self._paths[expr.id] = (*self._path(expr.args[0]), step)
            if result is None:
                result = self.size(expr)
        self._set_size(expr, result)
        return total.plus(called)

    def _overload(
        self, expr: Call, overload: str, target: Operand | None, args: list[Operand], costs: list[Range]
    ) -> Estimate:
        """One overload; those that need more than their operands' sizes are here, the rest is a table of formulas."""
        if overload in ("logical_and", "logical_or"):
            return Estimate(Range(costs[0].low, costs[0].plus(costs[1]).high))
        if overload == "conditional":
            left, right = self._entries_of(args[1].expr), self._entries_of(args[2].expr)
            if left and right:
                self._set_entries(expr, left.union(right))
            size = (args[1].size or UNKNOWN).union(args[2].size or UNKNOWN)
            return Estimate(costs[0].plus(costs[1].union(costs[2])), size)
        if overload in ("add_string", "add_bytes", "add_list"):
            left, right = self._entries_of(args[0].expr), self._entries_of(args[1].expr)
            if left and right:
                self._set_entries(expr, left.union(right))
        estimate = estimate_call(expr.function, overload, target, args, modern=self._modern)
        total = ZERO
        for cost in costs:
            total = total.plus(cost)
        return Estimate(estimate.cost.plus(total), estimate.size)

    def _list(self, expr: ListExpr) -> Range:
        total, item = ZERO, Range(TOP if expr.elements else 0, 0)
        for element in expr.elements:
            total = total.plus(self.cost(element))
            item = item.union(self._size_or_unknown(element))
        self._set_entries(expr, _Entries(True, ONE, item))
        return total.plus(_LIST)

    def _map(self, expr: MapExpr) -> Range:
        total = ZERO
        key = value = Range(TOP if expr.entries else 0, 0)
        for entry in expr.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            key = key.union(self._size_or_unknown(entry.key))
            value = value.union(self._size_or_unknown(entry.value))
        self._set_entries(expr, _Entries(False, key, value))
        return total.plus(_MAP)

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _push_iteration(self, expr: Fold) -> None:
        entries = self._entries_of(expr.range)
        is_list = entries.is_list if entries else self._type(expr.range).kind == "list"
        path = self._path(expr.range)
        key, value = (entries.key, entries.value) if entries else (None, None)
        if expr.var2:
            self._push(expr.var, _Local((*path, "@indices" if is_list else "@keys"), key, None))
            self._push(expr.var2, _Local((*path, "@items" if is_list else "@values"), value, None))
        else:
            step = "@items" if is_list else "@keys"
            self._push(expr.var, _Local((*path, step), value if is_list else key, None))

    def _push_accumulator(self, expr: Fold) -> None:
        init = expr.init
        self._push(expr.accu, _Local(self._path(init), self.size(init), self._entries_of(init)))

    def _fold(self, expr: Fold) -> Range:
        total = self.cost(expr.range).plus(self.cost(expr.init))
        self._push_accumulator(expr)
        self._push_iteration(expr)
        loop = self.cost(expr.cond)
        loop = self.cost(expr.step).plus(loop)
        for name in filter(None, (expr.var, expr.var2)):
            self._locals[name].pop()
        total = total.plus(self.cost(expr.result))
        self._locals[expr.accu].pop()
        count = self._size_or_unknown(expr.range)
        total = total.plus(count.times(loop))
        if isinstance(expr.init, Literal):
            self._set_size(expr, self.size(expr.init))
        elif isinstance(expr.init, ListExpr | MapExpr):
            self._set_size(expr, count)
            self._set_entries(expr, self._entries_of(expr.step))
        return total

    def _bind(self, expr: Fold) -> Range:
        total = self.cost(expr.range).plus(self.cost(expr.init))
        self._push_accumulator(expr)
        total = total.plus(self.cost(expr.result))
        self._locals[expr.accu].pop()
        self._set_size(expr, self.size(expr.result))
        self._set_entries(expr, self._entries_of(expr.result))
        return total


def _literal_size(expr: Expr) -> Range | None:
    if isinstance(expr, Literal):
        return fixed(len(expr.value)) if isinstance(expr.value, str | bytes) else ONE
    if isinstance(expr, ListExpr):
        return fixed(len(expr.elements))
    return fixed(len(expr.entries)) if isinstance(expr, MapExpr) else None


def _is_scalar(given: Type) -> bool:
    return given.kind in _SCALARS or (given.is_optional and _is_scalar(given.params[0]))
