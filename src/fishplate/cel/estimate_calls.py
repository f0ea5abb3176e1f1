"""Cost estimates of single calls, from the sizes of their operands; the counterpart of call_costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fishplate.cel.ast import Literal
from fishplate.cel.call_costs import COMPARISONS, FLAT, REGEX_FACTOR, STRING_FACTOR, TRAVERSED
from fishplate.cel.sizes import ONE, TOP, UNKNOWN, Range, declared_size, fixed

if TYPE_CHECKING:
    from fishplate.cel.ast import Expr
    from fishplate.cel.types import Type

_KEPT = frozenset(["lowerAscii", "upperAscii", "substring", "trim"])
_PARSED = frozenset(["cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver", "ip"])
_LONGEST_FORMAT = 64
_FORMAT_REGEX = 128
_MOST_INCLUDED = 48
_ADDRESS = Range(4, 16)


class Operand(NamedTuple):
    path: tuple[str, ...]
    type: Type
    expr: Expr
    size: Range | None

    @property
    def known(self) -> Range:
        return self.size or declared_size(self.path) or UNKNOWN

    @property
    def computed(self) -> Range:
        return self.size or UNKNOWN


class Estimate(NamedTuple):
    cost: Range
    size: Range | None = None


def estimate_call(
    function: str, overload: str, target: Operand | None, args: list[Operand], *, modern: bool
) -> Estimate:
    """The call alone, without what its operands cost."""
    for rules in (_extension, _kubernetes):
        found = rules(function, overload, target, args, modern)
        if found is not None:
            return found
    return _standard(overload, target, args, modern=modern) or Estimate(ONE)


def _extension(
    function: str, overload: str, target: Operand | None, args: list[Operand], modern: bool
) -> Estimate | None:
    """cel-go's lists (version 3) and sets."""
    if overload == "lists_range":
        return _allocated(1, fixed(_literal_uint(args[0], TOP)))
    if overload.startswith("list_sets_"):
        factor = 2 if overload == "list_sets_equivalent_list" else 1
        return Estimate(args[0].known.times(args[1].known).scaled(factor).plus(ONE))
    if target is None:
        return None
    match function:
        case "slice" if overload == "list_slice":
            start, end = _literal_uint(args[0], 0), _literal_uint(args[1], target.known.high)
            return _allocated(1, fixed((end - start) % 2**64))
        case "flatten":
            return _allocated(float(_literal_uint(args[0], TOP)) if args else 1.0, target.known)
        case "reverse" if overload == "list_reverse":
            return _allocated(1, target.known)
        case "distinct":
            return _allocated(2.0, target.known.times(target.known))
        case "sort" | "@sortByAssociatedKeys":
            keys = args[0] if args else target
            textual = overload.split("_")[1] in ("string", "bytes")
            return _allocated(2.0 + (STRING_FACTOR if textual else 0), keys.known.times(keys.known))
    return None


def _allocated(factor: float, size: Range) -> Estimate:
    return Estimate(size.scaled(factor).plus(ONE).plus(fixed(10)), size)


def _literal_uint(operand: Operand, default: int) -> int:
    expr = operand.expr
    if isinstance(expr, Literal) and type(expr.value) is int:
        return max(expr.value, 0)
    return default


def _kubernetes(
    function: str, overload: str, target: Operand | None, args: list[Operand], modern: bool
) -> Estimate | None:
    """k8s.io/apiserver/pkg/cel/library/cost.go, and the DRA compiler's own rule for `includes` in 1.36."""
    if overload == "dra_includes_dyn_dyn":
        return Estimate(Range(0, _MOST_INCLUDED))
    if function in FLAT or overload == "cidr_ip":
        return Estimate(ONE)
    if function in _PARSED and args:
        return Estimate(args[0].known.scaled(STRING_FACTOR))
    if target is not None:
        found = _kubernetes_method(function, overload, target, args)
        if found is not None:
            return found
    match function:
        case "check":
            return Estimate(fixed(350000))
        case "url" if args:
            return Estimate(args[0].known.scaled(STRING_FACTOR), args[0].known)
        case "ip.isCanonical" if args:
            return Estimate(args[0].known.scaled(2 * STRING_FACTOR))
        case "_==_":
            return _equality(args[0], args[1])
    return None


def _kubernetes_method(function: str, overload: str, target: Operand, args: list[Operand]) -> Estimate | None:
    size = target.known
    if function in TRAVERSED or function == "includes":
        return Estimate(_traversal(function, target))
    if function in _KEPT:
        return Estimate(size.scaled(STRING_FACTOR), size)
    match function:
        case "replace" if len(args) >= 2:
            return Estimate(size.scaled(2 * STRING_FACTOR), _replaced(size, args[0].known, args[1].known))
        case "split":
            most = size.high
            limit = args[1].expr if len(args) > 1 else None
            if isinstance(limit, Literal) and type(limit.value) is int:
                most = limit.value % 2**64
            return Estimate(size.scaled(2 * STRING_FACTOR), Range(0, most))
        case "join":
            joined = _joined(target, args)
            return Estimate(joined.scaled(STRING_FACTOR), joined)
        case "find" | "findAll" if args:
            cost = size.plus(ONE).scaled(STRING_FACTOR).times(args[0].known.scaled(REGEX_FACTOR))
            return Estimate(cost, Range(0, size.high))
        case "containsIP" | "containsCIDR" if args:
            return Estimate(_containment(function, overload, args[0]))
        case "validate" if args:
            return Estimate(args[0].known.scaled(STRING_FACTOR).scaled(_FORMAT_REGEX * REGEX_FACTOR))
    return None


