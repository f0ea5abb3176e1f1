"""The type checker: names to declarations, calls to overloads, a type for every node.

It follows cel-go's checker step by step, because which overloads remain possible decides both the cost estimate and
how a call is dispatched at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fishplate.cel import unify
from fishplate.cel.ast import Call, Entry, Expr, Fold, Ident, ListExpr, Literal, MapExpr, Message, Select
from fishplate.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Type,
    list_type,
    map_type,
    optional_type,
    param_type,
)
from fishplate.cel.values import Uint

if TYPE_CHECKING:
    from fishplate.cel.declarations import Declarations, Overload
    from fishplate.cel.source import Report
    from fishplate.cel.values import Value


class Checked(NamedTuple):
    """The tree with what is known of its nodes, by id."""

    expr: Expr
    types: dict[int, Type]
    overloads: dict[int, list[str]]
    names: dict[int, str]
    offsets: dict[int, int]


def check(expr: Expr, offsets: dict[int, int], declared: Declarations, report: Report) -> Checked:
    checker = _Checker(offsets, declared, report)
    checker.visit(expr)
    types = {node: unify.substitute(checker.bindings, given, free_to_dyn=True) for node, given in checker.types.items()}
    return Checked(expr, types, checker.overloads, checker.names, offsets)


class _Checker:
    def __init__(self, offsets: dict[int, int], declared: Declarations, report: Report) -> None:
        self.types: dict[int, Type] = {}
        self.overloads: dict[int, list[str]] = {}
        self.names: dict[int, str] = {}
        self.bindings: unify.Bindings = {}
        self._offsets = offsets
        self._declared = declared
        self._report = report
        self._scopes: list[dict[str, Type]] = []
        self._free = 0

    # -- small parts

    def _error(self, node: int, message: str) -> None:
        self._report.add(self._offsets.get(node), message)

    def _undeclared(self, node: int, name: str) -> None:
        self._error(node, f"undeclared reference to '{name}' (in container '')")
        self.types[node] = ERROR

    def _mismatch(self, node: int, expected: Type, actual: Type) -> None:
        self._error(node, f"expected type '{expected.text}' but found '{actual.text}'")

    def _resolved(self, given: Type) -> Type:
        return unify.substitute(self.bindings, given)

    def _variable(self) -> Type:
        self._free += 1
        return param_type(f"_var{self._free - 1}")

    def _assign(self, left: list[Type], right: list[Type]) -> bool:
        bindings = unify.assignable(self.bindings, left, right)
        if bindings is None:
            return False
        self.bindings = bindings
        return True

    def _lookup(self, name: str) -> Type | None:
        bare = name.removeprefix(".")
        for scope in reversed(self._scopes):
            if bare in scope and not (self._declared.dot_is_global and bare != name):
                return scope[bare]
        return self._declared.idents.get(bare)

    def _resolved_name(self, name: str) -> str:
        """As the evaluator looks it up: with its dot, where that tells a global from a local of the same name."""
        bare = name.removeprefix(".")
        shadowed = self._declared.dot_is_global and any(bare in scope for scope in self._scopes)
        return name if shadowed else bare

    # -- nodes

    def visit(self, expr: Expr) -> Type:
        match expr:
            case Literal():
                self.types[expr.id] = _literal_type(expr.value)
            case Ident():
                self._visit_ident(expr)
            case Select():
                self._visit_select(expr)
            case Call():
                self._visit_call(expr)
            case ListExpr():
                self._visit_list(expr)
            case MapExpr():
                self._visit_map(expr)
            case Message():
                self._visit_message(expr)
            case Fold():
                self._visit_fold(expr)
        return self.types[expr.id]

    def _visit_ident(self, expr: Ident) -> None:
        found = self._lookup(expr.name)
        if found is None:
            self._undeclared(expr.id, expr.name)
            return
        self.types[expr.id] = found
        self.names[expr.id] = self._resolved_name(expr.name)

    def _visit_select(self, expr: Select) -> None:
        if not expr.test and (name := qualified_name(expr)) and (found := self._lookup(name)):
            self.types[expr.id] = found
            self.names[expr.id] = self._resolved_name(name)
            return
        result = self._field(expr.id, expr.operand, expr.field, optional=False)
        self.types[expr.id] = self._resolved(BOOL if expr.test else result)

    def _field(self, node: int, operand: Expr, field: str, *, optional: bool) -> Type:
        target = self._resolved(self.visit(operand))
        was_optional = target.is_optional
        if was_optional:
            target = target.params[0]
        result = ERROR
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "struct":
            result = self._struct_field(node, target, field)
        elif target.kind == "param":
            self._assign([DYN], [target])
            result = DYN
        else:
            if not (target.is_dyn or target.kind == "error"):
                self._error(node, f"type '{target.text}' does not support field selection")
            result = DYN
        return optional_type(result) if was_optional or optional else result

    def _struct_field(self, node: int, target: Type, field: str) -> Type:
        if target != self._declared.struct:
            self._error(node, f"unexpected failed resolution of '{target.name}'")
            return ERROR
        if field not in self._declared.device:
            self._error(node, f"undefined field '{field}'")
            return ERROR
        return self._declared.device[field]

    def _visit_call(self, expr: Call) -> None:
        if expr.function == "_?._" and isinstance(expr.args[1], Literal) and isinstance(expr.args[1].value, str):
            result = self._field(expr.id, expr.args[0], expr.args[1].value, optional=True)
            self.types[expr.id] = self._resolved(result)
            self.overloads[expr.id] = ["select_optional_field"]
            return
        for arg in expr.args:
            self.visit(arg)
        functions = self._declared.functions
        if expr.target is None:
            expr.function = expr.function.removeprefix(".") if expr.function[1:] in functions else expr.function
        elif prefix := qualified_name(expr.target):
            name = f"{prefix.removeprefix('.')}.{expr.function}"
            if name in functions:
                # `sets.contains(...)`: what looked like a receiver is part of the function's name.
                expr.function, expr.target = name, None
        if expr.target is not None:
            self.visit(expr.target)
        if expr.function not in functions:
            self._undeclared(expr.id, expr.function)
            return
        self._resolve(expr, functions[expr.function])

    def _resolve(self, expr: Call, overloads: tuple[Overload, ...]) -> None:
        given = [self.types[operand.id] for operand in expr.operands]
        if expr.function in ("_&&_", "_||_"):
            self._resolve_logical(expr, given, overloads[0].id)
            return
        result: Type | None = None
        matched: list[str] = []
        for overload in overloads:
            if overload.method != (expr.target is not None):
                continue
            fresh = {name: self._variable() for name in sorted(overload.params)}
            if not self._assign(given, [unify.substitute(fresh, arg) for arg in overload.args]):
                continue
            matched.append(overload.id)
            found = self._resolved(unify.substitute(fresh, overload.result))
            if result is None:
                result = found
            elif not result.is_dyn and found != result:
                result = DYN
        if result is None:
            shown = [unify.substitute(self.bindings, one, free_to_dyn=True).text for one in given]
            receiver = f"{shown.pop(0)}." if expr.target is not None else ""
            signature = f"{receiver}({', '.join(shown)})"
            self._error(expr.id, f"found no matching overload for '{expr.function}' applied to '{signature}'")
            self.types[expr.id] = ERROR
            return
        self.types[expr.id] = result
        self.overloads[expr.id] = matched

    def _resolve_logical(self, expr: Call, given: list[Type], overload: str) -> None:
        good = True
        for operand, one in zip(expr.operands, given, strict=True):
            if not self._assign([one], [BOOL]):
                self._mismatch(operand.id, BOOL, one)
                good = False
        self.types[expr.id] = BOOL if good else ERROR
        if good:
            self.overloads[expr.id] = [overload]

    def _join(self, previous: Type | None, current: Type) -> Type:
        """The type of a list's elements. Mixed ones are refused later, by a validator that lets format() have them."""
        if previous is None:
            return current
        return unify.most_general(previous, current) if self._assign([previous], [current]) else DYN

    def _unwrapped(self, expr: Expr, given: Type) -> Type:
        """The value type of an optional element such as `[?x]`."""
        if given.is_optional:
            return given.params[0]
        if not given.is_dyn:
            self._mismatch(expr.id, optional_type(given), given)
        return given

    def _visit_list(self, expr: ListExpr) -> None:
        joined: Type | None = None
        for index, element in enumerate(expr.elements):
            given = self.visit(element)
            if index in expr.optional:
                given = self._unwrapped(element, given)
            joined = self._join(joined, given)
        self.types[expr.id] = list_type(joined or self._variable())

    def _visit_map(self, expr: MapExpr) -> None:
        keys: Type | None = None
        values: Type | None = None
        for entry in expr.entries:
            keys = self._join(keys, self.visit(entry.key))
            values = self._join(values, self._entry_value(entry))
        if keys is None or values is None:
            keys, values = self._variable(), self._variable()
        self.types[expr.id] = map_type(keys, values)

    def _entry_value(self, entry: Entry) -> Type:
        given = self.visit(entry.value)
        return self._unwrapped(entry.value, given) if entry.optional else given

    def _visit_message(self, expr: Message) -> None:
        found = self._lookup(expr.name)
        if found is None:
            self._undeclared(expr.id, expr.name)
            return
        made = found.params[0] if found.kind == "type" and found.params else ERROR
        if found.kind != "type":
            self._error(expr.id, f"'{found.declared}' is not a type")
        elif made.kind != "struct":
            self._error(expr.id, f"'{made.declared}' is not a message type")
            made = ERROR
        self.types[expr.id] = made
        for entry in expr.entries:
            value = self._entry_value(entry)
            name = entry.key.name if isinstance(entry.key, Ident) else ""
            field = self._struct_field(entry.id, made, name) if made != ERROR else ERROR
            if not self._assign([field], [value]):
                message = f"expected type of field '{name}' is '{field.text}' but provided type is '{value.text}'"
                self._error(entry.id, message)

    def _visit_fold(self, expr: Fold) -> None:
        over = self._resolved(self.visit(expr.range))
        accu = self.visit(expr.init)
        over = self._resolved(over)
        first, second = self._iteration(expr, over)
        self._scopes.append({expr.accu: accu})
        self._scopes.append({expr.var: first} | ({expr.var2: second} if expr.var2 else {}))
        self._require(expr.cond, BOOL)
        self._require(expr.step, accu)
        self._scopes.pop()
        result = self.visit(expr.result)
        self._scopes.pop()
        self.types[expr.id] = self._resolved(result)

    def _iteration(self, expr: Fold, over: Type) -> tuple[Type, Type]:
        if over.kind == "list":
            element = over.params[0]
            return (INT, element) if expr.var2 else (element, ERROR)
        if over.kind == "map":
            return over.params[0], over.params[1]
        if over.kind in ("dyn", "error", "param"):
            self._assign([DYN], [over])
            return DYN, DYN
        message = f"expression of type '{over.text}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self._error(expr.range.id, message)
        return ERROR, ERROR

    def _require(self, expr: Expr, wanted: Type) -> None:
        given = self.visit(expr)
        if not self._assign([wanted], [given]):
            self._mismatch(expr.id, wanted, given)


def qualified_name(expr: Expr) -> str:
    """`a.b.c` for a chain of plain selections on a name, else nothing."""
    if isinstance(expr, Ident):
        return expr.name
    if isinstance(expr, Select) and not expr.test and (prefix := qualified_name(expr.operand)):
        return f"{prefix}.{expr.field}"
    return ""


def _literal_type(value: Value) -> Type:
    if value is None:
        return NULL
    table: dict[type, Type] = {bool: BOOL, int: INT, Uint: UINT, float: DOUBLE, str: STRING, bytes: BYTES}
    return table[type(value)]
