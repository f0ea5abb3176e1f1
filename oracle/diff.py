"""`python -m oracle.diff cel --minor 1.36 --count 20000 --seed 1`: random questions to our engine and to the real one.

Every answer is compared: whether it compiles and if not why and where, the type, the estimated cost, and for each
device the result, the error and the run-time cost.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from fishplate.cel import environment
from fishplate.cel.program import not_bool
from fishplate.errors import CelCompileError
from oracle.client import MINORS, Oracle
from oracle.devices import as_device, random_device
from oracle.diff_allocate import compare_allocate
from oracle.expressions import Generator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fishplate.cel import Program

_SHOWN = 40
_SYNTAX = re.compile(r"ERROR: <input>:(-?\d+):(\d+): Syntax error")


class Question(NamedTuple):
    expression: str
    devices: list[dict[str, Any]]
    gates: dict[str, bool]

    def as_request(self) -> dict[str, Any]:
        return {"op": "cel", "expression": self.expression, "devices": self.devices, "gates": self.gates}


def questions(random: Random, minor: str, pairs: int, features: Counter[str], *, each: int = 4) -> Iterator[Question]:
    """Expressions with a few devices each, until there are that many pairs."""
    made = 0
    while made < pairs:
        lists = minor in ("1.36", "1.37") and random.random() < 0.4
        generator = Generator(random, minor=minor, lists=lists)
        expression, single = generator.expression()
        features.update(generator.features)
        gates = {"DRAListTypeAttributes": True} if lists else {}
        if lists:
            features["gate DRAListTypeAttributes"] += 1
        with_lists = lists or random.random() < 0.05
        devices = [random_device(random, single=single, lists=with_lists) for _ in range(each)]
        made += each
        yield Question(expression, devices, gates)


def our_answer(question: Question, minor: str) -> dict[str, Any]:
    """In the shape of the oracle's answer."""
    try:
        program = environment(minor, question.gates).compile(question.expression)
    except CelCompileError as error:
        return {"error": error.what}
    results = [our_result(program, raw) for raw in question.devices]
    return {"type": program.output_type, "maxCost": program.cost, "results": results, "fast": program.is_fast}


def our_result(program: Program, raw: dict[str, Any]) -> dict[str, Any]:
    device = as_device(raw)
    outcome = program.run(device)
    fast = program.matches_fast(device)
    if fast is not None and fast is not outcome.value:
        return {"match": fast, "error": f"generated code says {fast}, the evaluator {outcome}"}
    error = outcome.error
    if not error and not isinstance(outcome.value, bool):
        error = not_bool(outcome.value)
    result: dict[str, Any] = {"match": outcome.value is True}
    if error:
        result = {"match": False, "error": error}
    if outcome.cost is not None:
        result["cost"] = outcome.cost
    return result


