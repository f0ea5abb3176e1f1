"""Asking groups of nodes gives what asking each node gives, on random fleets."""

from __future__ import annotations

import copy
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import bench_allocate
from fishplate.cel import environment
from fishplate.dra import Budget, Node, Scene, World, allocate, profile
from fishplate.dra.fleet import Verdict, count_fleet, count_pods, group_keys, survey
from fishplate.dra.oddities import find_oddities
from fishplate.errors import AllocationError, BudgetError
from oracle.diff_allocate import decode
from oracle.worlds import WorldMaker

if TYPE_CHECKING:
    from fishplate.k8s.claim import ResourceClaim

# The CEL parser raises Python's recursion limit when first used, and hypothesis minds if that happens while it watches.
environment("1.36").compile("true")


def new_budget() -> Budget:
    return Budget(steps=2000)


def make_fleet(
    seed: int, minor: str, nodes: int = 14, *, level: bool = False
) -> tuple[World, list[Node], list[ResourceClaim]]:
    """Nodes that are copies of two or three, with a few values, names and allocations changed. `level`: nearly all
    devices have the same attribute names and no capacity, as those of one driver mostly have."""
    random = Random(seed)
    maker = WorldMaker(random, minor)
    kinds = [maker.make()[0] for _ in range(random.choice((1, 2, 3)))]
    for kind in kinds:
        _simplify(kind, random)
    local = random.random() < 0.8
    whole: dict[str, Any] = {
        "slices": [],
        "allocated": [],
        **{key: kinds[0][key] for key in ("node", "classes", "claims")},
    }
    for number in range(nodes):
        kind = copy.deepcopy(random.choice(kinds))
        for one in kind["slices"]:
            _move(one, f"node-{number}", local=local)
            for device in one["spec"].get("devices", []):
                if level and random.random() < 0.98:
                    _level(device, random)
                _vary(device, random, number)
        for claim in kind["allocated"]:
            if random.random() < 0.8:
                result = claim["status"]["allocation"]["devices"]["results"][0]
                result["pool"] += f"-node-{number}"
                whole["allocated"].append(claim)
        whole["slices"] += kind["slices"]
    world, _, claims = decode(whole)
    return world, [Node(name=f"node-{number}") for number in range(nodes)], claims


def _simplify(kind: dict[str, Any], random: Random) -> None:
    """Most fleets have whole pools and none of the rarer features; some keep them."""
    if random.random() < 0.3:
        return
    kind["slices"] = [one for one in kind["slices"] if "sharedCounters" not in one["spec"]]
    for one in kind["slices"]:
        pool = (one["spec"]["driver"], one["spec"]["pool"]["name"])
        same = [each for each in kind["slices"] if (each["spec"]["driver"], each["spec"]["pool"]["name"]) == pool]
        one["spec"]["pool"] = {"name": pool[1], "generation": 1, "resourceSliceCount": len(same)}
        for device in one["spec"]["devices"]:
            for key in ("consumesCounters", "bindingConditions", "bindingFailureConditions", "taints"):
                device.pop(key, None)


def _move(one: dict[str, Any], node: str, *, local: bool) -> None:
    spec = one["spec"]
    one["metadata"]["name"] += node
    spec["pool"] = {**spec["pool"], "name": f"{spec['pool']['name']}-{node}"}
    if local:
        for key in ("nodeSelector", "allNodes", "perDeviceNodeSelection", "nodeName"):
            spec.pop(key, None)
        spec["nodeName"] = node


def _level(device: dict[str, Any], random: Random) -> None:
    for key in ("capacity", "allowMultipleAllocations", "consumesCounters", "bindingConditions", "taints"):
        device.pop(key, None)
    device["attributes"] = {
        "numa": {"int": random.choice((0, 1))},
        "resource.kubernetes.io/root": {"string": random.choice(("pci0", "pci1"))},
        "fast": {"bool": random.random() < 0.7},
        "gpu.example.com/rail": {"string": random.choice(("r0", "r1"))},
    }


