"""Random worlds to our allocator and to the real one; every part of the answer is compared.

Where the followed version searches pools in random order, the real answer must be one that ours gives for some order.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from itertools import permutations
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from fishplate.dra import Budget, Node, Scene, World, allocate, profile
from fishplate.errors import AllocationError, BudgetError
from fishplate.k8s.claim import DeviceClass, ResourceClaim
from fishplate.k8s.resource import ResourceSlice
from oracle.client import Oracle
from oracle.removals import FEATURES, features_of, remove_feature
from oracle.worlds import WorldMaker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fishplate.dra import Profile

_SHOWN = 12
# Over that many worlds each feature has to decide so many outcomes; otherwise the comparison proves little about it.
ENOUGH_WORLDS = 5000
ENOUGH_DECIDED = 50
FIGURES = Path(__file__).parents[1] / "tests" / "conformance" / "allocate" / "features.json"
_STEPS = 4000
Answer = dict[str, Any]


def decode(world: dict[str, Any]) -> tuple[World, Node, list[ResourceClaim]]:
    read = World(
        slices=msgspec.convert(world["slices"], tuple[ResourceSlice, ...]),
        classes=msgspec.convert(world["classes"], tuple[DeviceClass, ...]),
        claims=msgspec.convert(world["allocated"], tuple[ResourceClaim, ...]),
    )
    node = msgspec.convert(world["node"], Node)
    return read, node, msgspec.convert(world["claims"], list[ResourceClaim])


def our_answer(world: dict[str, Any], followed: Profile, order: tuple[tuple[str, str], ...] = ()) -> Answer:
    """In the shape of the oracle's answer; BudgetError if the search is too long."""
    read, node, claims = decode(world)
    budget = Budget(steps=_STEPS)
    scene = Scene(read, followed, pool_order=order)
    try:
        found = allocate(scene, node, claims, profile=followed, budget=budget, new_share_id=lambda: "share")
    except AllocationError as error:
        return {"fits": False, "error": error.what, "nodeOnly": error.node_only, "steps": budget.spent}
    if found is None:
        return {"fits": False, "steps": budget.spent}
    return {"fits": True, "results": msgspec.to_builtins(found.results), "steps": found.steps}


def possible_answers(world: dict[str, Any], followed: Profile) -> list[Answer]:
    """One for each order of pools, where the order is left to chance."""
    if followed.sorts:
        return [our_answer(world, followed)]
    pools = sorted({(one["spec"]["driver"], one["spec"]["pool"]["name"]) for one in world["slices"]})
    return [our_answer(world, followed, order) for order in permutations(pools)]


def normalise(answer: Answer) -> Answer:
    """Without what is random, or only formatted differently."""
    results = msgspec.json.decode(msgspec.json.encode(answer.get("results") or []))
    for result in results:
        for device in result["devices"].get("results", []):
            if "shareID" in device:
                device["shareID"] = "share"
            for key in ("bindingConditions", "bindingFailureConditions", "tolerations", "consumedCapacity"):
                if not device.get(key, True):
                    del device[key]
        for config in result["devices"].get("config", []):
            if not config.get("requests", True):
                del config["requests"]
    steps = answer["steps"]
    error = answer.get("error", "")
    return {
        "fits": answer["fits"],
        "results": results,
        "error": kind(error),
        "nodeOnly": answer.get("nodeOnly", False),
        "steps": steps,
    }


_PARSE = re.compile(r"(failed to parse node selector).*", re.DOTALL)
_SLICE = re.compile(r"(failed to perform node selection for device ).*( in slice)", re.DOTALL)
_ATTRIBUTE = re.compile(r"(CEL runtime error: attribute ).*(: (unsupported|parse).*)", re.DOTALL)
_CAPACITY = re.compile(r'(capacity for device [^ ]*: capacity )"[^"]*"', re.DOTALL)


def kind(error: str) -> str:
    """The text up to where it shows Go's own words, or what was first in a Go map."""
    error = _SLICE.sub(r"\1\2", _PARSE.sub(r"\1", error))
    return _CAPACITY.sub(r"\1", _ATTRIBUTE.sub(r"\1\2", error))