def compare(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """What differs; empty when they agree."""
    if "error" in ours or "error" in theirs:
        return _compare_failures(ours.get("error", ""), theirs.get("error", ""))
    found = []
    if ours["type"] != theirs["type"]:
        found.append(f"type: {ours['type']} / {theirs['type']}")
    if ours["maxCost"] != theirs.get("maxCost", 0):
        found.append(f"estimated cost: {ours['maxCost']} / {theirs.get('maxCost', 0)}")
    for index, (mine, real) in enumerate(zip(ours["results"], theirs["results"], strict=True)):
        if mine["match"] != real["match"]:
            found.append(f"device {index} match: {mine} / {real}")
        elif _kind(mine.get("error", "")) != _kind(real.get("error", "")):
            found.append(f"device {index} error: {mine.get('error')!r} / {real.get('error')!r}")
        elif mine.get("cost") != real.get("cost"):
            found.append(f"device {index} cost: {mine.get('cost')} / {real.get('cost')}")
    return found


def _compare_failures(ours: str, theirs: str) -> list[str]:
    if ours == theirs:
        return []
    if not ours or not theirs:
        return [f"compiles only for one: {ours!r} / {theirs!r}"]
    mine, real = _SYNTAX.search(ours), _SYNTAX.search(theirs)
    if mine and real and mine.group(1, 2) == real.group(1, 2):
        # After a first syntax error the reference parser recovers and says more; ours stops there.
        return []
    if _kind(ours) == _kind(theirs) and "ERROR:" not in ours:
        return []
    return [f"compile error: {ours!r} / {theirs!r}"]


# Messages that carry the words of Go's own library or type names are compared up to there.
_TAILS = (
    (re.compile(r"(IP Address .* parse error during conversion from string).*", re.DOTALL), r"\1"),
    (re.compile(r"(network address parse error during conversion from string).*", re.DOTALL), r"\1"),
    (re.compile(r"(URL parse error during conversion from string).*", re.DOTALL), r"\1"),
    (re.compile(r"(internal error).*", re.DOTALL), r"\1"),
    (re.compile(r"(invalid qualifier type).*", re.DOTALL), r"\1"),
    (re.compile(r"(error parsing regexp: [a-z ]+).*", re.DOTALL), r"\1"),
    (re.compile(r"(got '|unsupported comprehension range type).*", re.DOTALL), r"\1"),
    (re.compile(r"(could not be converted to bool).*", re.DOTALL), r"\1"),
    # Which of several unusable attributes is named depends on the order of a Go map.
    (re.compile(r"(attribute ).*: (unsupported attribute value|parse semantic version).*", re.DOTALL), r"\1 unusable"),
    (re.compile(r"(cannot initialize optional (list element|entry)).*", re.DOTALL), r"\1"),
)


def _kind(message: str) -> str:
    for pattern, replacement in _TAILS:
        message = pattern.sub(replacement, message)
    return message


class Tally:
    def __init__(self) -> None:
        self.features: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.disagreements: list[tuple[Question, list[str]]] = []

    def add(self, question: Question, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
        self.counts["pairs"] += len(question.devices)
        self.counts["expressions"] += 1
        if "error" in theirs:
            self.counts["expressions refused"] += 1
            self.counts["refused with the very same text"] += ours.get("error") == theirs["error"]
        else:
            self.counts["estimated costs compared"] += 1
            self.counts["expressions with generated code"] += ours.get("fast", False)
            self.counts["estimates above the limit"] += theirs.get("maxCost", 0) > 1_000_000
            for result in theirs["results"]:
                self.counts["run-time costs compared"] += "cost" in result
                self.counts["run-time errors"] += "error" in result
                self.counts["matches"] += result["match"]
        found = compare(ours, theirs)
        if found:
            self.disagreements.append((question, found))


def run_cel(minor: str, pairs: int, seed: int) -> Tally:
    tally = Tally()
    with Oracle(minor) as oracle:
        for question in questions(Random(seed), minor, pairs, tally.features):
            tally.add(question, our_answer(question, minor), oracle.ask(question.as_request()))
    return tally


def _print(tally: Tally, minor: str, seconds: float, *, features: bool) -> None:
    print(f"Kubernetes {minor}: {seconds:.0f} s")
    for name, count in tally.counts.items():
        print(f"  {count:8d}  {name}")
    print(f"  {len(tally.disagreements):8d}  disagreements")
    if features:
        for name, count in sorted(tally.features.items()):
            print(f"    {count:7d}  {name}")
    for question, found in tally.disagreements[:_SHOWN]:
        print(f"- {question.expression}  gates={question.gates}")
        for line in found[:3]:
            print(f"    {line}")
        for line in found[:1]:
            if line.startswith("device"):
                print(f"    {question.devices[int(line.split()[1])]}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m oracle.diff", description=__doc__)
    parser.add_argument("part", choices=["cel", "allocate"])
    parser.add_argument("--minor", choices=MINORS, action="append", help="may be given more than once (default: all)")
    parser.add_argument("--count", type=int, default=1000, help="pairs of expression and device")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quiet", action="store_true", help="no table of features")
    parser.add_argument("--record", action="store_true", help="keep the table of features for the tests (allocate)")
    arguments = parser.parse_args()
    if arguments.part == "allocate":
        features, record = not arguments.quiet, arguments.record
        minors = arguments.minor or list(MINORS)
        agreed = compare_allocate(minors, arguments.count, arguments.seed, features=features, record=record)
        return 0 if agreed else 1
    failed = False
    for minor in arguments.minor or MINORS:
        started = time.monotonic()
        tally = run_cel(minor, arguments.count, arguments.seed)
        _print(tally, minor, time.monotonic() - started, features=not arguments.quiet)
        failed = failed or bool(tally.disagreements)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
