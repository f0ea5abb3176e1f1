"""Text to tokens, by the lexical rules of the CEL language definition.

Text that is no token is reported and skipped, so that one stray character does not hide the next error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fishplate.cel.source import Report


class Token(NamedTuple):
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def shown(self) -> str:
        """As an error message names it."""
        return (
            "<EOF>" if self.kind == "EOF" else self.text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
        )


_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7][0-7])"
# Longest match wins in the language's lexer: hence floats before integers, unsigned before signed, triple quotes first.
_STRING = "|".join(
    (
        r'[rR]"""(?s:.)*?"""',
        r"[rR]'''(?s:.)*?'''",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    )
)
_TOKENS = re.compile(
    rf"""
      (?P<hidden>[\t\ \r\n\f]+|//[^\n]*)
    | (?P<BYTES>[bB](?:{_STRING}))
    | (?P<STRING>{_STRING})
    | (?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    | (?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
    | (?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)
    | (?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/\ ]+`)
    | (?P<op>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE,
)
_KEYWORDS = {"in", "true", "false", "null"}
# What an unfinished string could still have become: the lexer swallows this much before it gives up.
_UNFINISHED = re.compile(
    rf"""[bB]?(?:[rR]"[^"\n\r]*|[rR]'[^'\n\r]*|"(?:{_ESCAPE}|[^\\"\n\r])*|'(?:{_ESCAPE}|[^\\'\n\r])*)"""
    r"|`[A-Za-z0-9_.\-/ ]*"
)


def tokenize(text: str, report: Report) -> list[Token]:
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKENS.match(text, position)
        if match is None:
            position = _skip_unknown(text, position, report)
            continue
        kind, value = match.lastgroup or "", match.group()
        if kind != "hidden":
            if kind == "op" or (kind == "IDENTIFIER" and value in _KEYWORDS):
                kind = value
            tokens.append(Token(kind, value, position))
        position = match.end()
    tokens.append(Token("EOF", "", len(text)))
    return tokens


def _skip_unknown(text: str, position: int, report: Report) -> int:
    match = _UNFINISHED.match(text, position)
    end = match.end() if match else position
    # The character that made it fail belongs to the bad text, unless the text ended.
    end = min(end + 1, len(text))
    if text[position] in "|&=" and not match:
        end = min(position + 2, len(text)) if text[position : position + 2] not in ("||", "&&", "==") else end
    bad = text[position:end].replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    report.add(position, f"Syntax error: token recognition error at: '{bad}'")
    return end
