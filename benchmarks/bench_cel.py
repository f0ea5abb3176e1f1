"""CEL matching on a fleet: ours against the real DeviceMatches, in one run on one machine. Prints ratios.

    python -m benchmarks.bench_cel [--devices 80000] [--minor 1.36]

Every device is visited once a round, and nothing about it is remembered from an earlier visit; both sides hold decoded
devices and keep the run-time cost limit. The Go side builds its maps on each call, as kube-scheduler does; ours keeps
the attributes as they were decoded, so decoding is also measured and shown.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import shutil
import tempfile
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from fishplate.cel import environment
from fishplate.cel.decode import decode_device
from oracle.client import Oracle

if TYPE_CHECKING:
    from fishplate.cel import Device, Program

_ROUNDS = 5
_NICS = 8
SELECTORS = {
    "driver": 'device.driver == "dra.net"',
    "string": 'device.attributes["dra.net"].rdma == true && device.attributes["dra.net"].linkType == "infiniband"',
    "numa": 'device.attributes["resource.kubernetes.io"].numaNode == 1',
    "version": 'device.attributes["dra.net"].firmware.isGreaterThan(semver("28.39.0"))',
    "bind": 'cel.bind(a, device.attributes["dra.net"], a.rdma && a.state == "up" && a.speed >= 400)',
    "guarded": 'has(device.attributes["dra.net"].rail) && device.attributes["dra.net"].rail in ["rail0", "rail2"]',
    "capacity": 'device.capacity["dra.net"].bandwidth.compareTo(quantity("400G")) >= 0',
    "optional": 'device.attributes["dra.net"].?fabric.orValue("none") == "fabric-7"',
    "pattern": 'device.attributes["dra.net"].pciAddress.matches("^00[0-9a-f]{2}:")',
    "loop": '["rail0", "rail3"].exists(r, device.attributes["dra.net"].rail == r)',
}


def make_fleet(count: int) -> list[dict[str, object]]:
    """NICs of GPU nodes, eight a node, with twenty attributes; most differ from node to node."""
    random = Random(7)
    fleet: list[dict[str, object]] = []
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
        capacity = {"bandwidth": {"value": "400G" if nic < 7 else "100G"}}
        fleet.append({"driver": "dra.net", "attributes": attributes, "capacity": capacity})
    return fleet


def resident() -> int:
    """Resident memory in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 2**20


def time_ours(program: Program, devices: list[Device]) -> tuple[float, int]:
    """The best of a few rounds, each over all devices; and how many matched."""
    best, matched = float("inf"), 0
    matches = program.matches
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        matched = 0
        for device in devices:
            if matches(device):
                matched += 1
        best = min(best, time.perf_counter() - start)
    return best, matched


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
    fleet = make_fleet(arguments.devices)
    before = resident()
    start = time.perf_counter()
    devices = [decode_device(raw["driver"], raw["attributes"], raw["capacity"]) for raw in fleet]  # type: ignore[arg-type]
    decoding = (time.perf_counter() - start) / len(devices) * 1e6
    gc.collect()
    held = resident() - before
    gc.freeze()
    attributes = len(devices[0].attributes)
    print(
        f"{len(devices)} devices, {attributes} attributes each; decoding {decoding:.1f} µs a device, holding {held} MB"
    )
    print(f"{'selector':10} {'ours µs':>9} {'Go µs':>9} {'ratio':>7} {'with decoding':>14}  matches")
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file, Oracle(arguments.minor) as oracle:
        file.writelines(json.dumps(raw) + "\n" for raw in fleet)
        file.flush()
        for name, text in SELECTORS.items():
            program = environment(arguments.minor).compile(text)
            seconds, matched = time_ours(program, devices)
            answer = oracle.ask({"op": "cel-bench", "expression": text, "file": file.name, "rounds": _ROUNDS})
            if answer["matches"] != matched:
                raise SystemExit(f"{name}: we match {matched}, the real code {answer['matches']}")
            ours = seconds / len(devices) * 1e6
            theirs = min(answer["nanos"]) / len(devices) / 1000
            whole = theirs / (ours + decoding)
            print(f"{name:10} {ours:9.2f} {theirs:9.2f} {theirs / ours:6.1f}x {whole:13.1f}x  {matched}")


if __name__ == "__main__":
    main()
