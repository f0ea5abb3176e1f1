"""Node selectors match as nodeaffinity does."""

import msgspec
import pytest

from fishplate.errors import InputError
from fishplate.k8s.selection import NodeSelector, pin_to_node, selects_node

LABELS = {"zone": "z1", "number": "7"}


def selector(*terms: dict[str, object]) -> NodeSelector:
    return msgspec.convert({"nodeSelectorTerms": list(terms)}, NodeSelector)


def expression(key: str, operator: str, *values: str) -> dict[str, object]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("term", "matches"),
    [
        (expression("zone", "In", "z1", "z2"), True),
        (expression("nope", "NotIn", "z1"), True),
        (expression("zone", "Exists"), True),
        (expression("zone", "DoesNotExist"), False),
        (expression("number", "Gt", "6"), True),
        (expression("number", "Lt", "7"), False),
        (expression("zone", "Gt", "1"), False),
        ({}, False),
    ],
)
def test_one_term(term: dict[str, object], matches: bool) -> None:
    assert selects_node(selector(term), "a", LABELS) is matches


def test_terms_are_alternatives() -> None:
    assert selects_node(selector(expression("zone", "In", "z9"), expression("zone", "In", "z1")), "a", LABELS)


def test_a_pinned_selector_matches_its_node_alone() -> None:
    assert selects_node(pin_to_node("a"), "a", {})
    assert not selects_node(pin_to_node("a"), "b", {})


@pytest.mark.parametrize(
    "term", [expression("zone", "Like", "z"), expression("zone", "In"), expression("number", "Gt", "x")]
)
def test_nonsense_is_refused_even_beside_a_term_that_matches(term: dict[str, object]) -> None:
    with pytest.raises(InputError):
        selects_node(selector(expression("zone", "Exists"), term), "a", LABELS)
