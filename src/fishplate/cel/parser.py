"""Tokens to a syntax tree, by recursive descent over the CEL grammar.

Two properties matter beyond the grammar. Nodes get their ids in the order cel-go gives them, because a few run-time
messages print an id and the cost tracker tells nodes apart by it. And a chain of `&&` or `||` becomes a balanced tree,
because evaluation order, cost and absorbed errors follow the tree.

After the first syntax error this parser stops; cel-go tries to recover and may report follow-up errors.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from fishplate.cel import literals
from fishplate.cel.ast import Call, Entry, Expr, Ident, ListExpr, Literal, MapExpr, Message, Select
from fishplate.cel.macros import MacroError, Macros
from fishplate.cel.tokens import STARTERS, Stopped, Tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from fishplate.cel.lexer import Token
    from fishplate.cel.source import Report
    from fishplate.cel.values import Value

_RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
_RELATIONS = {"<": "_<_", "<=": "_<=_", ">=": "_>=_", ">": "_>_", "==": "_==_", "!=": "_!=_", "in": "@in"}
_SUMS = {"+": "_+_", "-": "_-_"}
_PRODUCTS = {"*": "_*_", "/": "_/_", "%": "_%_"}
_MOST_CHARACTERS = 100_000
_DEEPEST = 250
# 250 nested expressions are legal and take about ten frames each; CPython's frames are on the heap, so this is cheap.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 10_000))


class Parsed(NamedTuple):
    """The tree (None after a syntax error), the offset of every node, and the source ranges of whole operands."""

    expr: Expr | None
    offsets: dict[int, int]
    spans: dict[int, tuple[int, int]]


def parse(text: str, report: Report, *, escaped_names: bool) -> Parsed:
    if len(text) > _MOST_CHARACTERS:
        report.add(None, f"expression code point size exceeds limit: size: {len(text)}, limit {_MOST_CHARACTERS}")
        return Parsed(None, {}, {})
    parser = Parser(text, report, escaped_names=escaped_names)
    try:
        expr = parser.parse_all()
    except Stopped:
        return Parsed(None, parser.offsets, {})
    return Parsed(expr, parser.offsets, parser.spans)


class Parser(Tokens):
    def __init__(self, text: str, report: Report, *, escaped_names: bool) -> None:
        super().__init__(text, report)
        self.offsets: dict[int, int] = {}
        self.spans: dict[int, tuple[int, int]] = {}
        self.macros = Macros(self.new_id, self.offsets)
        self._escaped_names = escaped_names
        self._last_id = 0
        self._depth = 0
        self._heights: dict[int, int] = {}

    # -- ids and errors

    def new_id(self, offset: int) -> int:
        self._last_id += 1
        self.offsets[self._last_id] = offset
        return self._last_id

    def _fault(self, offset: int, message: str) -> Expr:
        """An error that does not stop the parser; the node stands in for what should have been there."""
        node = self.new_id(offset)
        self.report.add(offset, message)
        return Literal(node, None)

    def _raise(self, expr: Expr, below: list[Expr], *, counted: bool = True) -> Expr:
        """Note how high the tree has grown; operators and selections count, other nodes only pass on."""
        height = max((self._heights.get(child.id, 0) for child in below), default=0) + counted
        self._heights[expr.id] = height
        return expr

    # -- grammar

    def parse_all(self) -> Expr:
        expr = self._expr()
        token = self._token
        if token.kind != "EOF":
            single = self.tokens[self.position + 1].kind == "EOF"
            self._stop(token, f"{'extraneous' if single else 'mismatched'} input '{token.shown}' expecting <EOF>")
        if max(self._heights.values(), default=0) > _DEEPEST:
            self.report.add(None, "max recursion depth exceeded")
        return expr

    def _expr(self, also: str = "") -> Expr:
        if self._token.kind not in STARTERS:
            self._no_expression(also)
        self._depth += 1
        if self._depth > _DEEPEST:
            self.report.add(None, f"expression recursion limit exceeded: {_DEEPEST}")
            raise Stopped
        expr = self._logical("||", "_||_", lambda: self._logical("&&", "_&&_", self._relation))
        if question := self._accept("?"):
            node = self.new_id(question.start)
            if_true = self._logical("||", "_||_", lambda: self._logical("&&", "_&&_", self._relation))
            if not self._accept(":"):
                self._stop(self._token, f"mismatched input '{self._token.shown}' expecting ':'")
            parts = [expr, if_true, self._expr()]
            expr = self._raise(self.macros.call(node, "_?_:_", parts), parts)
        self._depth -= 1
        return expr

    def _spanned(self, operand: Callable[[], Expr]) -> Expr:
        start = self._token.start
        expr = operand()
        self.spans[expr.id] = (start, self.tokens[self.position - 1].end)
        return expr

    def _logical(self, operator: str, function: str, operand: Callable[[], Expr]) -> Expr:
        terms, ops = [self._spanned(operand)], []
        while token := self._accept(operator):
            terms.append(self._spanned(operand))
            ops.append(self.new_id(token.start))

        def balance(low: int, high: int) -> Expr:
            middle = (low + high + 1) // 2
            left = terms[middle] if middle == low else balance(low, middle - 1)
            right = terms[middle + 1] if middle == high else balance(middle + 1, high)
            return self._raise(Call(ops[middle], function, [left, right]), [left, right], counted=False)

        return balance(0, len(ops) - 1) if ops else terms[0]

    def _chain(self, operators: dict[str, str], operand: Callable[[], Expr]) -> Expr:
        left = operand()
        while (token := self._token).kind in operators:
            self.position += 1
            node = self.new_id(token.start)
            parts = [left, operand()]
            left = self._raise(self.macros.call(node, operators[token.kind], parts), parts)
        return left

    def _relation(self) -> Expr:
        return self._chain(_RELATIONS, self._sum)

    def _sum(self) -> Expr:
        return self._chain(_SUMS, lambda: self._chain(_PRODUCTS, self._unary))

    def _unary(self) -> Expr:
        token = self._token
        if token.kind not in ("!", "-"):
            return self._member()
        if token.kind == "-" and self.tokens[self.position + 1].kind in ("NUM_INT", "NUM_FLOAT"):
            return self._member()
        count = 0
        while self._accept(token.kind):
            count += 1
        if count % 2 == 0:
            return self._member()
        node = self.new_id(token.start)
        operand = self._member()
        call = self.macros.call(node, "!_" if token.kind == "!" else "-_", [operand])
        return self._raise(call, [operand], counted=False)

    def _member(self) -> Expr:
        start = self._token.start
        expr = self._primary()
        while True:
            self.spans[expr.id] = (start, self.tokens[self.position - 1].end)
            if dot := self._accept("."):
                expr = self._selection(expr, dot)
            elif bracket := self._accept("["):
                optional = self._accept("?")
                node = self.new_id(bracket.start)
                index = self._expr("" if optional else "'?', ")
                self._close("]")
                parts = [expr, index]
                expr = self._raise(self.macros.call(node, "_[?_]" if optional else "_[_]", parts), parts)
            else:
                return expr

    def _selection(self, operand: Expr, dot: Token) -> Expr:
        optional = self._accept("?")
        token = self._token
        if token.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            if token.kind in ("true", "false", "null"):
                self._stop(token, f"mismatched input '{token.shown}' expecting IDENTIFIER")
            seen = "" if token.kind == "EOF" else token.shown
            self._stop(token, f"no viable alternative at input '.{'?' if optional else ''}{seen}'")
        self.position += 1
        if token.kind == "IDENTIFIER" and not optional and self._token.kind == "(":
            opened = self._next()
            node = self.new_id(opened.start)
            args = self._arguments()
            return self._raise(self._macro_or_call(node, token.text, operand, args), [operand, *args])
        name = token.text
        if token.kind == "ESC_IDENTIFIER":
            if not self._escaped_names:
                self._fault(token.start, "unsupported syntax: '`'")
            name = name[1:-1]
        if optional:
            field = Literal(self.new_id(token.start), name)
            return self._raise(Call(self.new_id(dot.start), "_?._", [operand, field]), [operand])
        return self._raise(Select(self.new_id(dot.start), operand, name), [operand])

    def _arguments(self) -> list[Expr]:
        if self._accept(")"):
            return []
        args = [self._expr("')', ")]
        while self._accept(","):
            args.append(self._expr())
        self._close(")")
        return args

    def _macro_or_call(self, node: int, name: str, target: Expr | None, args: list[Expr]) -> Expr:
        try:
            return self.macros.call(node, name, args, target)
        except MacroError as error:
            offset = self.offsets[error.node]
            del self.offsets[node]
            return self._fault(offset, error.message)

    def _primary(self) -> Expr:
        token = self._next()
        match token.kind:
            case "(":
                inner = self._expr()
                self._close(")")
                return inner
            case "[":
                return self._list(token)
            case "{":
                return self._map(token)
            case "." | "IDENTIFIER":
                return self._name(token)
            case _:
                return self._literal(token)

    def _literal(self, token: Token) -> Expr:
        negative = token.kind == "-"
        number = self._next() if negative else token
        try:
            value = self._literal_value(number, negative=negative)
        except ValueError as error:
            return self._fault(token.start, str(error))
        return Literal(self.new_id(token.start), value)

    def _literal_value(self, token: Token, *, negative: bool) -> Value:
        match token.kind:
            case "NUM_INT":
                return literals.read_int(token.text, negative=negative)
            case "NUM_FLOAT":
                return literals.read_double(token.text, negative=negative)
            case "NUM_UINT" if not negative:
                return literals.read_uint(token.text)
            case "STRING" if not negative:
                return literals.read_string(token.text)
            case "BYTES" if not negative:
                return literals.read_bytes(token.text)
            case "true" | "false" if not negative:
                return token.kind == "true"
            case "null" if not negative:
                return None
        self.position -= 1
        return self._no_expression()

    def _name(self, token: Token) -> Expr:
        leading = token.kind == "."
        name = self._next() if leading else token
        if name.kind != "IDENTIFIER":
            self._stop(name, f"no viable alternative at input '.{'' if name.kind == 'EOF' else name.shown}'")
        if message := self._message_name(name):
            return self._message(message, leading=leading)
        text = f".{name.text}" if leading else name.text
        if name.text in _RESERVED:
            if self._accept("("):
                self._arguments()
            return self._fault(token.start, f"reserved identifier: {name.text}")
        if opened := self._accept("("):
            node = self.new_id(opened.start)
            args = self._arguments()
            return self._raise(self._macro_or_call(node, text, None, args), args, counted=False)
        return Ident(self.new_id(name.start), text)

    def _message_name(self, first: Token) -> list[str]:
        """`a.b.C` where a `{` follows at once; otherwise empty, with nothing consumed."""
        names, position = [first.text], self.position
        while self.tokens[position].kind == "." and self.tokens[position + 1].kind == "IDENTIFIER":
            names.append(self.tokens[position + 1].text)
            position += 2
        if self.tokens[position].kind != "{":
            return []
        self.position = position
        return names

    def _message(self, names: list[str], *, leading: bool) -> Expr:
        brace = self._next()
        node = self.new_id(brace.start)
        entries = []
        while self._token.kind not in ("}", "EOF"):
            optional = self._accept("?") is not None
            name = self._next()
            colon = self._accept(":")
            if colon is None or name.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
                self._stop(name, f"mismatched input '{name.shown}' expecting ':'")
            entry = self.new_id(colon.start)
            entries.append(Entry(entry, Ident(entry, name.text.strip("`")), self._expr(), optional=optional))
            if not self._accept(","):
                break
        self._close("}")
        return Message(node, ("." if leading else "") + ".".join(names), entries)

    def _lone_comma(self) -> None:
        """The grammar allows `[,]` and `{,}`, and nothing after that comma."""
        if self._accept(",") and self._token.kind not in ("]", "}"):
            self._close("]" if self.tokens[self.position - 2].kind == "[" else "}")

    def _list(self, bracket: Token) -> Expr:
        node = self.new_id(bracket.start)
        elements: list[Expr] = []
        optional = set()
        self._lone_comma()
        while self._token.kind not in ("]", "EOF"):
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self._expr())
            if not self._accept(","):
                break
        self._close("]", more=bool(elements) and self.tokens[self.position - 1].kind != ",")
        return self._raise(ListExpr(node, elements, frozenset(optional)), elements, counted=False)

    def _map(self, brace: Token) -> Expr:
        node = self.new_id(brace.start)
        pairs = []
        self._lone_comma()
        while self._token.kind not in ("}", "EOF"):
            # The entry's id comes before those of its key and value, but the colon that places it stands between.
            entry = self.new_id(self._token.start)
            optional = self._accept("?") is not None
            key = self._expr()
            colon = self._token
            if not self._accept(":"):
                self._stop(colon, f"mismatched input '{colon.shown}' expecting ':'")
            self.offsets[entry] = colon.start
            pairs.append(Entry(entry, key, self._expr(), optional=optional))
            if not self._accept(","):
                break
        self._close("}", more=bool(pairs) and self.tokens[self.position - 1].kind != ",")
        parts = [part for entry in pairs for part in (entry.key, entry.value)]
        return self._raise(MapExpr(node, pairs), parts, counted=False)
