"""Random devices, as they would stand in a ResourceSlice, and the same devices as our engine takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fishplate.cel import decode_device

if TYPE_CHECKING:
    from random import Random

    from fishplate.cel import Device

DRIVER = "dra.example.com"
DOMAINS = (DRIVER, "resource.kubernetes.io", "a.io")
VERSIONS = ("1.2.3", "0.10.0", "1.0.0-rc.1", "1.0.0-rc.10", "2.0.0+build.7", "1.2.3-alpha.beta", "10.20.30")
STRINGS = (
    "",
    "fish",
    "mlx5_0",
    "pci0000:20",
    "GB300",
    "10.0.0.1",
    "Größe",
    "a,b,c",
    "true",
    "v1.2",
    "fe80::1/64",
    "0000:21:00.0",
)
QUANTITIES = (
    "1",
    "80Gi",
    "1536Mi",
    "1.5Gi",
    "100m",
    "1e3",
    "0",
    "-5",
    "1.0",
    "12345678901234567890",
    "0.5Ki",
    "1000m",
    "5k",
)
# Attribute ids by the type of their value, so that generated expressions mostly fit.
IDS = {
    "int": ("numaNode", "count"),
    "bool": ("rdma", "virtual"),
    "string": ("model", "address"),
    "version": ("firmware", "driverVersion"),
    "ints": ("cores",),
    "strings": ("names",),
    "bools": ("flags",),
    "versions": ("supported",),
}
CAPACITIES = ("memory", "bandwidth")


def random_value(random: Random, kind: str) -> int | bool | str:
    match kind:
        case "int" | "ints":
            return random.choice((0, 1, 2, 7, -1, 100, 2**53, 9223372036854775807, -9223372036854775808))
        case "bool" | "bools":
            return random.random() < 0.5
        case "version" | "versions":
            return random.choice(VERSIONS)
    return random.choice(STRINGS)


def random_device(random: Random, *, single: bool, lists: bool) -> dict[str, Any]:
    """A device; `single` ones have at most one attribute and one capacity, so that no map order can matter."""
    attributes: dict[str, Any] = {}
    kinds = [kind for kind in IDS if lists or not kind.endswith("s")]
    for kind in [random.choice(kinds)] if single else kinds:
        for name in IDS[kind][:1] if single else IDS[kind]:
            if random.random() < 0.15:
                continue
            # Most values have the kind their name suggests; a few do not.
            actual = kind if random.random() < 0.93 else random.choice(kinds)
            value: object = random_value(random, actual)
            if actual.endswith("s"):
                value = [random_value(random, actual) for _ in range(random.choice((1, 2, 3, 3, 60)))]
            domain = random.choice(("", "", f"{DRIVER}/", "resource.kubernetes.io/", "a.io/"))
            attributes[domain + name] = {actual: value}
    if random.random() < 0.01:
        attributes["broken"] = random.choice(({}, {"version": "v1"}, {"version": "1.2"}))
    capacity = {
        random.choice(("", "a.io/")) + name: {"value": random.choice(QUANTITIES)}
        for name in (CAPACITIES[:1] if single else CAPACITIES)
        if random.random() < 0.85
    }
    device: dict[str, Any] = {"driver": random.choice((DRIVER, DRIVER, DRIVER, "other.example.com"))}
    device |= {"attributes": attributes, "capacity": capacity}
    if random.random() < 0.4:
        device["allowMultipleAllocations"] = random.random() < 0.5
    return device


def as_device(raw: dict[str, Any]) -> Device:
    return decode_device(
        raw["driver"],
        raw.get("attributes", {}),
        raw.get("capacity", {}),
        allow_multiple_allocations=raw.get("allowMultipleAllocations", False),
    )
