"""Python for calls on strings, versions and quantities that need no call of the evaluator's functions.

Each raises Unsupported where its operands do not suffice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishplate.cel.ast import Call, Literal
from fishplate.cel.guards import Unsupported
from fishplate.cel.library.re2 import RegexError, compile_re2
from fishplate.cel.snippet import Scratch, Snippet
from fishplate.errors import InputError
from fishplate.k8s.quantity import parse_quantity
from fishplate.k8s.semver import normalize_semver, parse_semver

if TYPE_CHECKING:
    from collections.abc import Sequence

_TESTS = {"startsWith": "{0}.startswith({1})", "endsWith": "{0}.endswith({1})", "contains": "({1} in {0})"}


def write_text_test(
    scratch: Scratch, function: str, subject: Snippet, arguments: Sequence[Snippet], *, measured: bool
) -> Snippet:
    """startsWith, endsWith, contains and matches with a literal, and size()."""
    if function == "size" and not arguments and subject.kind == "str":
        return Snippet("int", f"len({subject.text})")
    if len(arguments) != 1 or not isinstance(literal := arguments[0].value, str):
        raise Unsupported
    if function in _TESTS:
        return Snippet("bool", _TESTS[function].format(_text(subject, measured=measured), arguments[0].text))
    if function != "matches":
        raise Unsupported
    try:
        search = scratch.constant(compile_re2(literal).search)
    except RegexError as error:
        raise Unsupported from error
    return Snippet("bool", f"({search}({_text(subject, measured=measured)}) is not None)")


def _text(subject: Snippet, *, measured: bool) -> str:
    if subject.kind == "str" and measured:
        return subject.text
    if subject.kind in ("str", "attr"):
        return f"short_text({subject.text})"
    raise Unsupported


def write_includes(subject: Snippet, wanted: Snippet, *, modern: bool) -> Snippet:
    if subject.kind != "attr" or wanted.value is None:
        raise Unsupported
    return Snippet("bool", f"included({subject.text}, {wanted.text}, {'includes' if modern else 'includes_short'})")


def write_parsed(scratch: Scratch, expr: Call) -> Snippet:
    """semver("…") and quantity("…") of literals; what does not parse is an error for the reference evaluator."""
    written = [arg.value for arg in expr.args if isinstance(arg, Literal)]
    try:
        match expr.function, written:
            case "quantity", [str() as text]:
                return Snippet("quantity", scratch.constant(parse_quantity(text)))
            case "semver", [str() as text]:
                return Snippet("semver", scratch.constant(parse_semver(text)))
            case "semver", [str() as text, bool() as normalize]:
                return Snippet("semver", scratch.constant(parse_semver(normalize_semver(text) if normalize else text)))
    except InputError as error:
        raise Unsupported from error
    raise Unsupported
