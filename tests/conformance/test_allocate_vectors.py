"""Our allocator against recorded answers of the real one: devices, configuration, node selectors, errors and steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from fishplate.dra import MINORS, profile
from oracle.diff_allocate import ENOUGH_DECIDED, ENOUGH_WORLDS, FIGURES, Tally, find_idle, normalise, possible_answers
from oracle.removals import FEATURES, features_of

HERE = Path(__file__).parent / "allocate"


def read(minor: str) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in (HERE / f"{minor}.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize("minor", MINORS)
def test_answers_are_those_of_the_real_allocator(minor: str) -> None:
    for case in read(minor):
        followed = profile(minor, case["gates"])
        ours = [normalise(answer) for answer in possible_answers(case["world"], followed)]
        if case["answer"]["steps"] < 0:
            ours = [{**answer, "steps": -1} for answer in ours]
        assert case["answer"] in ours


def test_enough_worlds_are_recorded() -> None:
    assert sum(len(read(minor)) for minor in MINORS) >= 300


def test_every_feature_decides_some_recorded_world() -> None:
    decided = {label for minor in MINORS for case in read(minor) for label in case["decides"]}
    assert set(FEATURES) <= decided


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_every_feature_decided_enough_worlds_when_all_were_compared(minor: str) -> None:
    """As `python -m oracle.diff allocate --record` found; a feature that is new there is missing here."""
    figures = msgspec.json.decode(FIGURES.read_bytes())[minor]
    assert figures["worlds"] >= ENOUGH_WORLDS
    assert set(figures["features"]) == set(features_of(minor))
    assert {name: decides for name, (_, decides) in figures["features"].items() if decides < ENOUGH_DECIDED} == {}


def test_a_comparison_fails_where_a_feature_decides_too_little() -> None:
    tally = Tally()
    tally.counts["worlds"] = ENOUGH_WORLDS
    tally.decisive.update(dict.fromkeys(FEATURES, ENOUGH_DECIDED))
    assert find_idle(tally, "1.36") == []
    tally.decisive["taints"] -= 1
    assert find_idle(tally, "1.36") == ["taints"]
    tally.counts["worlds"] -= 1
    assert find_idle(tally, "1.36") == []
