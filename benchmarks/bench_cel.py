"""CEL matching on a fleet: ours against the real DeviceMatches, in one run on one machine. Prints ratios.

    python -m benchmarks.bench_cel [--devices 80000] [--minor 1.36]

Both sides start from devices decoded from JSON, as a scheduler holds them (`k8s.resource.Device` here, the struct of
k8s.io/api/resource/v1 there), and end with the answer: what has to be converted in between is part of the time. Both
keep the run-time cost limit. Every device is visited once a round, and nothing about it is remembered from an earlier
visit. Texts of versions and quantities that were parsed are remembered by ours within a round, so there is a second
fleet in which every device differs in all that is read, and that is no help.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import statistics
import tempfile
import time
from random import Random
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from fishplate.cel import Device as View
from fishplate.cel import environment
from fishplate.cel.guards import SOUND_VERSIONS
from fishplate.k8s.quantity import parse_quantity
from fishplate.k8s.resource import Device
from fishplate.k8s.semver import parse_semver
from oracle.client import Oracle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fishplate.cel import Program

Raw: TypeAlias = "dict[str, object]"

_ROUNDS = 6
_NICS = 8
# A smaller fleet for the long list: the time for a device does not depend on how many there are.
_SAMPLE = 8
_DRIVER = "dra.net"
_NIC = 'device.attributes["dra.net"]'
SELECTORS = {
    "driver": 'device.driver == "dra.net"',
    "string": f'{_NIC}.rdma == true && {_NIC}.linkType == "infiniband"',
    "numa": 'device.attributes["resource.kubernetes.io"].numaNode == 1',
    "version": f'{_NIC}.firmware.isGreaterThan(semver("28.39.0"))',
    "bind": f'cel.bind(a, {_NIC}, a.rdma && a.state == "up" && a.speed >= 400)',
    "guarded": f'has({_NIC}.rail) && {_NIC}.rail in ["rail0", "rail2"]',
    "capacity": 'device.capacity["dra.net"].bandwidth.compareTo(quantity("400G")) >= 0',
    "optional": f'{_NIC}.?fabric.orValue("none") == "fabric-7"',
    "pattern": f'{_NIC}.pciAddress.matches("^00[0-9a-f]{{2}}:")',
    "loop": f'["rail0", "rail3"].exists(r, {_NIC}.rail == r)',
}
OTHERS = {
    "range": f'cel.bind(v, {_NIC}.firmware, v.compareTo(semver("28.39.0")) > 0 && v.compareTo(semver("29.0.0")) < 0)',
    "parts": f"{_NIC}.firmware.major() == 28 && {_NIC}.firmware.minor() >= 39",
    "numbers": f"{_NIC}.speed in [100, 400] && {_NIC}.speed / 100 >= 4",
    "split": f'{_NIC}.pciAddress.split(":")[1] == "00"',
    "lower": f'{_NIC}.ifName.lowerAscii().startsWith("ib")',
    "substring": f"int({_NIC}.rail.substring(4)) < 4",
    "replace": f'{_NIC}.rail.replace("rail", "ib") == {_NIC}.ifName',
    "find": f'{_NIC}.rail.find("[0-9]+") == "3"',
    "choice": f'{_NIC}.speed > 200 ? {_NIC}.linkType == "infiniband" : {_NIC}.state == "up"',
    "fallback": f'{_NIC}.?zone.orValue({_NIC}.fabric) == "fabric-0"',
    "optMap": f'{_NIC}.?fabric.optMap(f, f.startsWith("fabric")).orValue(false)',
    "chain": 'device.attributes[?"dra.net"].?rail.orValue("") == "rail1"',
    "amounts": 'device.capacity["dra.net"].bandwidth.asInteger() > 1000 && quantity("1k").isInteger()',
    "nested": f'["a", "b"].exists(x, ["rail1", "rail2"].exists(y, x + y == "a" + {_NIC}.rail))',
    "mapped": f'["rail0", "rail1"].map(x, x + "!").exists(y, y == {_NIC}.rail + "!")',
    "absorbed": f'{_NIC}.nope == "x" || {_NIC}.rdma',
    "domain": '"dra.net" in device.attributes && !("other.io" in device.attributes)',
    "ids": f'{_NIC}.exists(id, id == "rail")',
    "domains": 'device.attributes.exists(d, d == "resource.kubernetes.io")',
}


def make_fleet(count: int, *, unlike: bool = False) -> list[Raw]:
    """NICs of GPU nodes, eight a node, with twenty attributes; most differ from node to node.

    In an unlike fleet no two devices have a string, a number, a version or a quantity in common.
    """
    random = Random(7)
    fleet = []
    for index in range(count):
        node, nic = divmod(index, _NICS)
        attributes: dict[str, dict[str, object]] = {
            "ifName": {"string": f"ib{nic}"},
            "rdma": {"bool": True},
            "rdmaDevice": {"string": f"mlx5_{nic}"},
            "linkType": {"string": "infiniband" if nic < 7 else "ethernet"},
            "state": {"string": "up" if random.random() < 0.98 else "down"},
            "speed": {"int": 400 if nic < 7 else 100},
            "mtu": {"int": 4092},
            "rail": {"string": f"rail{nic}"},
            "fabric": {"string": f"fabric-{node // 512}"},
            "firmware": {"version": f"28.{random.randint(38, 40)}.{random.randint(1000, 3000)}"},
            "driverVersion": {"version": "24.10.1"},
            "vendor": {"string": "15b3"},
            "product": {"string": "ConnectX-7"},
            "pciAddress": {"string": f"00{nic + 16:02x}:{nic:02x}:00.0"},
            "guid": {"string": f"{random.getrandbits(64):016x}"},
            "lid": {"int": random.randint(1, 49151)},
            "hostname": {"string": f"node-{node:05d}"},
            "virtual": {"bool": False},
            "resource.kubernetes.io/numaNode": {"int": nic // 4},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci00{nic + 16:02x}:00"},
        }
        capacity: dict[str, object] = {"bandwidth": {"value": "400G" if nic < 7 else "100G"}}
        if unlike:
            attributes = {name: _make_unlike(value, index) for name, value in attributes.items()}
            capacity = {"bandwidth": {"value": f"{400_000 + index}M"}}
        fleet.append({"attributes": attributes, "capacity": capacity})
    return fleet


def _make_unlike(attribute: Mapping[str, object], index: int) -> dict[str, object]:
    match attribute:
        case {"string": str() as text}:
            return {"string": f"{text}{index}"}
        case {"int": int() as number}:
            return {"int": number + index}
        case {"version": str() as text}:
            return {"version": f"{text}{index}"}
    return dict(attribute)


def time_ours(program: Program, devices: list[Device], rounds: int) -> tuple[list[float], int]:
    """Seconds of each round, over all devices; and how many matched."""
    taken, matched = [], 0
    matches = program.matches
    for _ in range(rounds):
        parse_semver.cache_clear()
        parse_quantity.cache_clear()
        SOUND_VERSIONS.clear()
        start = time.perf_counter()
        matched = 0
        for device in devices:
            if matches(View(_DRIVER, device.attributes, device.capacity, bool(device.allow_multiple_allocations))):
                matched += 1
        taken.append(time.perf_counter() - start)
    return taken, matched


def compare(title: str, selectors: Mapping[str, str], fleet: list[Raw], minor: str) -> None:
    devices = [msgspec.convert({"name": "nic", **raw}, Device) for raw in fleet]
    gc.collect()
    gc.freeze()
    print(f"\n{title}: {len(fleet)} devices, {len(devices[0].attributes)} attributes each; µs a device")
    print(f"{'selector':10} {'ours':>7} {'Go':>7} {'ratio':>7}  matches")
    ratios = []
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file, Oracle(minor) as oracle:
        file.writelines(json.dumps({"driver": _DRIVER, **raw}) + "\n" for raw in fleet)
        file.flush()
        for name, text in selectors.items():
            program = environment(minor).compile(text)
            before, matched = time_ours(program, devices, _ROUNDS // 2)
            answer = oracle.ask({"op": "cel-bench", "expression": text, "file": file.name, "rounds": _ROUNDS})
            after, _ = time_ours(program, devices, _ROUNDS // 2)
            if answer.get("matches") != matched:
                raise SystemExit(f"{name}: we match {matched}, the real code says {answer}")
            ours = statistics.median(before + after) / len(devices) * 1e6
            theirs = statistics.median(answer["nanos"]) / len(devices) / 1000
            ratios.append(theirs / ours)
            print(f"{name:10} {ours:7.2f} {theirs:7.2f} {theirs / ours:6.1f}x  {matched}", flush=True)
    print(f"least {min(ratios):.1f}x, median {statistics.median(ratios):.1f}x as fast as the real DeviceMatches")


def run() -> list[object]:
    """For `make bench`: the defaults."""
    if shutil.which("go") is None:
        return ["needs Go, to ask the real evaluator"]
    main([])
    return []


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_cel", description=__doc__)
    parser.add_argument("--devices", type=int, default=80_000)
    parser.add_argument("--minor", default="1.36")
    arguments = parser.parse_args(argv)
    count, minor = arguments.devices, arguments.minor
    fleet = make_fleet(count)
    compare("a fleet", SELECTORS, fleet, minor)
    compare("other expressions", OTHERS, fleet[: count // _SAMPLE], minor)
    compare("no two devices alike", SELECTORS | OTHERS, make_fleet(count // _SAMPLE, unlike=True), minor)


if __name__ == "__main__":
    main()
