"""`python -m oracle.record`: ask the real code our own questions and keep its answers under tests/conformance/cel/.

The recorded answers let the conformance tests run where Go is not installed.
"""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

from oracle.client import HERE, MINORS, Oracle
from oracle.diff import Question, questions

if TYPE_CHECKING:
    from pathlib import Path

VECTORS = HERE.parent / "tests" / "conformance" / "cel"
_RANDOM_PAIRS = 300
_SEED = 20
_PLAIN: dict[str, Any] = {
    "driver": "dra.example.com",
    "attributes": {
        "name": {"string": "fish"},
        "numa": {"int": 1},
        "rdma": {"bool": True},
        "dra.example.com/version": {"version": "1.2.3"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:20"},
    },
    "capacity": {"memory": {"value": "80Gi"}},
}
# One domain only, so that no expression can depend on the order of a Go map.
_BARE: dict[str, Any] = {"driver": "dra.example.com", "attributes": {"name": {"string": "f"}}}
_SHARED: dict[str, Any] = {"driver": "other.example.com", "allowMultipleAllocations": True}
_LISTS: dict[str, Any] = {
    "driver": "list.example.com",
    "attributes": {
        "names": {"strings": ["a", "b"]},
        "cores": {"ints": [1, 2, 3]},
        "versions": {"versions": ["1.2.3", "2.0.0"]},
    },
}
_BROKEN: dict[str, Any] = {"driver": "dra.example.com", "attributes": {"version": {"version": "v1"}}}


def written_cases() -> list[Question]:
    """The cases of cases.txt. Those that walk over the domains get devices with one domain."""
    found = []
    for line in (HERE / "cases.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        lists = line.startswith("[lists] ")
        text = line.removeprefix("[lists] ")
        walks = any(f"device.attributes.{macro}(" in text for macro in ("all", "exists", "exists_one"))
        devices = [_BARE, _SHARED] if walks else [_PLAIN, _BARE, _SHARED, _LISTS, _BROKEN]
        if "000)" in text:
            devices = [_BARE]  # long loops, the same on every device
        found.append(Question(text, devices, {"DRAListTypeAttributes": True} if lists else {}))
    return found


def random_cases(minor: str) -> list[Question]:
    return list(questions(Random(_SEED), minor, _RANDOM_PAIRS, Counter(), each=2))


def record(minor: str, into: Path) -> int:
    cases = [*written_cases(), *random_cases(minor)]
    with Oracle(minor) as oracle, into.open("w") as file:
        for question in cases:
            answer = oracle.ask(question.as_request())
            file.write(json.dumps({**question._asdict(), "answer": answer}, ensure_ascii=False, sort_keys=True) + "\n")
    return len(cases)


def main() -> None:
    VECTORS.mkdir(parents=True, exist_ok=True)
    for minor in MINORS:
        print(f"{record(minor, VECTORS / f'{minor}.jsonl')} cases recorded for {minor}")


if __name__ == "__main__":
    main()
