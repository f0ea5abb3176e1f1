"""Python source for the selectors people write, so that matching a fleet takes a fraction of a microsecond a device.

The reference evaluator stays the authority. The generated function covers selections with constant keys, comparisons
with constants, versions, quantities, a few string tests, and logic over them; on anything unexpected (a missing key, a
value of another type, a long string) it raises, and the reference evaluator answers instead.

Why it may skip the cost limit: every size that enters a cost is that of a literal or of a string of at most 64
characters (checked where it matters), so a step costs at most eight units for each character of the text; loops run
over literals or over at most 64 values, are not nested, and are left out where turns times text could come near it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fishplate.cel.access import Aliases, Path, device_path, tested_path
from fishplate.cel.ast import Call, Expr, Fold, Ident, ListExpr, Literal, Select
from fishplate.cel.guards import LONGEST_VALUE, NAMES, Unsupported
from fishplate.cel.library.re2 import RegexError, compile_re2
from fishplate.cel.tracker import COST_LIMIT
from fishplate.errors import InputError
from fishplate.k8s.quantity import Quantity, parse_quantity
from fishplate.k8s.semver import Semver, normalize_semver, parse_semver

if TYPE_CHECKING:
    from collections.abc import Callable

    from fishplate.cel.device import Device
    from fishplate.cel.values import Value

_LONGEST_TEXT = 10_240
_UNITS = 8
_ORDER = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_TEXT_TESTS = {"startsWith": "{0}.startswith({1})", "endsWith": "{0}.endswith({1})", "contains": "({1} in {0})"}


class _Code(NamedTuple):
    """Python source of an expression; kind is bool, attr (any attribute value), str, int, semver, quantity or const."""

    kind: str
    text: str
    value: Value = None


def generate(expr: Expr, source: str, *, lists: bool, modern: bool) -> Callable[[Device], bool] | None:
    """The function, or None if the expression is outside the subset."""
    if len(source) > _LONGEST_TEXT:
        return None
    writer = _Writer(modern=modern, most_turns=COST_LIMIT // 2 // (_UNITS * len(source)))
    try:
        body = writer.boolean(expr, {})
    except Unsupported:
        return None
    guard = "device.problem" if lists else "not device.plain"
    text = (
        "def selector(device):\n"
        f"    if {guard}: raise Unsupported\n"
        "    A = device.attributes; C = device.capacity; D = device.driver\n"
        f"    return {body}\n"
    )
    namespace: dict[str, object] = dict(writer.constants) | NAMES
    # The text is made of our own templates, repr() of literals and numbered names: nothing of the user's runs as code.
    exec(compile(text, "<selector>", "exec"), namespace)
    selector: Callable[[Device], bool] = namespace["selector"]  # type: ignore[assignment]
    return selector


class _Writer:
    def __init__(self, *, modern: bool, most_turns: int) -> None:
        self.constants: dict[str, Value] = {}
        self._modern = modern
        self._most_turns = most_turns
        self._loop: dict[str, _Code] = {}
        self._temporary = 0

    def _constant(self, value: Value) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def _name(self) -> str:
        self._temporary += 1
        return f"t{self._temporary}"

    # -- reading the device

    def _read(self, path: Path) -> _Code:
        match path:
            case ("driver",):
                return _Code("str", "D")
            case ("allowMultipleAllocations",):
                return _Code("bool", "device.allow_multiple_allocations")
            case ("attributes", domain, name):
                return _Code("attr", self._look_up("A", domain, name, "refuse()"))
            case ("capacity", domain, name):
                return _Code("quantity", self._look_up("C", domain, name, "refuse()"))
        raise Unsupported

    def _look_up(self, table: str, domain: str, name: str, otherwise: str) -> str:
        """By qualified name, or by bare name where the domain is the driver's."""
        if "/" in domain:
            raise Unsupported
        found = self._name()
        qualified = f"({found} := {table}.get({f'{domain}/{name}'!r}))"
        bare = f"{table}.get({name!r}, {otherwise})" if otherwise != "refuse()" else f"{table}[{name!r}]"
        unqualified = otherwise if "/" in name else f"{bare} if D == {domain!r} else {otherwise}"
        return f"({found} if {qualified} is not None else {unqualified})"

    def _presence(self, path: Path) -> _Code:
        if len(path) != 3 or "/" in path[1] or path[0] not in ("attributes", "capacity"):
            raise Unsupported
        table = "A" if path[0] == "attributes" else "C"
        qualified = f"{f'{path[1]}/{path[2]}'!r} in {table}"
        if "/" in path[2]:
            return _Code("bool", f"({qualified})")
        return _Code("bool", f"({qualified} or D == {path[1]!r} and {path[2]!r} in {table})")

    # -- expressions

    def boolean(self, expr: Expr, aliases: Aliases) -> str:
        code = self._code(expr, aliases)
        if code.kind == "bool":
            return code.text
        if code.kind == "attr":
            return f"flag({code.text})"
        raise Unsupported

    def _code(self, expr: Expr, aliases: Aliases) -> _Code:
        if isinstance(expr, Ident) and expr.name in self._loop:
            return self._loop[expr.name]
        path = device_path(expr, aliases)
        if path is not None:
            return self._read(path)
        if isinstance(expr, Literal):
            if type(expr.value) is bool:
                return _Code("bool", repr(expr.value), expr.value)
            if type(expr.value) in (str, int):
                return _Code("const", repr(expr.value), expr.value)
            raise Unsupported
        if isinstance(expr, Select) and (tested := tested_path(expr, aliases)):
            return self._presence(tested)
        if isinstance(expr, Fold) and expr.is_bind:
            bound = device_path(expr.init, aliases)
            # Only whole domains: a bound device.attributes behaves differently where it is empty.
            if bound is None or len(bound) != 2:
                raise Unsupported
            return self._code(expr.result, {**aliases, expr.accu: bound})
        if isinstance(expr, Fold):
            return self._quantifier(expr, aliases)
        if isinstance(expr, Call):
            return self._call(expr, aliases)
        raise Unsupported

    def _call(self, expr: Call, aliases: Aliases) -> _Code:
        match expr.function:
            case "_&&_" | "_||_":
                word = "and" if expr.function == "_&&_" else "or"
                left, right = (self.boolean(arg, aliases) for arg in expr.args)
                return _Code("bool", f"({left} {word} {right})")
            case "!_":
                return _Code("bool", f"(not {self.boolean(expr.args[0], aliases)})")
            case "_==_" | "_!=_":
                return self._equality(expr, aliases)
            case "@in":
                return self._membership(expr, aliases)
            case "semver" | "quantity":
                return self._parsed(expr)
            case "hasValue" if expr.target and (tested := tested_path(expr.target, aliases)):
                return self._presence(tested)
            case "orValue" if expr.target and (tested := tested_path(expr.target, aliases)):
                return self._defaulted(tested, expr.args[0])
        if expr.function in _ORDER:
            return self._order(expr, aliases)
        if expr.target is not None:
            return self._method(expr, expr.target, aliases)
        raise Unsupported

    def _quantifier(self, expr: Fold, aliases: Aliases) -> _Code:
        """exists() and all() with one variable, over string or integer literals or over a list attribute."""
        step = expr.step
        if expr.var2 or self._loop or not isinstance(step, Call) or step.function not in ("_||_", "_&&_"):
            raise Unsupported
        over, kind = self._range(expr.range, aliases)
        turn = self._name()
        self._loop[expr.var] = _Code(kind, turn)
        body = self.boolean(step.args[1], {**aliases, expr.var: None})
        self._loop.clear()
        items, word = self._name(), "any" if step.function == "_||_" else "all"
        # Python takes no assignment inside a comprehension's range, so the range gets its name before.
        return _Code("bool", f"({items} := {over}, {word}([{body} for {turn} in {items}]))[1]")

    def _range(self, expr: Expr, aliases: Aliases) -> tuple[str, str]:
        path = device_path(expr, aliases)
        if path is not None:
            if self._most_turns < LONGEST_VALUE or len(path) != 3 or path[0] != "attributes":
                raise Unsupported
            return f"short_list({self._read(path).text})", "attr"
        if not isinstance(expr, ListExpr) or expr.optional or len(expr.elements) > self._most_turns:
            raise Unsupported
        values = [element.value for element in expr.elements if isinstance(element, Literal)]
        kinds = {type(value) for value in values}
        if len(values) != len(expr.elements) or kinds not in ({str}, {int}):
            raise Unsupported
        return self._constant(tuple(values)), "str" if kinds == {str} else "int"

    def _defaulted(self, path: Path, default: Expr) -> _Code:
        if len(path) != 3 or path[0] != "attributes" or not isinstance(default, Literal):
            raise Unsupported
        if type(default.value) not in (str, int, bool):
            raise Unsupported
        return _Code("attr", self._look_up("A", path[1], path[2], repr(default.value)))

    def _parsed(self, expr: Call) -> _Code:
        """semver("…") and quantity("…") of literals; what does not parse is an error for the reference evaluator."""
        literals = [arg.value for arg in expr.args if isinstance(arg, Literal)]
        try:
            match expr.function, literals:
                case "quantity", [str() as text]:
                    return self._known("quantity", parse_quantity(text))
                case "semver", [str() as text]:
                    return self._known("semver", parse_semver(text))
                case "semver", [str() as text, bool() as normalize]:
                    return self._known("semver", parse_semver(normalize_semver(text) if normalize else text))
        except InputError as error:
            raise Unsupported from error
        raise Unsupported

    def _known(self, kind: str, value: Semver | Quantity) -> _Code:
        return _Code(kind, self._constant(value), value)

    def _equality(self, expr: Call, aliases: Aliases) -> _Code:
        left, right = (self._code(arg, aliases) for arg in expr.args)
        equal = self._equal(left, right)
        return _Code("bool", f"(not {equal})" if expr.function == "_!=_" else equal)

    def _equal(self, left: _Code, right: _Code) -> str:
        kinds = (left.kind, right.kind)
        if kinds == ("quantity", "quantity"):
            return f"({left.text}.nanos == {right.text}.nanos)"
        if "quantity" in kinds:
            raise Unsupported
        if kinds in (("str", "const"), ("const", "str"), ("str", "str")):
            return f"({left.text} == {right.text})"
        if kinds in (("int", "const"), ("const", "int"), ("int", "int")) and str not in (
            type(left.value),
            type(right.value),
        ):
            return f"({left.text} == {right.text})"
        if kinds == ("semver", "attr"):
            return f"(version({right.text}).key == {left.text}.key)"
        if kinds == ("attr", "semver"):
            return f"({left.text} == {right.text})"
        if "attr" in kinds and kinds != ("attr", "attr"):
            return self._equal_attribute(left, right)
        raise Unsupported

    def _equal_attribute(self, left: _Code, right: _Code) -> str:
        """An attribute of unknown type against a constant. A version on the left of another type is an error."""
        attribute, other = (left, right) if left.kind == "attr" else (right, left)
        seen = self._name()
        if type(other.value) is str or other.kind == "str":
            test = f"({seen} := {attribute.text}) == {other.text}"
        elif type(other.value) is bool:
            test = f"({seen} := {attribute.text}) is {other.text}"
        elif type(other.value) is int or other.kind == "int":
            test = f"({seen} := {attribute.text}) == {other.text} and {seen} is not True and {seen} is not False"
        else:
            raise Unsupported
        if attribute is left:
            return f"({test} or type({seen}) is Semver and refuse())"
        return f"({test})"

    def _membership(self, expr: Call, aliases: Aliases) -> _Code:
        element, container = expr.args
        if (tested := tested_path(expr, aliases)) is not None:
            return self._presence(tested)
        if not isinstance(container, ListExpr) or container.optional or not container.elements:
            raise Unsupported
        values = [item.value for item in container.elements if isinstance(item, Literal) and type(item.value) is str]
        code = self._code(element, aliases)
        if len(values) != len(container.elements) or code.kind not in ("attr", "str"):
            raise Unsupported
        members, seen = self._constant(frozenset(values)), self._name()
        if code.kind == "str":
            return _Code("bool", f"({code.text} in {members})")
        # What is no string goes to the reference evaluator; a version there is an error.
        return _Code("bool", f"({seen} in {members} if type({seen} := {code.text}) is str else refuse())")

    def _order(self, expr: Call, aliases: Aliases) -> _Code:
        left, right = (self._code(arg, aliases) for arg in expr.args)
        texts = []
        wanted = {type(code.value) for code in (left, right) if code.kind == "const"} | (
            {int} if "int" in (left.kind, right.kind) else {str} if "str" in (left.kind, right.kind) else set()
        )
        if wanted not in ({int}, {str}):
            raise Unsupported
        for code in (left, right):
            if code.kind == "attr":
                texts.append(f"{'integer' if wanted == {int} else 'short_text'}({code.text})")
            elif code.kind in ("const", "int", "str"):
                texts.append(code.text)
            else:
                raise Unsupported
        return _Code("bool", f"({texts[0]} {_ORDER[expr.function]} {texts[1]})")

    def _method(self, expr: Call, target: Expr, aliases: Aliases) -> _Code:
        subject = self._code(target, aliases)
        args = expr.args
        literal = args[0].value if len(args) == 1 and isinstance(args[0], Literal) else None
        if expr.function in _TEXT_TESTS and isinstance(literal, str):
            return _Code("bool", _TEXT_TESTS[expr.function].format(self._text(subject), repr(literal)))
        if expr.function == "matches" and isinstance(literal, str):
            return self._matches(subject, literal)
        if expr.function in ("isGreaterThan", "isLessThan", "compareTo") and len(args) == 1:
            return self._comparison(expr.function, subject, self._code(args[0], aliases))
        if expr.function == "includes" and subject.kind == "attr" and literal is not None:
            wanted = self._code(args[0], aliases)
            search = "includes" if self._modern else "includes_short"
            return _Code("bool", f"included({subject.text}, {wanted.text}, {search})")
        if expr.function == "size" and not args and subject.kind == "str":
            return _Code("int", f"len({subject.text})")
        raise Unsupported

    def _text(self, subject: _Code) -> str:
        if subject.kind in ("str", "attr"):
            return f"short_text({subject.text})"
        raise Unsupported

    def _matches(self, subject: _Code, pattern: str) -> _Code:
        try:
            search = self._constant(compile_re2(pattern).search)
        except RegexError as error:
            raise Unsupported from error
        return _Code("bool", f"({search}({self._text(subject)}) is not None)")

    def _comparison(self, function: str, left: _Code, right: _Code) -> _Code:
        if right.kind == "semver" and left.kind in ("attr", "semver"):
            one = f"version({left.text}).key" if left.kind == "attr" else f"{left.text}.key"
            two = f"{right.text}.key"
        elif left.kind == right.kind == "quantity":
            one, two = f"{left.text}.nanos", f"{right.text}.nanos"
        else:
            raise Unsupported
        if function == "compareTo":
            first, second = self._name(), self._name()
            return _Code("int", f"((({first} := {one}) > ({second} := {two})) - ({first} < {second}))")
        return _Code("bool", f"({one} {'>' if function == 'isGreaterThan' else '<'} {two})")
