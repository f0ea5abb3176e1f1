"""Loading the slices of a whole fleet from JSON, beside Python's own decoder."""

import json
from pathlib import Path

import msgspec

from benchmarks.measure import Row, compare
from fishplate.hardware.catalog import load_catalog
from fishplate.k8s.bulk import decode_slices
from fishplate.sim.fleet import make_fleet, parse_fleet

_NODES = 10_000


def run() -> list[object]:
    fleet = make_fleet(parse_fleet(f"Standard_ND128isr_GB300_v6={_NODES}"), load_catalog())
    data = msgspec.json.encode({"kind": "ResourceSliceList", "items": fleet.slices})
    before = _resident()
    held = decode_slices(data)
    grown = _resident() - before
    count = len(held)
    del held
    ours, theirs = compare(lambda: decode_slices(data), lambda: json.loads(data), repeats=3)
    row = Row(f"{count} slices, {len(data) / 1e6:.0f} MB of JSON, into Structs", ours, "json.loads into dicts", theirs)
    return [row, f"held: {grown:.0f} MB"]


def _resident() -> float:
    """MB, from outside Python's own idea of it."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6
