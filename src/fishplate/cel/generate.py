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

from fishplate.cel.access import Aliases, device_path, tested_path
from fishplate.cel.ast import Call, Expr, Fold, Ident, ListExpr, Literal, Select
from fishplate.cel.comparisons import literals, write_comparison, write_equal, write_membership, write_order
from fishplate.cel.guards import LONGEST_VALUE, NAMES, Unsupported
from fishplate.cel.library.re2 import RegexError, compile_re2
from fishplate.cel.plan import CallNode, Const, Membership
from fishplate.cel.readings import Readings
from fishplate.cel.snippet import Scratch, Snippet
from fishplate.cel.tracker import COST_LIMIT
from fishplate.errors import InputError
from fishplate.k8s.quantity import Quantity, parse_quantity
from fishplate.k8s.semver import Semver, normalize_semver, parse_semver

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
_TEXT_TESTS = {"startsWith": "{0}.startswith({1})", "endsWith": "{0}.endswith({1})", "contains": "({1} in {0})"}
_RESULTS = {"bool": ("bool", "flag"), "int": ("int", "integer"), "string": ("str", "text")}


def generate(
    checked: Checked, calls: Mapping[int, Node], source: str, cost: int, *, lists: bool, modern: bool
) -> Callable[[Device], bool] | None:
    """The function, or None where none is made. `calls` are the evaluator's nodes for calls."""
    if len(source) > _LONGEST_TEXT:
        return None
    most_turns = COST_LIMIT // 2 // (_UNITS * len(source))
    for measured in (False, True) if cost * _MARGIN <= COST_LIMIT else (False,):
        writer = _Writer(checked, calls, most_turns, lists=lists, modern=modern, measured=measured)
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
        most_turns: int,
        *,
        lists: bool,
        modern: bool,
        measured: bool,
    ) -> None:
        self._checked = checked
        self._calls = calls
        self._most_turns = most_turns
        self._modern = modern
        self._measured = measured
        self._scratch = Scratch()
        self._readings = Readings(self._scratch, lists=lists, measured=measured)
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
                word = " and " if expr.function == "_&&_" else " or "
                return Snippet("bool", f"({word.join(self._boolean(arg, aliases) for arg in expr.args)})")
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
            case "semver" | "quantity" if all(isinstance(arg, Literal) for arg in expr.args):
                return self._parsed(expr)
        try:
            return self._known_call(expr, aliases)
        except Unsupported:
            if not self._measured:
                raise
        return self._any_call(expr, aliases)

    def _known_call(self, expr: Call, aliases: Aliases) -> Snippet:
        """Calls that have Python of their own."""
        if expr.function in ("_==_", "_!=_"):
            equal = write_equal(self._scratch, *(self._code(arg, aliases) for arg in expr.args))
            return Snippet("bool", f"(not {equal})" if expr.function == "_!=_" else equal)
        if expr.function == "@in":
            return write_membership(self._scratch, self._code(expr.args[0], aliases), expr.args[1])
        if expr.target is not None:
            return self._method(expr, self._code(expr.target, aliases), aliases)
        if len(expr.args) == 2:
            return write_order(expr.function, *(self._code(arg, aliases) for arg in expr.args))
        raise Unsupported

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

    def _parsed(self, expr: Call) -> Snippet:
        """semver("…") and quantity("…") of literals; what does not parse is an error for the reference evaluator."""
        written = [arg.value for arg in expr.args if isinstance(arg, Literal)]
        try:
            match expr.function, written:
                case "quantity", [str() as text]:
                    return self._constant("quantity", parse_quantity(text))
                case "semver", [str() as text]:
                    return self._constant("semver", parse_semver(text))
                case "semver", [str() as text, bool() as normalize]:
                    return self._constant("semver", parse_semver(normalize_semver(text) if normalize else text))
        except InputError as error:
            raise Unsupported from error
        raise Unsupported

    def _constant(self, kind: str, value: Semver | Quantity) -> Snippet:
        return Snippet(kind, self._scratch.constant(value), value)

    def _method(self, expr: Call, subject: Snippet, aliases: Aliases) -> Snippet:
        literal = expr.args[0].value if len(expr.args) == 1 and isinstance(expr.args[0], Literal) else None
        if expr.function in _TEXT_TESTS and isinstance(literal, str):
            return Snippet("bool", _TEXT_TESTS[expr.function].format(self._text(subject), repr(literal)))
        if expr.function == "matches" and isinstance(literal, str):
            return self._matches(subject, literal)
        if expr.function in ("isGreaterThan", "isLessThan", "compareTo") and len(expr.args) == 1:
            return write_comparison(self._scratch, expr.function, subject, self._code(expr.args[0], aliases))
        if expr.function == "includes" and subject.kind == "attr" and literal is not None:
            wanted = self._code(expr.args[0], aliases)
            search = "includes" if self._modern else "includes_short"
            return Snippet("bool", f"included({subject.text}, {wanted.text}, {search})")
        if expr.function == "size" and not expr.args and subject.kind == "str":
            return Snippet("int", f"len({subject.text})")
        raise Unsupported

    def _text(self, subject: Snippet) -> str:
        if subject.kind == "str" and self._measured:
            return subject.text
        if subject.kind in ("str", "attr"):
            return f"short_text({subject.text})"
        raise Unsupported

    def _matches(self, subject: Snippet, pattern: str) -> Snippet:
        try:
            search = self._scratch.constant(compile_re2(pattern).search)
        except RegexError as error:
            raise Unsupported from error
        return Snippet("bool", f"({search}({self._text(subject)}) is not None)")

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
        if self._measured:
            over = self._code(expr.range, aliases).text
            if expr.var2:
                second = self._scratch.name()
                return f"pairs({over})", {expr.var: Snippet("any", name), expr.var2: Snippet("any", second)}
            return f"turns({over})", {expr.var: Snippet("any", name)}
        path = device_path(expr.range, aliases)
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
