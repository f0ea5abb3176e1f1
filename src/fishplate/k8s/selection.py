"""Node selectors of core/v1, as ResourceSlices and allocations carry them, and what they match.

Follows k8s.io/component-helpers/scheduling/corev1/nodeaffinity: terms are ORed, an empty term matches nothing, and
matchFields knows metadata.name only.
"""

import re
from collections.abc import Mapping

import msgspec

from fishplate.errors import InputError

NODE_NAME_FIELD = "metadata.name"
_INTEGER = re.compile(r"[+-]?[0-9]+")
_MAX_INT64 = 2**63 - 1


class NodeSelectorRequirement(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


def pin_to_node(name: str) -> NodeSelector:
    """The selector of an allocation that is usable on one node alone."""
    only = NodeSelectorRequirement(key=NODE_NAME_FIELD, operator="In", values=(name,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(only,)),))


def selects_node(selector: NodeSelector, name: str, labels: Mapping[str, str]) -> bool:
    """Whether some term matches; InputError if any term makes no sense, as the real matcher refuses the whole."""
    terms = [term for term in selector.node_selector_terms if term.match_expressions or term.match_fields]
    for term in terms:
        _check_term(term)
    return any(_term_matches(term, name, labels) for term in terms)


def _check_term(term: NodeSelectorTerm) -> None:
    for requirement in term.match_expressions:
        _check_expression(requirement)
    for requirement in term.match_fields:
        if requirement.operator not in ("In", "NotIn"):
            raise InputError(f"operator {requirement.operator!r} is not supported in matchFields")
        if len(requirement.values) != 1:
            raise InputError(f"matchFields {requirement.key}: must have one element")


def _check_expression(requirement: NodeSelectorRequirement) -> None:
    values = requirement.values
    match requirement.operator:
        case "In" | "NotIn":
            if not values:
                raise InputError(f"{requirement.key}: for 'in', 'notin' operators, values set can't be empty")
        case "Exists" | "DoesNotExist":
            if values:
                raise InputError(f"{requirement.key}: values set must be empty for exists and does not exist")
        case "Gt" | "Lt":
            if len(values) != 1:
                raise InputError(f"{requirement.key}: for 'Gt', 'Lt' operators, exactly one value is required")
            if _integer(values[0]) is None:
                raise InputError(f"{requirement.key}: for 'Gt', 'Lt' operators, the value must be an integer")
        case unknown:
            raise InputError(f"{requirement.key}: operator {unknown!r} is not supported")


def _term_matches(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    # A node without a name has no fields at all, and then the real matcher skips matchFields.
    fields = not name or all(_field_matches(requirement, name) for requirement in term.match_fields)
    return fields and all(_label_matches(requirement, labels) for requirement in term.match_expressions)


def _field_matches(requirement: NodeSelectorRequirement, name: str) -> bool:
    actual = name if requirement.key == NODE_NAME_FIELD else ""
    return (actual == requirement.values[0]) == (requirement.operator == "In")


def _label_matches(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    if value is None:
        return False
    have, bound = _integer(value), _integer(requirement.values[0])
    if have is None or bound is None:
        return False
    return have > bound if requirement.operator == "Gt" else have < bound


def _integer(text: str) -> int | None:
    """A signed 64-bit integer as Go's ParseInt reads it."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_MAX_INT64 - 1 <= number <= _MAX_INT64 else None
