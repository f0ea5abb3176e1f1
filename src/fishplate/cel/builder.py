"""A checked tree to evaluator nodes, with the constant folding that cel-go's optimiser does (it shows in the cost)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fishplate.cel.ast import Call, Expr, Fold, Ident, ListExpr, Literal, MapExpr, Message, Select
from fishplate.cel.attributes import Absolute, Attribute, Computed, Conditional, Constant, Node, Qualifier, Relative
from fishplate.cel.dispatch import bind
from fishplate.cel.library.re2 import RegexError, compile_re2
from fishplate.cel.library.strings import find, find_all
from fishplate.cel.plan import (
    AttributeNode,
    CallNode,
    Const,
    Equality,
    FoldNode,
    ListNode,
    Logical,
    MapNode,
    Membership,
    OptionalOr,
    TestNode,
)
from fishplate.cel.root import Root
from fishplate.cel.values import MAX_INT, MAX_UINT, MIN_INT, NO_SUCH_OVERLOAD, Err, TypeValue, Uint, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from fishplate.cel.checker import Checked
    from fishplate.cel.declarations import Declarations

_CONVERSIONS = frozenset(["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"])
_KEYS = (str, int, Uint, bool, float)


class BuildError(Exception):
    """The expression type-checks but cannot be made into a program."""


class Built(NamedTuple):
    """The root, and the nodes of calls and of constant maps in it, by id."""

    node: Node
    calls: dict[int, Node]


def build(checked: Checked, declared: Declarations, *, modern: bool) -> Built:
    builder = _Builder(checked, declared, modern=modern)
    return Built(builder.node(checked.expr), builder.calls)


class _Builder:
    def __init__(self, checked: Checked, declared: Declarations, *, modern: bool) -> None:
        self._checked = checked
        self._declared = declared
        self._modern = modern
        self._nothing = Root(None, modern=modern)
        self.calls: dict[int, Node] = {}

    def node(self, expr: Expr) -> Node:
        if expr.id in self._checked.names:
            return self._name(expr.id)
        match expr:
            case Literal():
                return Const(expr.id, expr.value)
            case Ident():
                return AttributeNode(Absolute(expr.id, expr.name))
            case Select():
                return self._select(expr)
            case Call():
                return self._call(expr)
            case ListExpr():
                return self._list(expr)
            case MapExpr():
                return self._map(expr)
            case Message():
                raise BuildError(f"unknown type: {expr.name}")
            case Fold():
                parts = (expr.init, expr.range, expr.cond, expr.step, expr.result)
                init, over, cond, step, result = (self.node(part) for part in parts)
                names = (expr.var, expr.var2, expr.accu)
                return FoldNode(expr.id, names, (init, over, cond, step, result))

    def _name(self, node: int) -> Node:
        name, given = self._checked.names[node], self._checked.types[node]
        if given.kind != "type":
            return AttributeNode(Absolute(node, name))
        if name.removeprefix(".") not in self._declared.idents:
            # A variable that holds a type is taken for a type's name, and there is no such type.
            raise BuildError(f"reference to undefined type: {name}")
        return Const(node, TypeValue(given.params[0].runtime_name if given.params else "type"))

    def _attribute(self, operand: Node) -> Attribute:
        return operand.attribute if isinstance(operand, AttributeNode | TestNode) else Relative(operand.id, operand)

    def _select(self, expr: Select) -> Node:
        attribute = self._attribute(self.node(expr.operand))
        attribute.add(Constant(expr.id, expr.field, optional=False, test=expr.test))
        return TestNode(expr.id, attribute) if expr.test else AttributeNode(attribute)

    def _index(self, expr: Call, operands: list[Node], *, optional: bool) -> Node:
        container, index = operands
        qualifier: Qualifier
        if isinstance(index, Const):
            if type(index.value) not in _KEYS:
                raise BuildError(f"invalid qualifier type: {type(index.value).__name__}")
            qualifier = Constant(expr.id, index.value, optional=optional)
        elif isinstance(index, AttributeNode | TestNode):
            qualifier = Computed(expr.id, index.attribute, optional=optional, drops=False)
        else:
            qualifier = Computed(expr.id, Relative(expr.id, index), optional=optional, drops=True)
        attribute = self._attribute(container)
        attribute.add(qualifier)
        return AttributeNode(attribute)

    def _call(self, expr: Call) -> Node:
        overloads = self._checked.overloads.get(expr.id, [])
        chosen = overloads[0] if len(overloads) == 1 else ""
        operands = [self.node(operand) for operand in expr.operands]
        match expr.function:
            case "_&&_" | "_||_":
                return Logical(expr.id, tuple(operands), decides=expr.function == "_||_")
            case "_?_:_":
                cond, truthy, falsy = operands
                return AttributeNode(Conditional(expr.id, cond, self._branch(truthy), self._branch(falsy)))
            case "_==_" | "_!=_":
                return Equality(expr.id, *operands, negated=expr.function == "_!=_")
            case "_[_]" | "_[?_]" | "_?._":
                return self._index(expr, operands, optional=expr.function != "_[_]")
            case "or" if len(operands) == 2 and chosen in ("", "optional_or_optional"):
                return OptionalOr(expr.id, *operands, unwrap=False)
            case "orValue" if len(operands) == 2 and chosen in ("", "optional_orValue_value"):
                return OptionalOr(expr.id, *operands, unwrap=True)
        binding = bind(expr.function, self._declared.functions[expr.function], chosen, modern=self._modern)
        strict = expr.function != "@not_strictly_false"
        args = tuple(operands)
        call = CallNode(expr.id, expr.function, chosen, args, binding.call, eager=binding.eager, strict=strict)
        self.calls[expr.id] = self._optimised(call)
        return self.calls[expr.id]

    def _branch(self, node: Node) -> Attribute:
        return self._attribute(node)

    def _optimised(self, call: CallNode) -> Node:
        if call.overload == "in_list" and isinstance(call.args[1], Const):
            return _membership(call, call.args[1].value)
        if call.function in _CONVERSIONS and len(call.args) == 1 and isinstance(call.args[0], Const):
            value = call.compute(self._nothing)
            if isinstance(value, Err):
                raise BuildError(value.message)
            return Const(call.id, value)
        if call.function in ("matches", "find", "findAll") and isinstance(call.args[1], Const):
            pattern = call.args[1].value
            if isinstance(pattern, str):
                return _with_pattern(call, pattern)
        return call

    def _list(self, expr: ListExpr) -> Node:
        made = ListNode(expr.id, tuple(self.node(element) for element in expr.elements), expr.optional)
        if all(isinstance(element, Const) for element in made.elements):
            return Const(expr.id, made.compute(self._nothing))
        return made

    def _map(self, expr: MapExpr) -> Node:
        keys: list[Node] = []
        values: list[Node] = []
        for entry in expr.entries:
            keys.append(self.node(entry.key))
            values.append(self.node(entry.value))
        optional = frozenset(index for index, entry in enumerate(expr.entries) if entry.optional)
        made = MapNode(expr.id, tuple(keys), tuple(values), optional)
        if all(isinstance(part, Const) for part in (*keys, *values)):
            self.calls[expr.id] = Const(expr.id, made.compute(self._nothing))
            return self.calls[expr.id]
        return made


def _membership(call: CallNode, items: Value) -> Node:
    """A look-up in place of a search, where the constants allow it."""
    assert isinstance(items, tuple)
    if not items:
        return Const(call.id, False)
    members: set[tuple[type, Value]] = set()
    for item in items:
        if type(item) not in _KEYS:
            return call
        members.add((type(item), item))
        members.update(_equal_numbers(item))
    return Membership(call.id, call.args[0], frozenset(members))


def _equal_numbers(value: Value) -> list[tuple[type, Value]]:
    """The same number in the other numeric types, where nothing is lost."""
    if isinstance(value, float):
        found: list[tuple[type, Value]] = []
        if value.is_integer() and MIN_INT < value < MAX_INT:
            found.append((int, int(value)))
        if value.is_integer() and 0 <= value < 2.0**64:
            found.append((Uint, Uint(int(value))))
        return found
    if type(value) is int:
        return [(float, float(value)), *([(Uint, Uint(value))] if value >= 0 else [])]
    if isinstance(value, Uint):
        return [(float, float(value)), *([(int, int(value))] if value <= min(MAX_INT, MAX_UINT) else [])]
    return []


def _with_pattern(call: CallNode, pattern: str) -> Node:
    """A constant pattern is compiled, and refused, when the program is built."""
    try:
        compiled = compile_re2(pattern)
    except RegexError as error:
        raise BuildError(str(error)) from error
    search = compiled.search

    def matches(text: Value, _: Value) -> Value:
        return search(text) is not None if isinstance(text, str) else NO_SUCH_OVERLOAD

    def find_one(text: Value, _: Value) -> Value:
        return find(text, pattern) if isinstance(text, str) else NO_SUCH_OVERLOAD

    def find_many(text: Value, _: Value, limit: Value = -1) -> Value:
        if not isinstance(text, str) or type(limit) is not int:
            return NO_SUCH_OVERLOAD
        return find_all(text, pattern, limit)

    table: dict[str, Callable[..., Value]] = {"matches": matches, "find": find_one, "findAll": find_many}
    return CallNode(call.id, call.function, call.overload, call.args, table[call.function], eager=False)
