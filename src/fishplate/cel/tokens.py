"""The parser's view of the tokens: one after the other, with a stop at the first that does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from fishplate.cel.lexer import Token, tokenize

if TYPE_CHECKING:
    from fishplate.cel.source import Report


_EXPECTED = (
    "'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER"
)
STARTERS = frozenset(
    [
        "[",
        "{",
        "(",
        ".",
        "-",
        "!",
        "true",
        "false",
        "null",
        "NUM_FLOAT",
        "NUM_INT",
        "NUM_UINT",
        "STRING",
        "BYTES",
        "IDENTIFIER",
    ]
)


class Stopped(Exception):
    """A syntax error was reported."""


class Tokens:
    def __init__(self, text: str, report: Report) -> None:
        self.report = report
        self.tokens = tokenize(text, report)
        self.position = 0

    def _stop(self, token: Token, message: str) -> NoReturn:
        self.report.add(token.start, f"Syntax error: {message}")
        raise Stopped

    @property
    def _token(self) -> Token:
        return self.tokens[self.position]

    def _next(self) -> Token:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def _accept(self, kind: str) -> Token | None:
        return self._next() if self._token.kind == kind else None

    def _close(self, kind: str, *, more: bool = False) -> None:
        """A closing bracket, or where there could be `more` a comma; messages follow the reference parser's."""
        token = self._token
        if token.kind == kind:
            self.position += 1
            return
        following = self.tokens[self.position + 1 : self.position + 2]
        if token.kind == "EOF" and more:
            self._stop(token, f"mismatched input '<EOF>' expecting {{'{kind}', ','}}")
        if token.kind == "EOF":
            self._stop(token, f"missing '{kind}' at '<EOF>'")
        if following and following[0].kind == kind:
            self._stop(token, f"extraneous input '{token.shown}' expecting '{kind}'")
        self._stop(token, f"mismatched input '{token.shown}' expecting '{kind}'")

    def _no_expression(self, also: str = "") -> NoReturn:
        token = self._token
        after = "'!', " if also.startswith("'?'") else "'(', "
        expected = "{" + _EXPECTED.replace(after, f"{after}{also}") + "}"
        usable = self.position + 1 < len(self.tokens) and self.tokens[self.position + 1].kind in STARTERS
        kind = "extraneous" if usable and token.kind not in ("EOF", "ESC_IDENTIFIER") else "mismatched"
        self._stop(token, f"{kind} input '{token.shown}' expecting {expected}")
