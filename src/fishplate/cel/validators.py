"""Checks on literals after type checking: durations, timestamps, patterns, uniform lists and maps, format strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishplate.cel.ast import Call, Expr, ListExpr, Literal, MapExpr, children
from fishplate.cel.library.conversions import to_duration, to_timestamp
from fishplate.cel.library.re2 import RegexError, compile_re2
from fishplate.cel.library.text_format import ACCEPTED, Clause, FormatError, interpolate
from fishplate.cel.values import Err

if TYPE_CHECKING:
    from collections.abc import Callable

    from fishplate.cel.checker import Checked
    from fishplate.cel.source import Report
    from fishplate.cel.types import Type


def validate(checked: Checked, report: Report) -> None:
    calls: list[Call] = []
    lists: list[ListExpr] = []
    maps: list[MapExpr] = []
    _gather(checked.expr, calls, lists, maps, exempt=False)
    for function, accepts in _LITERALS.items():
        for call in calls:
            if call.function == function and call.args and isinstance(call.args[0], Literal):
                literal = call.args[0]
                if not accepts(literal):
                    report.add(checked.offsets.get(literal.id), f"invalid {function} argument")
    for expr in lists:
        _uniform_list(expr, checked, report)
    for one in maps:
        _uniform_map(one, checked, report)
    for call in calls:
        _check_format(call, checked, report)


def _gather(expr: Expr, calls: list[Call], lists: list[ListExpr], maps: list[MapExpr], *, exempt: bool) -> None:
    """Calls anywhere; list and map literals outside the arguments of format(), which may be mixed."""
    if isinstance(expr, Call):
        calls.append(expr)
        exempt = exempt or expr.function == "format"
    elif isinstance(expr, ListExpr) and not exempt:
        lists.append(expr)
    elif isinstance(expr, MapExpr) and not exempt:
        maps.append(expr)
    for child in children(expr):
        _gather(child, calls, lists, maps, exempt=exempt)


def _is_duration(literal: Literal) -> bool:
    return not isinstance(to_duration(literal.value), Err)


def _is_timestamp(literal: Literal) -> bool:
    return not isinstance(to_timestamp(literal.value), Err)


def _is_pattern(literal: Literal) -> bool:
    if isinstance(literal.value, str):
        try:
            compile_re2(literal.value)
        except RegexError:
            return False
    return True


_LITERALS: dict[str, Callable[[Literal], bool]] = {
    "duration": _is_duration,
    "timestamp": _is_timestamp,
    "matches": _is_pattern,
}


def _equivalent(left: Type, right: Type) -> bool:
    """Alike but for dyn, which cel-go's IsEquivalentType also tells apart."""
    return left == right or (left.kind == right.kind == "param")


def _uniform_list(expr: ListExpr, checked: Checked, report: Report) -> None:
    wanted: Type | None = None
    for index, element in enumerate(expr.elements):
        given = checked.types[element.id]
        if index in expr.optional and given.params:
            given = given.params[0]
        if wanted is None:
            wanted = given
        elif not _equivalent(wanted, given):
            _mismatch(element, wanted, given, checked, report)
            return


def _uniform_map(expr: MapExpr, checked: Checked, report: Report) -> None:
    keys: Type | None = None
    values: Type | None = None
    for entry in expr.entries:
        key, value = checked.types[entry.key.id], checked.types[entry.value.id]
        if entry.optional and value.params:
            value = value.params[0]
        if keys is None or values is None:
            keys, values = key, value
            continue
        if not _equivalent(keys, key):
            _mismatch(entry.key, keys, key, checked, report)
        if not _equivalent(values, value):
            _mismatch(entry.value, values, value, checked, report)


def _mismatch(expr: Expr, wanted: Type, given: Type, checked: Checked, report: Report) -> None:
    report.add(checked.offsets.get(expr.id), f"expected type '{wanted.text}' but found '{given.text}'")


class _BadArgument(FormatError):
    def __init__(self, node: int, message: str) -> None:
        super().__init__(message)
        self.node = node


def _check_format(call: Call, checked: Checked, report: Report) -> None:
    """A literal format with literal arguments is checked before it runs."""
    if call.function != "format" or not isinstance(call.target, Literal) or len(call.args) != 1:
        return
    text, arguments = call.target.value, call.args[0]
    if not isinstance(text, str) or not isinstance(arguments, ListExpr):
        return
    used = 0

    def fill(index: int, clause: Clause) -> str:
        nonlocal used
        used += 1
        bad = _unacceptable(arguments.elements[index], clause.kind, checked)
        if bad is not None:
            name = checked.types[bad.id].runtime_name
            raise _BadArgument(bad.id, f"error during formatting: {ACCEPTED[clause.kind][1].format(name)}")
        return ""

    try:
        interpolate(text, len(arguments.elements), fill)
    except _BadArgument as error:
        report.add(checked.offsets.get(error.node), str(error))
        return
    except FormatError as error:
        report.add(checked.offsets.get(call.id), str(error))
        return
    if len(arguments.elements) > used:
        message = f"too many arguments supplied to string.format (expected {used}, got {len(arguments.elements)})"
        report.add(checked.offsets.get(call.id), message)


def _unacceptable(expr: Expr, kind: str, checked: Checked) -> Expr | None:
    """The argument, or the part of a list or map, that the clause cannot format."""
    given = checked.types[expr.id]
    if given.kind != "dyn" and given.runtime_name not in ACCEPTED[kind][0]:
        return expr
    if kind != "s":
        return None
    parts: list[Expr] = []
    if isinstance(expr, ListExpr):
        parts = expr.elements
    elif isinstance(expr, MapExpr):
        parts = [part for entry in expr.entries for part in (entry.key, entry.value)]
    return next((bad for part in parts if (bad := _unacceptable(part, kind, checked)) is not None), None)
