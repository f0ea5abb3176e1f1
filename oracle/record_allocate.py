"""`python -m oracle.record_allocate`: random worlds with the real allocator's answers, for tests that run without Go.

Worlds are chosen so that each feature decides some of them, and each kind of error occurs. One line of JSON for each.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from fishplate.errors import BudgetError
from oracle.client import Oracle
from oracle.diff_allocate import Answer, normalise, possible_answers, questions
from oracle.removals import FEATURES, remove_feature

if TYPE_CHECKING:
    from fishplate.dra import Profile

TARGET = Path(__file__).parents[1] / "tests" / "conformance" / "allocate"
_WANTED = {"1.34": 60, "1.35": 60, "1.36": 130, "1.37": 130}
_EACH = 4
_SEED = 20


def record(minor: str) -> list[bytes]:
    """Long worlds are passed over as long as short ones may come."""
    lines: list[bytes] = []
    seen: Counter[str] = Counter()
    with Oracle(minor) as oracle:
        for world, gates, followed, ours in questions(_SEED, minor, 6000):
            if len(lines) >= _WANTED[minor]:
                break
            labels = [label for label in _labels(world, followed, ours) if seen[label] < _EACH]
            plain = seen["plain"] < _WANTED[minor] // 5
            if not labels and not plain:
                continue
            line = {"minor": minor, "gates": gates, "world": world}
            if len(msgspec.json.encode(line)) > 9000 and len(lines) < _WANTED[minor] // 2:
                continue
            try:
                answer = oracle.ask({"op": "allocate", "gates": followed.gates, **world})
            except RuntimeError:
                continue
            seen.update(labels or ["plain"])
            lines.append(msgspec.json.encode({**line, "decides": labels, "answer": normalise(answer)}))
    return lines


def _labels(world: dict[str, Any], followed: Profile, ours: list[Answer]) -> list[str]:
    """Features without which the answer would be another, and the kind of error."""
    before = [_plain(answer) for answer in ours]
    labels = []
    for feature in FEATURES:
        changed = remove_feature(world, feature)
        if changed is None:
            continue
        try:
            after = possible_answers(changed, followed)
        except BudgetError:
            continue
        if [_plain(answer) for answer in after] != before:
            labels.append(feature)
    error = ours[0].get("error")
    if error:
        labels.append("error: " + re.sub(r"claim-\d|(req|sub)-\d|#\d+|\d+|\S+\.example\.com\S*", "*", error)[:60])
    return labels


def _plain(answer: Answer) -> Answer:
    return {key: value for key, value in normalise(answer).items() if key != "steps"}


def main() -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    for minor in _WANTED:
        lines = record(minor)
        (TARGET / f"{minor}.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        print(f"{minor}: {len(lines)} worlds, {sum(map(len, lines)) // 1024} KiB")


if __name__ == "__main__":
    main()