def _element(target: Operand) -> tuple[Type, Range] | None:
    """The element type of a list and what is known of its size."""
    if not target.type.params:
        return None
    path = (*target.path, "@items") if target.path else ()
    return target.type.params[0], declared_size(path) or UNKNOWN


def _traversal(function: str, target: Operand) -> Range:
    element = _element(target)
    if element is None:
        return target.known.times(ONE) if function == "includes" else target.known.scaled(STRING_FACTOR)
    each = ONE
    if element[0].kind in ("string", "bytes"):
        each = each.plus(element[1].scaled(STRING_FACTOR))
    return target.known.times(each)


def _replaced(size: Range, old: Range, new: Range) -> Range:
    """How long a string can become: by the longest replacement of the shortest pieces, and the reverse."""
    if old.low == 0:
        most_count, most_kept = min(size.high + 1, TOP), size.high
    elif new.high <= old.low:
        most_count, most_kept = 0, size.high
    else:
        most_count, most_kept = min(_ceil_divide(size.high, old.low), TOP), 0
    if old.high == 0:
        least_count, least_kept = min(size.low + 1, TOP), size.low
    elif old.high <= new.low:
        least_count, least_kept = 0, size.low
    else:
        least_count, least_kept = _ceil_divide(size.low, old.high), 0
    return Range(least_count, most_count).times(new).plus(Range(least_kept, most_kept))


def _ceil_divide(size: int, by: int) -> int:
    quotient = float(size) / float(by)
    whole = int(quotient)
    return whole + (quotient > whole)


def _joined(target: Operand, args: list[Operand]) -> Range:
    count = target.known
    element = _element(target)
    size = count.times(element[1]) if element else Range(0, 0)
    if args:
        separators = Range(max(count.low - 1, 0), max(count.high - 1, 0))
        size = size.plus(args[0].known.times(separators))
    return size


def _containment(function: str, overload: str, other: Operand) -> Range:
    cost = _ADDRESS.plus(_ADDRESS).scaled(STRING_FACTOR)
    if function == "containsCIDR":
        cost = cost.plus(_ADDRESS.scaled(STRING_FACTOR)).plus(ONE)
    if overload in ("cidr_contains_ip_string", "cidr_contains_cidr_string"):
        cost = cost.plus(other.known.scaled(STRING_FACTOR))
    return cost


def _equality(left: Operand, right: Operand) -> Estimate | None:
    if left.type.name != right.type.name:
        return None
    name = left.type.name
    if name in ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver") or name.startswith(
        "kubernetes.authorization."
    ):
        return Estimate(ONE)
    if name == "kubernetes.NamedFormat":
        return Estimate(Range(1, _LONGEST_FORMAT).scaled(STRING_FACTOR))
    if name == "kubernetes.URL":
        return Estimate(Range(1, right.size.high if right.size else 1).scaled(STRING_FACTOR))
    return None


def _standard(overload: str, target: Operand | None, args: list[Operand], *, modern: bool) -> Estimate | None:
    """cel-go's standard library."""
    if overload in COMPARISONS:
        most = min(args[0].computed.high, args[1].computed.high)
        return Estimate(Range(min(most, 1), most).scaled(STRING_FACTOR))
    match overload:
        case "string_format" if target is not None:
            return Estimate(target.computed.scaled(STRING_FACTOR))
        case "string_to_bytes":
            size = args[0].computed
            return Estimate(size.scaled(STRING_FACTOR), Range(size.low, size.high * 4 % 2**64))
        case "bytes_to_string":
            size = args[0].computed
            return Estimate(size.scaled(STRING_FACTOR), Range(size.low // 4, size.high))
        case "strings_quote":
            size = args[0].computed
            return Estimate(size.scaled(STRING_FACTOR), Range((size.low + 2) % 2**64, (size.high * 2 + 2) % 2**64))
        case "starts_with_string" | "ends_with_string":
            return Estimate(args[0].computed.scaled(STRING_FACTOR))
        case "in_list":
            return Estimate(args[1].computed.scaled(1))
        case "matches_string" if target is not None:
            return _regex(target, args[0])
        case "matches" if modern:
            return _regex(args[0], args[1])
        case "contains_string" if target is not None:
            text, part = target.computed.scaled(STRING_FACTOR), args[0].computed.scaled(STRING_FACTOR)
            return Estimate(text.times(part))
        case "add_list":
            return Estimate(ONE, args[0].computed.plus(args[1].computed))
        case "add_string" | "add_bytes":
            size = args[0].computed.plus(args[1].computed)
            return Estimate(size.scaled(STRING_FACTOR), size)
    return None


def _regex(text: Operand, pattern: Operand) -> Estimate:
    strings = text.computed.plus(ONE).scaled(STRING_FACTOR)
    return Estimate(strings.times(pattern.computed.scaled(REGEX_FACTOR)))
