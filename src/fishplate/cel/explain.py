"""Why a selector said what it said: its conjuncts one by one, each with its result and the values it looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from fishplate.cel import ast
from fishplate.cel.access import Aliases, device_path, tested_path
from fishplate.cel.builder import build
from fishplate.cel.root import Root
from fishplate.cel.tracker import Cancelled
from fishplate.cel.values import CelMap, Err, Optional, Value
from fishplate.k8s.quantity import Quantity
from fishplate.k8s.semver import Semver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fishplate.cel.checker import Checked
    from fishplate.cel.declarations import Declarations

_LONGEST = 200


class Seen(NamedTuple):
    """A value of the device that the clause read: its place in the source, and the value as text."""

    text: str
    value: str


class Clause(NamedTuple):
    """One conjunct. `span` is (start, end) in the source; `message` says why it is neither true nor false."""

    text: str
    span: tuple[int, int]
    result: Literal["true", "false", "error"]
    message: str
    seen: tuple[Seen, ...]


class Explanation:
    """One selector on one device; `device` is the value that selectors see."""

    def __init__(
        self,
        source: str,
        checked: Checked,
        spans: dict[int, tuple[int, int]],
        declared: Declarations,
        device: CelMap,
        *,
        modern: bool,
    ) -> None:
        self._source = source
        self._checked = checked
        self._spans = spans
        self._declared = declared
        self._device = device
        self._modern = modern

    def clauses(self) -> list[Clause]:
        """The conjuncts in the order they are written, each evaluated by itself, also those after the first false."""
        return [self._clause(*conjunct) for conjunct in _conjuncts(self._checked.expr, {}, ())]

    def _clause(self, expr: ast.Expr, aliases: Aliases, outer: tuple[ast.Fold, ...]) -> Clause:
        start, end = self._spans.get(expr.id, (0, len(self._source)))
        value = self._evaluate(_wrapped(expr, outer))
        result: Literal["true", "false", "error"] = "error"
        message = ""
        if isinstance(value, bool):
            result = "true" if value else "false"
        else:
            message = value.message if isinstance(value, Err) else f"not a bool but {show(value)}"
        seen = tuple(self._seen(expr, aliases, outer))
        return Clause(self._source[start:end].strip(), (start, end), result, message, seen)

    def _evaluate(self, expr: ast.Expr) -> Value:
        node, _ = build(self._checked._replace(expr=expr), self._declared, modern=self._modern)
        try:
            return node.eval(Root(self._device, modern=self._modern))
        except Cancelled as stop:
            return Err(str(stop))

    def _seen(self, expr: ast.Expr, aliases: Aliases, outer: tuple[ast.Fold, ...]) -> Iterator[Seen]:
        shown = set()
        for part in _readings(expr, aliases):
            start, end = self._spans.get(part.id, (0, 0))
            text = self._source[start:end].strip()
            if text and text not in shown:
                shown.add(text)
                value = self._evaluate(_wrapped(part, outer))
                yield Seen(text, value.message if isinstance(value, Err) else show(value))


def _conjuncts(
    expr: ast.Expr, aliases: Aliases, outer: tuple[ast.Fold, ...]
) -> Iterator[tuple[ast.Expr, Aliases, tuple[ast.Fold, ...]]]:
    """Flattens `&&`, also inside the body of cel.bind; `outer` are the binds around a conjunct."""
    if isinstance(expr, ast.Call) and expr.function == "_&&_":
        for arg in expr.args:
            yield from _conjuncts(arg, aliases, outer)
    elif isinstance(expr, ast.Fold) and expr.is_bind:
        bound = device_path(expr.init, aliases)
        yield from _conjuncts(expr.result, {**aliases, expr.accu: bound}, (*outer, expr))
    else:
        yield expr, aliases, outer


def _wrapped(expr: ast.Expr, outer: tuple[ast.Fold, ...]) -> ast.Expr:
    for bind in reversed(outer):
        expr = ast.Fold(bind.id, bind.range, bind.var, bind.var2, bind.accu, bind.init, bind.cond, bind.step, expr)
    return expr


def _readings(expr: ast.Expr, aliases: Aliases) -> Iterator[ast.Expr]:
    """The longest selections from the device that depend on no loop."""
    if device_path(expr, aliases) or tested_path(expr, aliases):
        yield expr
        return
    if isinstance(expr, ast.Fold):
        # Inside a loop, only what does not hang on its variables is the same for all turns.
        inner: Aliases = {**aliases, expr.accu: None, expr.var: None, expr.var2: None}
        yield from _readings(expr.range, aliases)
        yield from _readings(expr.step, inner)
        return
    for child in ast.children(expr):
        yield from _readings(child, aliases)


def show(value: Value) -> str:
    """A value as a person would write it, cut where it gets long."""
    text = _text(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _text(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, Semver | Quantity | int | float):
        return str(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, CelMap):
        return "{" + ", ".join(f"{_text(key)}: {_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Optional):
        return f"optional({_text(value.value)})" if value.present else "absent"
    return str(value)
