"""Python for comparisons whose sides are known well enough: faster than asking the evaluator's own functions.

Each raises Unsupported where the kinds of its sides do not suffice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishplate.cel.ast import Expr, ListExpr, Literal
from fishplate.cel.guards import Unsupported
from fishplate.cel.snippet import Scratch, Snippet

if TYPE_CHECKING:
    from fishplate.cel.values import Value

_ORDER = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_TEXTS = (("str", "const"), ("const", "str"), ("str", "str"))
_NUMBERS = (("int", "const"), ("const", "int"), ("int", "int"))


def write_equal(scratch: Scratch, left: Snippet, right: Snippet) -> str:
    kinds = (left.kind, right.kind)
    if kinds == ("quantity", "quantity"):
        return f"({left.text}.nanos == {right.text}.nanos)"
    if kinds in _TEXTS or (kinds in _NUMBERS and str not in (type(left.value), type(right.value))):
        return f"({left.text} == {right.text})"
    if kinds == ("bool", "bool"):
        return f"({left.text} is {right.text})"
    if kinds == ("semver", "attr"):
        return f"(version({right.text}).key == {left.text}.key)"
    if kinds == ("attr", "semver"):
        return f"({left.text} == {right.text})"
    if "attr" in kinds and kinds != ("attr", "attr"):
        return _equal_attribute(scratch, left, right)
    raise Unsupported


def _equal_attribute(scratch: Scratch, left: Snippet, right: Snippet) -> str:
    """An attribute of unknown type against a constant. A version on the left of another type is an error."""
    attribute, other = (left, right) if left.kind == "attr" else (right, left)
    seen = scratch.name()
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


def write_order(function: str, left: Snippet, right: Snippet) -> Snippet:
    """`<` and its like, where one side is known to be a string or an integer."""
    if function not in _ORDER:
        raise Unsupported
    wanted = {type(side.value) for side in (left, right) if side.kind == "const"}
    wanted |= {known for kind, known in (("int", int), ("str", str)) if kind in (left.kind, right.kind)}
    if wanted not in ({int}, {str}):
        raise Unsupported
    guard = "integer" if wanted == {int} else "short_text"
    texts = []
    for side in (left, right):
        if side.kind == "attr":
            texts.append(f"{guard}({side.text})")
        elif side.kind in ("const", "int", "str"):
            texts.append(side.text)
        else:
            raise Unsupported
    return Snippet("bool", f"({texts[0]} {_ORDER[function]} {texts[1]})")


def write_comparison(scratch: Scratch, function: str, left: Snippet, right: Snippet) -> Snippet:
    """isGreaterThan, isLessThan and compareTo, of versions or of quantities."""
    if right.kind == "semver" and left.kind in ("attr", "semver"):
        one = f"version({left.text}).key" if left.kind == "attr" else f"{left.text}.key"
        two = f"{right.text}.key"
    elif left.kind == right.kind == "quantity":
        one, two = f"{left.text}.nanos", f"{right.text}.nanos"
    else:
        raise Unsupported
    if function == "compareTo":
        first, second = scratch.name(), scratch.name()
        return Snippet("int", f"((({first} := {one}) > ({second} := {two})) - ({first} < {second}))")
    return Snippet("bool", f"({one} {'>' if function == 'isGreaterThan' else '<'} {two})")


def write_membership(scratch: Scratch, element: Snippet, container: Expr) -> Snippet:
    """`x in ["a", "b"]`."""
    values = literals(container)
    if not values or set(map(type, values)) != {str} or element.kind not in ("attr", "str"):
        raise Unsupported
    members, seen = scratch.constant(frozenset(values)), scratch.name()
    if element.kind == "str":
        return Snippet("bool", f"({element.text} in {members})")
    # What is no string goes to the reference evaluator; a version there is an error.
    return Snippet("bool", f"({seen} in {members} if type({seen} := {element.text}) is str else refuse())")


def literals(expr: Expr) -> list[Value]:
    """The values of a list of nothing but literals; of anything else, none."""
    if not isinstance(expr, ListExpr) or expr.optional:
        return []
    values = [element.value for element in expr.elements if isinstance(element, Literal)]
    return values if len(values) == len(expr.elements) else []