def _vary(device: dict[str, Any], random: Random, number: int) -> None:
    device["attributes"]["serial"] = {"string": f"{number}-{random.randrange(10**6)}"}
    root = device["attributes"].get("resource.kubernetes.io/root", {})
    if "string" in root:
        root["string"] += f"-{number}"
    if random.random() < 0.1:
        device["attributes"]["fast"] = {"bool": random.random() < 0.5}


def ask(scene: Scene, node: Node, claims: list[ResourceClaim]) -> Verdict:
    try:
        found = allocate(scene, node, claims, profile=scene.profile, budget=new_budget())
    except AllocationError:
        return Verdict.ERROR
    except BudgetError:
        return Verdict.UNKNOWN
    return Verdict.DOES_NOT_FIT if found is None else Verdict.FITS


@pytest.mark.parametrize("level", [False, True])
@pytest.mark.parametrize("minor", ["1.36", "1.37"])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**9))
def test_a_survey_says_of_each_node_what_the_node_says_itself(minor: str, level: bool, seed: int) -> None:
    world, nodes, claims = make_fleet(seed, minor, level=level)
    scene = Scene(world, profile(minor))
    assert survey(scene, nodes, claims, new_budget=new_budget).verdicts() == {
        node.name: ask(scene, node, claims) for node in nodes
    }


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**9))
def test_pods_are_counted_alike_in_groups_and_one_by_one(seed: int) -> None:
    world, nodes, claims = make_fleet(seed, "1.36", nodes=8)
    scene = Scene(world, profile("1.36"))
    counts = count_fleet(scene, nodes, claims, limit=5, new_budget=new_budget)
    for node in nodes:
        alone = count_pods(scene, node, claims, limit=5, new_budget=new_budget)
        assert (counts[node.name].pods, counts[node.name].exact) == (alone.pods, alone.exact)


@pytest.mark.parametrize("what", bench_allocate.QUESTIONS)
def test_the_measured_fleet_is_judged_as_each_of_its_nodes(what: str) -> None:
    """The one of `make bench`, smaller: there the whole survey goes by columns."""
    raw = {**bench_allocate.make_fleet(80), "node": {"name": "node-00000"}, "claims": [bench_allocate.QUESTIONS[what]]}
    world, _, claims = decode(raw)
    scene, nodes = Scene(world, profile("1.36")), [Node(name=f"node-{number:05d}") for number in range(80)]
    assert survey(scene, nodes, claims).verdicts() == {node.name: ask(scene, node, claims) for node in nodes}
    counts = count_fleet(scene, nodes, claims)
    assert all(counts[node.name].pods == count_pods(scene, node, claims).pods for node in nodes)


def test_random_fleets_are_really_grouped() -> None:
    grouped = total = 0
    for seed in range(40):
        world, nodes, claims = make_fleet(seed, "1.36")
        keys = group_keys(Scene(world, profile("1.36")), nodes, claims)
        total += len(keys)
        grouped += len(keys) - len({key for key, _ in keys})
    assert grouped > total / 5


def test_level_fleets_are_really_read_by_columns() -> None:
    slices = sheets = 0
    for seed in range(20):
        world, _, _ = make_fleet(seed, "1.36", level=True)
        slices += len(world.slices)
        sheets += sum(len(sheet.devices) > 1 for sheet in find_oddities(world.slices).sheets.values())
    assert sheets > slices / 4


def test_what_was_found_at_loading_changes_no_answer() -> None:
    for seed in range(20):
        world, nodes, claims = make_fleet(seed, "1.36")
        loaded = World(slices=world.slices, classes=world.classes, claims=world.claims, odd=find_oddities(world.slices))
        first = survey(Scene(world, profile("1.36")), nodes, claims, new_budget=new_budget)
        second = survey(Scene(loaded, profile("1.36")), nodes, claims, new_budget=new_budget)
        assert first.verdicts() == second.verdicts()
