"""Our allocator against recorded answers of the real one: devices, configuration, node selectors, errors and steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from fishplate.dra import MINORS, profile
from oracle.diff_allocate import normalise, possible_answers
from oracle.removals import FEATURES

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
