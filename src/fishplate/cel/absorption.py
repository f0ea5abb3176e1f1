"""Whether generated code may answer although a key is missing somewhere.

`false && error` is false: the side that decides does so whatever the other says. But nothing absorbs a panic, and
upstream goes on evaluating after an error: the other arguments of a call, the other turns of a loop. Generated code
stops at a missing key, and must not be asked where something that can panic may lie behind it.
"""

from __future__ import annotations

from fishplate.cel.access import device_path
from fishplate.cel.ast import Call, Expr, Fold, walk

_LOGIC = frozenset(("_&&_", "_||_", "!_"))
# Their costs, upstream, are computed from arguments that are taken for lists and numbers, errors or not.
_PANICKING = frozenset(("distinct", "sort", "@sortByAssociatedKeys", "flatten", "lists.range"))


def is_calm(expr: Expr) -> bool:
    """Whether nothing that can panic lies behind anything that can fail, but for the terms of `&&` and `||`."""
    if isinstance(expr, Call) and expr.function in _LOGIC:
        return all(map(is_calm, expr.args))
    if isinstance(expr, Fold) and expr.is_bind and device_path(expr.init, {}) is not None:
        return is_calm(expr.result)
    # `in` panics on a version among constants: harmless by itself, for then nothing of it is left to evaluate.
    calls = [part for part in walk(expr) if isinstance(part, Call)]
    return not any(part.function in _PANICKING or (part.function == "@in" and part is not expr) for part in calls)
