"""Pieces of generated Python, and the names that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fishplate.cel.values import Value


class Snippet(NamedTuple):
    """Python source of an expression, which yields a CEL value and never an error: where there is none, it raises.

    The kind says what is known of the value: bool, str, int, semver, quantity; const for a string or integer literal,
    which is then in `value`; attr for what an attribute can hold; any for anything.
    """

    kind: str
    text: str
    value: Value = None


class Scratch:
    """Names for constants and for temporaries; every name is used once."""

    def __init__(self) -> None:
        self.constants: dict[str, Value] = {}
        self._temporary = 0

    def constant(self, value: Value) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def name(self) -> str:
        self._temporary += 1
        return f"t{self._temporary}"
