"""Which of 10,000 GB300 nodes can take a claim: ours, beside the real allocator asked node by node.

Each node has 4 GPUs and 4 NICs in two slices; 40 % of the devices are taken, at random; GUIDs, LIDs, PCI addresses,
keys and placement groups differ as they do between real nodes. Every round starts from loaded objects and nothing else:
the index, the holdings, the compiled selectors and the groups are made anew. Both sides count the nodes that fit, and
must agree. Loading is not part of a round on either side; ours also notes down what can be said of slices whatever the
claim, so its time is told beside that of the real decoder.
"""

import gc
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

import msgspec

from benchmarks.measure import Row
from fishplate.dra import Node, Scene, World, profile
from fishplate.dra.fleet import Verdict, count_fleet, survey
from fishplate.dra.oddities import find_oddities
from fishplate.hardware.catalog import load_catalog
from fishplate.k8s.bulk import decode_slices
from fishplate.k8s.claim import DeviceClass, ResourceClaim, default_claim
from fishplate.sim.host import synthesise
from fishplate.topology.slices import publish_slices
from oracle.client import Oracle

_T = TypeVar("_T")
_NODES = 10_000
_TAKEN = 0.4
_ROUNDS = 7
_SIZE = "Standard_ND128isr_GB300_v6"
_MINOR = "1.36"
_GPU = "gpu.nvidia.com"
_CLASSES = [
    {"metadata": {"name": "nic"}, "spec": {"selectors": [{"cel": {"expression": 'device.driver == "dra.net"'}}]}},
    {
        "metadata": {"name": "gpu"},
        "spec": {
            "selectors": [
                {"cel": {"expression": f'device.driver == "{_GPU}" && device.attributes["{_GPU}"].type == "gpu"'}}
            ]
        },
    },
]
_ACTIVE = 'device.attributes["dra.net"].rdma && device.attributes["dra.net"].portState == "ACTIVE"'
_FASTER = f'{_ACTIVE} && device.attributes["dra.net"].rateGbps > 800'
_NUMA = "resource.kubernetes.io/numaNode"


