"""Our CEL against recorded answers of the real code: result, error, estimated cost and run-time cost of every case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oracle.diff import Question, compare, our_answer

VECTORS = Path(__file__).parent / "cel"
MINORS = ("1.34", "1.35", "1.36", "1.37")


def load(minor: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (VECTORS / f"{minor}.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("minor", MINORS)
def test_every_recorded_case_is_answered_as_the_real_code_answered(minor: str) -> None:
    differences = []
    for case in load(minor):
        question = Question(case["expression"], case["devices"], case["gates"])
        found = compare(our_answer(question, minor), case["answer"])
        differences += [f"{question.expression}: {line}" for line in found]
    assert differences == []


@pytest.mark.parametrize("minor", MINORS)
def test_there_are_enough_cases_of_every_sort(minor: str) -> None:
    answers = [case["answer"] for case in load(minor)]
    results = [result for answer in answers for result in answer.get("results", [])]
    assert len(answers) >= 300
    assert sum("error" in answer for answer in answers) >= 50
    assert sum("error" in result for result in results) >= 100
    assert sum(result["match"] for result in results) >= 100
    assert sum(answer.get("maxCost", 0) > 1_000_000 for answer in answers if "error" not in answer) >= 10
    assert any("cost limit exceeded" in result.get("error", "") for result in results)


def test_minor_versions_are_told_apart() -> None:
    by_minor = {minor: {case["expression"]: case["answer"] for case in load(minor)} for minor in MINORS}
    includes = 'device.attributes["dra.example.com"].name.includes("fish")'
    assert "undeclared reference to 'includes'" in by_minor["1.35"][includes]["error"]
    assert "error" not in by_minor["1.36"][includes]
    assert by_minor["1.36"][includes]["maxCost"] != by_minor["1.37"][includes]["maxCost"]
