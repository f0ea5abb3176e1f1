"""Python source for selectors, so that matching a fleet takes a microsecond or two a device.

The reference evaluator stays the authority. Generated code knows no errors and counts no cost: on anything unexpected
(a missing key, a value of another type, a long string) it raises, and the reference evaluator answers instead.

Why it may skip the cost limit. There are two sorts of generated code, and a reason for each.
- Plain code covers selections with constant keys, comparisons with constants, versions, quantities, a few string tests,
  and logic over them. Every size that enters a cost is that of a literal or of a string of at most 64 characters
  (checked where it matters), so a step costs at most eight units for each character of the text; loops run over
  literals or over at most 64 values, are not nested, and are left out where turns times text could come near the limit.
- Measured code covers most of the rest, by calling the evaluator's own functions. It is made only where the estimate,
  the most that an expression can cost on any device that the API accepts, is a tenth of the limit at most; and it
  refuses values that are longer than the API accepts.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fishplate.cel.absorption import is_calm
from fishplate.cel.access import Aliases, device_path, tested_path
from fishplate.cel.ast import Call, Expr, Fold, Ident, ListExpr, Literal, MapExpr, Select
from fishplate.cel.comparisons import literals, write_comparison, write_equal, write_membership, write_order
from fishplate.cel.guards import LONGEST_VALUE, NAMES, Unsupported
from fishplate.cel.methods import write_includes, write_parsed, write_text_test
from fishplate.cel.plan import CallNode, Const, Membership
from fishplate.cel.readings import Readings
from fishplate.cel.snippet import Scratch, Snippet
from fishplate.cel.tracker import COST_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fishplate.cel.attributes import Node
    from fishplate.cel.checker import Checked
    from fishplate.cel.device import Device
    from fishplate.cel.values import Value

_LONGEST_TEXT = 10_240
_UNITS = 8
_MARGIN = 10
# Python's own parser takes 200 brackets inside each other; a level of ours needs three at most.
_DEEPEST = 50
_RESULTS = {"bool": ("bool", "flag"), "int": ("int", "integer"), "string": ("str", "text")}


def generate(
    checked: Checked,
    calls: Mapping[int, Node],
    source: str,
    cost: int,
    *,
    lists: bool,
    modern: bool,
    absorbing: bool = False,
) -> Callable[[Device], bool] | None:
    """The function, or None where none is made. `calls` are the evaluator's nodes for calls and constant maps.

    An absorbing function is slower, and also answers where a key is missing on a side of `&&` or `||` that the other
    side decides.
    """
    if len(source) > _LONGEST_TEXT or (absorbing and not is_calm(checked.expr)):
        return None
    most_turns = COST_LIMIT // 2 // (_UNITS * len(source))
    for measured in (False, True) if cost * _MARGIN <= COST_LIMIT else (False,):
        readings = Readings(Scratch(), lists=lists, measured=measured)
        writer = _Writer(checked, calls, readings, most_turns, modern=modern, absorbing=absorbing)
        try:
            return writer.function()
        except Unsupported:
            continue
    return None


class _Writer:
    def __init__(
        self,
        checked: Checked,
        calls: Mapping[int, Node],
        readings: Readings,
        most_turns: int,
        *,
        modern: bool,
        absorbing: bool,
    ) -> None:
        self._checked = checked
        self._calls = calls
        self._readings = readings
        self._scratch = readings.scratch
        self._measured = readings.measured
        self._most_turns = most_turns
        self._modern = modern
        self._absorbing = absorbing
        self._locals: dict[str, Snippet] = {}
        self._known: dict[int, Snippet | None] = {}
        self._depth = 0

    def function(self) -> Callable[[Device], bool]:
        body = self._boolean(self._checked.expr, {})
        text = f"def selector(device):\n{self._readings.preamble()}    return {body}\n"
        namespace: dict[str, object] = dict(self._scratch.constants) | NAMES
        # The text is made of our own templates, repr() of literals and numbered names: nothing of the user's runs.
        exec(compile(text, "<selector>", "exec"), namespace)
        selector: Callable[[Device], bool] = namespace["selector"]  # type: ignore[assignment]
        return selector

    def _boolean(self, expr: Expr, aliases: Aliases) -> str:
        return _truth(self._code(expr, aliases))

    def _code(self, expr: Expr, aliases: Aliases) -> Snippet:
        """Every part is written once, also where its surroundings are then written in another way."""
        if expr.id not in self._known:
            self._known[expr.id] = None
            self._depth += 1
            if self._depth <= _DEEPEST:
                with suppress(Unsupported):
                    self._known[expr.id] = self._write(expr, aliases)
            self._depth -= 1
        code = self._known[expr.id]
        if code is None:
            raise Unsupported
        return code

    def _write(self, expr: Expr, aliases: Aliases) -> Snippet:
        if isinstance(expr, Ident) and expr.name in self._locals:
            return self._locals[expr.name]
        path = device_path(expr, aliases)
        if path is not None:
            return self._readings.read(path)
        match expr:
            case Literal():
                return self._literal(expr.value)
            case Select(test=True) if tested := tested_path(expr, aliases):
                return self._readings.presence(tested)
            case Select(test=False) if self._measured and expr.id not in self._checked.names:
                return Snippet("any", f"element({self._code(expr.operand, aliases).text}, {expr.field!r})")
            case Fold():
                return self._bind(expr, aliases) if expr.is_bind else self._fold(expr, aliases)
            case Call():
                return self._call(expr, aliases)
            case MapExpr() if self._measured and isinstance(node := self._calls.get(expr.id), Const):
                return Snippet("any", self._scratch.constant(node.value))
            case ListExpr() if self._measured and not expr.optional:
                return Snippet("any", f"({''.join(f'{self._code(each, aliases).text}, ' for each in expr.elements)})")
        raise Unsupported

    def _literal(self, value: Value) -> Snippet:
        if type(value) is bool:
            return Snippet("bool", repr(value), value)
        if type(value) in (str, int):
            return Snippet("const", repr(value), value)
        if self._measured:
            return Snippet("any", self._scratch.constant(value))
        raise Unsupported

    # -- calls

    def _call(self, expr: Call, aliases: Aliases) -> Snippet:
        match expr.function:
            case "_&&_" | "_||_":
                return self._logic([self._boolean(arg, aliases) for arg in expr.args], either=expr.function == "_||_")
            case "!_":
                return Snippet("bool", f"(not {self._boolean(expr.args[0], aliases)})")
            case "hasValue" if expr.target and (tested := tested_path(expr.target, aliases)):
                return self._readings.presence(tested)
            case "orValue" if expr.target:
                return self._or_value(expr.target, expr.args[0], aliases)
            case "_?._" | "_[?_]" if self._measured and (tested := tested_path(expr, aliases)):
                return self._readings.optional(tested)
            case "@in" if tested := tested_path(expr, aliases):
                return self._readings.presence(tested)
            case "@in" if (path := device_path(expr.args[1], aliases)) and isinstance(expr.args[0], Literal):
                return self._readings.domain_presence(path, expr.args[0].value)
            case "semver" | "quantity" if all(isinstance(arg, Literal) for arg in expr.args):
                return write_parsed(self._scratch, expr)
        try:
            return self._known_call(expr, aliases)
        except Unsupported:
            if not self._measured:
                raise
        return self._any_call(expr, aliases)

    def _logic(self, terms: list[str], *, either: bool) -> Snippet:
        if self._absorbing:
            return Snippet("bool", f"absorb({either}, {', '.join(f'lambda: {term}' for term in terms)})")
        return Snippet("bool", f"({(' or ' if either else ' and ').join(terms)})")

    def _known_call(self, expr: Call, aliases: Aliases) -> Snippet:
        """Calls that have Python of their own."""
        if expr.function in ("_==_", "_!=_"):
            equal = write_equal(self._scratch, *(self._code(arg, aliases) for arg in expr.args))
            return Snippet("bool", f"(not {equal})" if expr.function == "_!=_" else equal)
        if expr.function == "@in":
            return write_membership(self._scratch, self._code(expr.args[0], aliases), expr.args[1])
        if expr.target is not None:
            return self._method(expr, expr.target, aliases)
        if len(expr.args) == 2:
            return write_order(expr.function, *(self._code(arg, aliases) for arg in expr.args))
        raise Unsupported

    def _method(self, expr: Call, target: Expr, aliases: Aliases) -> Snippet:
        subject = self._code(target, aliases)
        arguments = [self._code(arg, aliases) for arg in expr.args]
        if expr.function in ("isGreaterThan", "isLessThan", "compareTo") and len(arguments) == 1:
            return write_comparison(self._scratch, expr.function, subject, arguments[0])
        if expr.function == "includes" and len(arguments) == 1:
            return write_includes(subject, arguments[0], modern=self._modern)
        return write_text_test(self._scratch, expr.function, subject, arguments, measured=self._measured)

    def _any_call(self, expr: Call, aliases: Aliases) -> Snippet:
        """Any other call, by the function that the evaluator would call."""
        operands = [self._code(operand, aliases) for operand in expr.operands]
        args = [operand.text for operand in operands]
        match expr.function:
            case "_==_":
                return Snippet("bool", f"flag(equal({args[0]}, {args[1]}))")
            case "_!=_":
                return Snippet("bool", f"(equal({args[0]}, {args[1]}) is not True)")
            case "_?_:_":
                kind = operands[1].kind if operands[1].kind == operands[2].kind != "const" else "any"
                return Snippet(kind, f"({args[1]} if {_truth(operands[0])} else {args[2]})")
            case "_[_]":
                return Snippet("any", f"element({args[0]}, {args[1]})")
        match self._calls.get(expr.id):
            case Const(value=value):
                return Snippet("any", self._scratch.constant(value))
            case Membership(members=members):
                return Snippet("bool", f"is_member({args[0]}, {self._scratch.constant(members)})")
            case CallNode(implementation=implementation, strict=True):
                declared = self._checked.types[expr.id].kind
                kind, guard = _RESULTS.get(declared, ("any", "sure"))
                return Snippet(kind, f"{guard}({self._scratch.constant(implementation)}({', '.join(args)}))")
        raise Unsupported

    def _or_value(self, target: Expr, default: Expr, aliases: Aliases) -> Snippet:
        tested = tested_path(target, aliases)
        if tested and isinstance(default, Literal) and type(default.value) in (str, int, bool):
            return Snippet("attr", self._readings.read_or(tested, repr(default.value)))
        if not self._measured:
            raise Unsupported
        option, fallback = self._code(target, aliases), self._code(default, aliases)
        seen = self._scratch.name()
        return Snippet("any", f"({seen}.value if option({seen} := {option.text}).present else {fallback.text})")

    # -- names and loops

    def _within(self, names: dict[str, Snippet], expr: Expr, aliases: Aliases) -> Snippet:
        outer = self._locals
        self._locals = outer | names
        try:
            return self._code(expr, {**aliases, **dict.fromkeys(names)})
        finally:
            self._locals = outer

    def _bind(self, expr: Fold, aliases: Aliases) -> Snippet:
        bound = device_path(expr.init, aliases)
        if bound is not None and len(bound) == 2:
            return self._code(expr.result, {**aliases, expr.accu: bound})
        if not self._measured:
            raise Unsupported
        init, name = self._code(expr.init, aliases), self._scratch.name()
        body = self._within({expr.accu: Snippet(init.kind, name)}, expr.result, aliases)
        # Upstream evaluates what is bound when it is first read; if that fails here, the evaluator finds out.
        text = f"bound({init.text})" if init.kind == "any" else init.text
        return Snippet(body.kind, f"({name} := {text}, {body.text})[1]")

    def _fold(self, expr: Fold, aliases: Aliases) -> Snippet:
        """all, exists, exists_one, map, filter and transformList, told apart by how they accumulate."""
        items, (over, names) = self._scratch.name(), self._range(expr, aliases)
        targets = ", ".join(each.text for each in names.values())
        step, condition = expr.step, ""
        if isinstance(step, Call) and step.function == "_?_:_" and self._measured:
            condition = f" if {_truth(self._within(names, step.args[0], aliases))}"
            step = step.args[1]
        match step:
            case Call(function="_||_" | "_&&_") if not condition:
                word = "any" if step.function == "_||_" else "all"
                body = _truth(self._within(names, step.args[1], aliases))
                kind, whole = "bool", f"{word}([{body} for {targets} in {items}])"
            case Call(function="_+_", args=[_, Literal()]) if condition:
                kind, whole = "bool", f"(len([1 for {targets} in {items}{condition}]) == 1)"
            case Call(function="_+_", args=[_, ListExpr(elements=[element])]) if self._measured:
                value = self._within(names, element, aliases).text
                kind, whole = "any", f"tuple([{value} for {targets} in {items}{condition}])"
            case _:
                raise Unsupported
        # Python takes no assignment inside a comprehension's range, so the range gets its name before.
        return Snippet(kind, f"({items} := {over}, {whole})[1]")

    def _range(self, expr: Fold, aliases: Aliases) -> tuple[str, dict[str, Snippet]]:
        """What a loop walks over, and its variables."""
        name = self._scratch.name()
        values = literals(expr.range)
        kinds = set(map(type, values))
        if kinds in ({str}, {int}) and not expr.var2 and (self._measured or len(values) <= self._most_turns):
            if self._locals and not self._measured:
                raise Unsupported
            kind = "str" if kinds == {str} else "int"
            return self._scratch.constant(tuple(values)), {expr.var: Snippet(kind, name)}
        path = device_path(expr.range, aliases)
        if self._measured:
            if path is not None and len(path) < 3 and not expr.var2:
                return self._readings.keys(path), {expr.var: Snippet("str", name)}
            over = self._code(expr.range, aliases).text
            if expr.var2:
                second = self._scratch.name()
                return f"pairs({over})", {expr.var: Snippet("any", name), expr.var2: Snippet("any", second)}
            return f"turns({over})", {expr.var: Snippet("any", name)}
        if path is None or len(path) != 3 or path[0] != "attributes" or self._locals or expr.var2:
            raise Unsupported
        if self._most_turns < LONGEST_VALUE:
            raise Unsupported
        return f"short_list({self._readings.read(path).text})", {expr.var: Snippet("attr", name)}


def _truth(code: Snippet) -> str:
    if code.kind == "bool":
        return code.text
    if code.kind in ("attr", "any"):
        return f"flag({code.text})"
    raise Unsupported