class Tally:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.features: Counter[str] = Counter()
        self.decisive: Counter[str] = Counter()
        self.disagreements: list[tuple[dict[str, Any], dict[str, bool], list[Answer], Answer]] = []

    def add(self, world: dict[str, Any], gates: dict[str, bool], ours: list[Answer], theirs: Answer) -> None:
        counts = self.counts
        counts["worlds"] += 1
        counts["worlds with changed gates"] += bool(gates)
        error = theirs.get("error", "")
        counts["fits" if theirs["fits"] else "does not fit" if not error else "error"] += 1
        if error:
            counts["errors with the very same text"] += any(answer.get("error") == error for answer in ours)
        real = normalise(theirs)
        mine = [normalise(answer) for answer in ours]
        if theirs["steps"] < 0:
            for answer in mine:
                answer["steps"] = -1
        else:
            counts["searches of equal length"] += any(answer == real for answer in mine)
        if real not in mine:
            self.disagreements.append((world, gates, mine, real))

    def add_features(self, world: dict[str, Any], followed: Profile, ours: list[Answer]) -> None:
        """How often each feature occurs, and how often the outcome depends on it."""
        before = [_outcome(answer) for answer in ours]
        for feature in FEATURES:
            changed = remove_feature(world, feature)
            if changed is None:
                continue
            self.features[feature] += 1
            try:
                after = possible_answers(changed, followed)
            except BudgetError:
                continue
            self.decisive[feature] += [_outcome(answer) for answer in after] != before


def _outcome(answer: Answer) -> Answer:
    plain = normalise(answer)
    del plain["steps"]
    return plain


def questions(
    seed: int, minor: str, count: int
) -> Iterator[tuple[dict[str, Any], dict[str, bool], Profile, list[Answer]]]:
    """Worlds that our allocator could answer within its budget, with the answers."""
    maker = WorldMaker(Random(seed), minor)
    made = 0
    while made < count:
        world, gates = maker.make()
        followed = profile(minor, gates)
        try:
            ours = possible_answers(world, followed)
        except BudgetError:
            continue
        made += 1
        yield world, gates, followed, ours


def run_allocate(minor: str, count: int, seed: int, *, features: bool) -> Tally:
    tally = Tally()
    with Oracle(minor) as oracle:
        for world, gates, followed, ours in questions(seed, minor, count):
            try:
                theirs = oracle.ask({"op": "allocate", "gates": followed.gates, **world})
            except RuntimeError as error:
                if "panic:" not in str(error):
                    raise
                tally.counts["worlds on which the real code panics"] += 1
                continue
            tally.add(world, gates, ours, theirs)
            if features:
                tally.add_features(world, followed, ours)
    return tally


def find_idle(tally: Tally, minor: str) -> list[str]:
    """Features that decide too few worlds. Fewer worlds than enough need not show anything."""
    if tally.counts["worlds"] < ENOUGH_WORLDS:
        return []
    return [name for name in features_of(minor) if tally.decisive[name] < ENOUGH_DECIDED]


def print_allocate(tally: Tally, minor: str, seconds: float) -> None:
    print(f"Kubernetes {minor}: {seconds:.0f} s")
    for name, count in tally.counts.items():
        print(f"  {count:8d}  {name}")
    print(f"  {len(tally.disagreements):8d}  disagreements")
    if tally.features:
        print("  features: worlds that have it, worlds whose outcome changes without it")
        for name in FEATURES:
            print(f"    {tally.features[name]:7d} {tally.decisive[name]:7d}  {name}")
        for name in find_idle(tally, minor):
            print(f"  too few: {name} decides {tally.decisive[name]} of {tally.counts['worlds']} worlds")
    for world, gates, ours, theirs in tally.disagreements[:_SHOWN]:
        print(f"- gates={gates}")
        print(f"    world  {msgspec.json.encode(world).decode()}")
        print(f"    theirs {theirs}")
        for answer in ours[:2]:
            print(f"    ours   {answer}")


def record_features(tally: Tally, minor: str) -> None:
    """Keep what the table of features says, for a test that cannot take the time."""
    known = msgspec.json.decode(FIGURES.read_bytes()) if FIGURES.exists() else {}
    known[minor] = {
        "worlds": tally.counts["worlds"],
        "features": {name: [tally.features[name], tally.decisive[name]] for name in features_of(minor)},
    }
    FIGURES.write_bytes(msgspec.json.format(msgspec.json.encode(known, order="sorted"), indent=1) + b"\n")


def compare_allocate(minors: list[str], count: int, seed: int, *, features: bool, record: bool = False) -> bool:
    """Whether all agreed, and every feature had a say."""
    agreed = True
    for minor in minors:
        started = time.monotonic()
        tally = run_allocate(minor, count, seed, features=features)
        print_allocate(tally, minor, time.monotonic() - started)
        if record:
            record_features(tally, minor)
        agreed = agreed and not tally.disagreements and not (features and find_idle(tally, minor))
    return agreed
