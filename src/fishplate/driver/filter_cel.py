"""The CEL behind `--filter`.

One variable, `attributes`: a map from an attribute's full name to a struct with StringValue, IntValue, BoolValue and
VersionValue (and their lists). A field that is not set reads as its type's zero and `has()` denies it, as cel-go shows
the pointers of Go's struct. The engine is the one for selectors, given other declarations; Kubernetes' functions and
optionals come with it, though upstream's filter has none of them.
"""

from collections.abc import Mapping

from fishplate.cel.ast import Expr, Select, children
from fishplate.cel.attributes import Node
from fishplate.cel.builder import BuildError, build
from fishplate.cel.checker import Checked, check
from fishplate.cel.declarations import Declarations, declare
from fishplate.cel.parser import parse
from fishplate.cel.source import Report, Source
from fishplate.cel.tracker import Cancelled, Tracker
from fishplate.cel.types import BOOL, INT, STRING, Type, list_type, map_type
from fishplate.cel.validators import validate
from fishplate.cel.values import CelMap, Err, Value, type_name
from fishplate.driver.filter import DEFAULT_FILTER, Verdict
from fishplate.errors import CelCompileError
from fishplate.k8s.resource import DeviceAttribute

_MINOR = "1.37"  # whose CEL stands behind it; upstream follows cel-go, not a Kubernetes release
_STRUCT = Type("struct", "v1.DeviceAttribute")
# Fields of k8s.io/api/resource/v1 DeviceAttribute: our name for each, its type, and what it reads as when not set.
_FIELDS: dict[str, tuple[str, Type, Value]] = {
    "StringValue": ("string", STRING, ""),
    "IntValue": ("int_", INT, 0),
    "BoolValue": ("bool_", BOOL, False),
    "VersionValue": ("version", STRING, ""),
    "StringValues": ("strings", list_type(STRING), ()),
    "IntValues": ("ints", list_type(INT), ()),
    "BoolValues": ("bools", list_type(BOOL), ()),
    "VersionValues": ("versions", list_type(STRING), ()),
}
_SET = "?"  # begins the hidden fields that has() reads


class CelFilter:
    def __init__(self, expression: str) -> None:
        self._node = _compile(expression)

    def judge(self, attributes: Mapping[str, DeviceAttribute]) -> Verdict:
        try:
            value = self._node.eval(_Frame(attributes))
        except Cancelled as stop:
            return Verdict(keep=True, error=str(stop))
        if isinstance(value, Err):
            return Verdict(keep=True, error=value.message)
        if isinstance(value, bool):
            return Verdict(keep=value)
        return Verdict(keep=False, error=f"the filter gives {type_name(value)}, not bool")


class _Frame:
    """The outermost scope: it knows one name."""

    modern = True

    def __init__(self, attributes: Mapping[str, DeviceAttribute]) -> None:
        self.tracker = Tracker()
        self._value = CelMap.of({key: _as_struct(one) for key, one in attributes.items()})

    def resolve(self, name: str) -> Value:
        return self._value if name.removeprefix(".") == "attributes" else Err(f"no such attribute(s): {name}")


def _as_struct(attribute: DeviceAttribute) -> CelMap:
    fields: dict[str, Value] = {}
    for field, (own, _, zero) in _FIELDS.items():
        value = getattr(attribute, own)
        fields[field] = zero if value is None else value
        fields[_SET + field] = value is not None
    return CelMap.of(fields)


# -- compiling ---------------------------------------------------------------------------------------------------


def _compile(expression: str) -> Node:
    report = Report(Source(expression))
    declared = _declare()
    parsed = parse(expression, report, escaped_names=True)
    if parsed.expr is None or report:
        raise _failure(str(report))
    checked = check(parsed.expr, parsed.offsets, declared, report)
    if not report:
        validate(checked, report)
    if report:
        raise _failure(str(report))
    _read_presence_as_field(checked.expr, checked)
    try:
        return build(checked, declared, modern=True).node
    except BuildError as error:
        raise _failure(str(error)) from error


def _failure(what: str) -> CelCompileError:
    return CelCompileError(f"--filter does not compile: {what}", remedy=f"the default is {DEFAULT_FILTER}")


def _declare() -> Declarations:
    usual = declare(_MINOR, dynamic_attributes=False)
    idents = {name: kind for name, kind in usual.idents.items() if name not in ("device", "kubernetes.DRADevice")}
    fields = {field: kind for field, (_, kind, _) in _FIELDS.items()}
    return usual._replace(idents={**idents, "attributes": map_type(STRING, _STRUCT)}, device=fields, struct=_STRUCT)


def _read_presence_as_field(expr: Expr, checked: Checked) -> None:
    """`has(x.StringValue)` becomes a read of a hidden field: to the evaluator a struct is a map, and a map has every
    key that can be read from it, also those that read as zero."""
    if isinstance(expr, Select) and expr.test and checked.types[expr.operand.id] == _STRUCT:
        expr.test, expr.field = False, _SET + expr.field
    for child in children(expr):
        _read_presence_as_field(child, checked)
