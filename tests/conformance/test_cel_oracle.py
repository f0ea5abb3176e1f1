"""A small share of the comparison by `python -m oracle.diff cel`."""

from __future__ import annotations

from collections import Counter

import pytest

from fishplate.cel.declarations import declare
from fishplate.cel.macros import MACRO_KEYS
from oracle.client import Oracle
from oracle.diff import run_cel

PAIRS = 400

# A cold build of the oracle fetches and compiles half of Kubernetes.
pytestmark = [pytest.mark.go, pytest.mark.timeout(900)]


def test_random_pairs_agree_with_the_real_code(minor: str) -> None:
    tally = run_cel(minor, PAIRS, seed=5)
    assert tally.counts["pairs"] >= PAIRS
    assert [(question.expression, found) for question, found in tally.disagreements] == []


def test_declarations_are_those_of_the_real_environment(minor: str) -> None:
    with Oracle(minor) as oracle:
        real = oracle.ask({"op": "cel-env"})
    ours = declare(minor, dynamic_attributes=False).functions
    # Three spellings are declared there for old expressions and cannot be called.
    retired = {"__not_strictly_false__", "_in_", "in"}
    assert set(ours) == set(real["functions"]) - retired
    for name, overloads in ours.items():
        theirs = [(one["id"], one.get("member", False), one["args"], one["result"]) for one in real["functions"][name]]
        mine = [(one.id, one.method, [arg.text for arg in one.args], one.result.text) for one in overloads]
        assert mine == theirs
    assert Counter(real["macros"]) == Counter(MACRO_KEYS)