def _claim(gpus: int, nics: int, selector: str) -> dict[str, Any]:
    requests = [
        {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": gpus}},
        {
            "name": "nic",
            "exactly": {"deviceClassName": "nic", "count": nics, "selectors": [{"cel": {"expression": selector}}]},
        },
    ]
    constraints = [{"requests": ["gpu", "nic"], "matchAttribute": _NUMA}]
    claim = {"metadata": {"name": "pair"}, "spec": {"devices": {"requests": requests, "constraints": constraints}}}
    defaulted: dict[str, Any] = msgspec.to_builtins(default_claim(msgspec.convert(claim, ResourceClaim)))
    return defaulted


QUESTIONS = {
    "a GPU and a NIC of one NUMA node (fits on most)": _claim(1, 1, _ACTIVE),
    "2 GPUs and 3 NICs of one NUMA node (fits nowhere)": _claim(2, 3, _ACTIVE),
    "a NIC faster than there is (fits nowhere)": _claim(1, 1, _FASTER),
}


def make_fleet(nodes: int, seed: int = 1) -> dict[str, Any]:
    """A world as JSON, without claims to allocate."""
    random = Random(seed)
    catalog = load_catalog()
    inventory = synthesise(catalog.find(_SIZE), catalog)
    template = msgspec.to_builtins(publish_slices(inventory, node="template")[0])
    slices: list[dict[str, Any]] = []
    allocated: list[dict[str, Any]] = []
    for number in range(nodes):
        name = f"node-{number:05d}"
        pair = [_nic_slice(template, name, number, random), _gpu_slice(name, random)]
        slices += pair
        results = [
            {"request": "r", "driver": one["spec"]["driver"], "pool": name, "device": device["name"]}
            for one in pair
            for device in one["spec"]["devices"]
            if random.random() < _TAKEN
        ]
        allocation = {"devices": {"results": results}}
        held = {"metadata": {"name": f"held-{name}"}, "spec": {"devices": {}}, "status": {"allocation": allocation}}
        allocated.append(held)
    return {"slices": slices, "classes": _CLASSES, "allocated": allocated}


def _nic_slice(template: dict[str, Any], node: str, number: int, random: Random) -> dict[str, Any]:
    devices = []
    for index, device in enumerate(template["spec"]["devices"]):
        guid = f"0015:5dff:fe{random.randrange(256):02x}:{random.randrange(65536):04x}"
        bus = f"{random.randrange(0x100, 0xFFFF):04x}:00:00.0"
        own = {
            "dra.net/lid": {"int": 4 * number + index + 1},
            "dra.net/nodeGuid": {"string": guid},
            "dra.net/portGuid": {"string": guid},
            "dra.net/pciAddress": {"string": bus},
            "resource.kubernetes.io/pciBusID": {"string": bus},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci{bus[:7]}"},
            "dra.net/pkey": {"string": f"0x{0x8000 + number // 72:04x}"},
            "azure.dra.net/placementGroupId": {"string": f"pg-{number // 72:04d}"},
        }
        name = f"pci-{bus.replace(':', '-').replace('.', '-')}-{index}"
        devices.append({"name": name, "attributes": {**device["attributes"], **own}})
    spec = {**template["spec"], "nodeName": node, "devices": devices}
    spec["pool"] = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {"metadata": {"name": f"nic-{node}"}, "spec": spec}


def _gpu_slice(node: str, random: Random) -> dict[str, Any]:
    devices = []
    for index in range(4):
        bus = f"{random.randrange(0x100, 0xFFFF):04x}:00:00.0"
        attributes = {
            "type": {"string": "gpu"},
            "uuid": {"string": f"GPU-{random.randrange(16**12):012x}"},
            "productName": {"string": "NVIDIA GB300"},
            "brand": {"string": "Nvidia"},
            "architecture": {"string": "Blackwell"},
            "cudaComputeCapability": {"version": "10.3.0"},
            "driverVersion": {"version": "580.95.5"},
            "cudaDriverVersion": {"version": "13.0.0"},
            "resource.kubernetes.io/pciBusID": {"string": bus},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci{bus[:7]}"},
            _NUMA: {"int": index // 2},
        }
        devices.append({"name": f"gpu-{index}", "attributes": attributes, "capacity": {"memory": {"value": "288Gi"}}})
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": f"gpu-{node}"},
        "spec": {"driver": _GPU, "pool": pool, "nodeName": node, "devices": devices},
    }


def run() -> list[object]:
    if shutil.which("go") is None:
        return ["needs Go, to ask the real allocator"]
    with tempfile.TemporaryDirectory() as directory, Oracle(_MINOR) as oracle:
        file = Path(directory) / "world.json"
        file.write_text(json.dumps({**make_fleet(_NODES), "gates": profile(_MINOR).gates}))
        seconds, world = _load(file)
        decoded = (
            oracle.ask({"op": "allocate-bench", "file": str(file), "nodes": [], "claims": []})["decodeNanos"] / 1e9
        )
        rows: list[object] = [Row(f"loading {2 * _NODES} slices", seconds, "encoding/json, decoding alone", decoded)]
        # As a program that holds a fleet would do: no use in going over millions of objects again and again.
        gc.collect()
        gc.freeze()
        for what, claim in QUESTIONS.items():
            rows += _compare(what, claim, world, oracle, file)
    return rows


class _File(msgspec.Struct):
    slices: msgspec.Raw
    classes: tuple[DeviceClass, ...]
    allocated: tuple[ResourceClaim, ...]


def _load(file: Path) -> tuple[float, World]:
    content = file.read_bytes()
    started = time.perf_counter()
    read = msgspec.json.decode(content, type=_File)
    slices = decode_slices(b'{"items":' + bytes(read.slices) + b"}")
    world = World(slices=slices, classes=read.classes, claims=read.allocated, odd=find_oddities(slices))
    return time.perf_counter() - started, world


class _Clock(NamedTuple):
    """What a round took: on the wall, and of processor time. The latter is not stretched by whatever else runs, and for
    the real allocator leaves out what its garbage collector does on other processors."""

    wall: float
    busy: float


def _time(action: Callable[[], _T]) -> tuple[_Clock, _T]:
    wall, busy = time.perf_counter(), time.process_time()
    result = action()
    return _Clock(time.perf_counter() - wall, time.process_time() - busy), result


def _compare(what: str, claim: dict[str, Any], world: World, oracle: Oracle, file: Path) -> list[object]:
    """Rounds taken in turns; the median of the rounds' ratios."""
    followed = profile(_MINOR)
    nodes = [Node(name=f"node-{number:05d}") for number in range(_NODES)]
    claims = [msgspec.convert(claim, ResourceClaim)]
    question = {"op": "allocate-bench", "file": str(file), "nodes": [node.name for node in nodes], "claims": [claim]}
    taken, counted, asked = [], [], []
    for _ in range(_ROUNDS):
        theirs = oracle.ask(question)
        asked.append(_Clock(theirs["nanos"][0] / 1e9, theirs["threadNanos"][0] / 1e9))
        clock, found = _time(lambda: survey(Scene(world, followed), nodes, claims))
        taken.append(clock)
        clock, pods = _time(lambda: count_fleet(Scene(world, followed), nodes, claims))
        counted.append(clock)
    fits = found.count(Verdict.FITS)
    assert (fits, found.count(Verdict.ERROR)) == (theirs["fits"], theirs["errors"]), (fits, theirs)
    total = sum(count.pods for count in pods.values())
    return [
        f"{what}: {fits} of {_NODES} nodes, {len(found.groups)} groups, {total} pods in all",
        f"  whether it fits: {_describe(taken, asked)}",
        f"  how many fit:    {_describe(counted, asked)}",
    ]


def _describe(ours: list[_Clock], theirs: list[_Clock]) -> str:
    """The real allocator is asked only whether one fits."""
    wall = statistics.median(their.wall / our.wall for their, our in zip(theirs, ours, strict=True))
    busy = statistics.median(their.busy / our.busy for their, our in zip(theirs, ours, strict=True))
    mine, real = min(clock.wall for clock in ours), min(clock.wall for clock in theirs)
    return (
        f"{mine * 1000:.0f} ms; the real allocator, node by node: {real * 1000:.0f} ms; "
        f"{wall:.1f} times as fast, {busy:.1f} in processor time"
    )
