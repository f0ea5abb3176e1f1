"""Random small worlds for the allocator: one node, one pod's claims, and a cluster that uses every feature.

Worlds are plain JSON, as the oracle takes them. They are kept small, so that searches end, and poor in values, so that
devices collide. Not every world would pass API validation: the allocator has to live with what an older server stored.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from oracle.world_parts import (
    CONDITIONS,
    DRIVERS,
    NODE,
    OTHER,
    Parts,
)

if TYPE_CHECKING:
    from random import Random

World = dict[str, Any]
_EARLY = (
    "DRAAdminAccess",
    "DRAPrioritizedList",
    "DRAPartitionableDevices",
    "DRADeviceTaints",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
)
UNLOCKED = {
    "1.34": _EARLY,
    "1.35": _EARLY,
    "1.36": (
        "DRAPrioritizedList",
        "DRAPartitionableDevices",
        "DRADeviceTaints",
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRAResourceClaimDeviceStatus",
    ),
    "1.37": (
        "DRAPartitionableDevices",
        "DRADeviceTaints",
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRAFractionalCapacityRange",
    ),
}


LISTS = "DRAListTypeAttributes"
_THEMES = ("counters", "taints", "sharing", "binding", "places")


class WorldMaker(Parts):
    def __init__(self, random: Random, minor: str) -> None:
        super().__init__(random)
        self.minor = minor
        self.early = minor in ("1.34", "1.35")
        self.features: Counter[str] = Counter()
        self.theme: set[str] = set()
        self.lists = False

    def make(self) -> tuple[World, dict[str, bool]]:
        """A world, and the gates that differ from the defaults."""
        random = self.random
        self.theme = {name for name in _THEMES if random.random() < 0.3}
        if random.random() < 0.1:
            self.theme.add("twins")
        gates: dict[str, bool] = {}
        if random.random() < 0.2:
            for name in UNLOCKED[self.minor]:
                if random.random() < 0.3:
                    gates[name] = random.random() < 0.5
        self.lists = False
        if not self.early and random.random() < 0.2:
            gates[LISTS] = self.lists = True
            # With little else in the way, so that values decide.
            self.theme = {name for name in _THEMES if name in self.theme and random.random() < 0.3}
        pools = [(driver, name) for driver in DRIVERS for name in (NODE, "pool-b", "shared")]
        chosen = random.sample(pools, random.choice((1, 2, 2, 3, 3)))
        if random.random() < 0.02:
            chosen.append(chosen[0])
        slices = [one for driver, name in chosen for one in self._pool(driver, name)]
        if random.random() < 0.3:
            random.shuffle(slices)
        names: set[str] = set()
        for one in slices:
            while one["metadata"]["name"] in names:
                one["metadata"]["name"] += "x"
            names.add(one["metadata"]["name"])
        classes = [self.device_class(name) for name in ("gpu", "nic", "any")]
        claims = [self._claim(index) for index in range(random.choice((1, 1, 1, 1, 2, 2, 3)))]
        world = {
            "node": {"name": NODE, "labels": {"zone": "z1", "rack": "r1", "number": "7"}},
            "slices": slices,
            "classes": classes,
            "claims": claims,
            "allocated": self._allocated(slices),
        }
        return world, gates

    # Slices

    def _pool(self, driver: str, name: str) -> list[World]:
        random = self.random
        base = self._spec(driver, name)
        groups = [
            [self._device(f"{random.choice('abcd')}{i}-{j}") for j in range(random.choice((1, 2, 2, 3, 4, 5)))]
            for i in range(random.choice((1, 1, 2, 3)))
        ]
        specs = []
        for devices in groups:
            spec = {**base, "devices": devices}
            if random.random() < 0.15:
                spec = {**self._spec(driver, name), "devices": devices}
            if "places" in self.theme and random.random() < 0.3:
                self._place_devices(spec)
            specs.append(spec)
        if "counters" in self.theme:
            self._add_counters(specs, base)
        self._number(specs)
        return [
            {"metadata": {"name": f"{random.choice('pqrs')}-{driver}-{name}-{index}"}, "spec": spec}
            for index, spec in enumerate(specs)
        ]

    def _spec(self, driver: str, name: str) -> World:
        random = self.random
        spec: World = {"driver": driver, "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}}
        kind = random.random()
        if "places" not in self.theme or kind < 0.4:
            spec["nodeName"] = NODE if random.random() < 0.93 else OTHER
        elif kind < 0.65:
            spec["allNodes"] = True
        elif kind < 0.97:
            spec["nodeSelector"] = self.node_selector()
        return spec

    def _place_devices(self, spec: World) -> None:
        for key in ("nodeName", "allNodes", "nodeSelector"):
            spec.pop(key, None)
        spec["perDeviceNodeSelection"] = True
        for device in spec["devices"]:
            kind = self.random.random()
            if kind < 0.5:
                device["nodeName"] = NODE if self.random.random() < 0.7 else OTHER
            elif kind < 0.75:
                device["allNodes"] = True
            else:
                device["nodeSelector"] = self.node_selector()

    def _number(self, specs: list[World]) -> None:
        """Generations and counts, now and then wrong."""
        random = self.random
        for spec in specs:
            spec["pool"] = {**spec["pool"], "resourceSliceCount": len(specs)}
        if random.random() < 0.08:
            for spec in specs:
                if random.random() < 0.5:
                    spec["pool"]["generation"] = 2
                    spec["pool"]["resourceSliceCount"] = random.choice((1, len(specs)))
        if random.random() < 0.04:
            for spec in specs:
                spec["pool"]["resourceSliceCount"] = len(specs) + random.choice((1, 1, -1)) or 1

    def _add_counters(self, specs: list[World], base: World) -> None:
        random = self.random
        sets = [self.counter_set(f"set-{index}") for index in range(random.choice((1, 1, 2)))]
        for spec in specs:
            for device in spec["devices"]:
                if random.random() < 0.7:
                    device["consumesCounters"] = self.consumption(sets)
        if self.minor == "1.34" or random.random() < 0.06:
            specs[0]["sharedCounters"] = sets
            return
        place = {key: value for key, value in base.items() if key in ("nodeName", "allNodes", "nodeSelector")}
        if random.random() < 0.15:
            place = {"nodeName": OTHER}
        counter_spec = {"driver": base["driver"], "pool": dict(base["pool"]), **place, "sharedCounters": sets}
        if random.random() < 0.05:
            counter_spec["sharedCounters"] = [*sets, sets[0]]
        specs.append(counter_spec)

    def _device(self, name: str) -> World:
        random = self.random
        if "twins" in self.theme and random.random() < 0.2:
            name = "twin"
        device: World = {"name": name, "attributes": self.attributes()}
        if "sharing" in self.theme or random.random() < 0.1:
            device["capacity"] = self.capacity()
            if random.random() < 0.6:
                device["allowMultipleAllocations"] = random.random() < 0.9
        if "taints" in self.theme and random.random() < 0.6:
            device["taints"] = [self.taint() for _ in range(random.choice((1, 1, 2)))]
        if "binding" in self.theme and random.random() < 0.5:
            device["bindingConditions"] = [random.choice(CONDITIONS)]
            device["bindingFailureConditions"] = ["failed"]
        if "places" in self.theme and random.random() < 0.5:
            device["bindsToNode"] = True
        return device

    # Claims

    def _claim(self, index: int) -> World:
        random = self.random
        count = random.choice((1, 1, 1, 2, 2, 3))
        requests = [self._request(f"req-{position}") for position in range(count)]
        names = [request["name"] for request in requests] + [
            f"{request['name']}/{sub['name']}" for request in requests for sub in request.get("firstAvailable", [])
        ]
        devices: World = {"requests": requests}
        if random.random() < (0.8 if self.lists else 0.4):
            devices["constraints"] = [self.constraint(names) for _ in range(random.choice((1, 1, 2)))]
        if random.random() < 0.25:
            devices["config"] = [self.configuration(names) for _ in range(random.choice((1, 2)))]
        metadata = {"name": f"claim-{index}", **({"namespace": "ns"} if random.random() < 0.8 else {})}
        return {"metadata": metadata, "spec": {"devices": devices}}

    def _request(self, name: str) -> World:
        random = self.random
        if random.random() < 0.28:
            subs = [
                {"name": f"sub-{position}", **self._details()} for position in range(random.choice((1, 2, 2, 3, 3)))
            ]
            return {"name": name, "firstAvailable": subs}
        exactly = self._details()
        if random.random() < 0.12:
            exactly["adminAccess"] = random.random() < 0.85
        return {"name": name, "exactly": exactly}

    def _details(self) -> World:
        random = self.random
        details: World = {"deviceClassName": random.choice(("gpu", "nic", "any", "any"))}
        if random.random() < 0.005:
            details["deviceClassName"] = random.choice(("", "nope"))
        if random.random() < 0.35:
            details["selectors"] = self.selectors()
        if random.random() < 0.15:
            details["allocationMode"] = "All"
        else:
            details["allocationMode"] = "ExactCount"
            details["count"] = random.choice((1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3))
            if random.random() < 0.02:
                details["count"] = random.choice((12, 20, 31, 32, 33))
        if random.random() < 0.004:
            details["allocationMode"] = random.choice(("", "Some"))
        if "taints" in self.theme and random.random() < 0.5:
            details["tolerations"] = [self.toleration() for _ in range(random.choice((1, 1, 2)))]
        asks = ("sharing" in self.theme and random.random() < 0.5) or random.random() < 0.02
        if asks and (not self.early or random.random() < 0.2):
            details["capacity"] = {"requests": self.capacity_requests()}
        return details

    # What others hold

    def _allocated(self, slices: list[World]) -> list[World]:
        random = self.random
        held = []
        for one in slices:
            for device in one["spec"].get("devices", []):
                chance = 0.4 if device.get("allowMultipleAllocations") else 0.15
                held += [self._held(one["spec"], device)] if random.random() < chance else []
        return held

    def _held(self, spec: World, device: World) -> World:
        random = self.random
        result: World = {
            "request": "req",
            "driver": spec["driver"],
            "pool": spec["pool"]["name"],
            "device": device["name"],
        }
        if random.random() < 0.12:
            result["adminAccess"] = True
        if device.get("allowMultipleAllocations") and random.random() < 0.9:
            result["shareID"] = "00000000-0000-4000-8000-000000000001"
            if random.random() < 0.9:
                result["consumedCapacity"] = {
                    name: random.choice(("1", "2", "3", "4Gi")) for name in device.get("capacity", {})
                }
        name = f"held-{device['name']}"
        allocation = {"devices": {"results": [result]}}
        return {"metadata": {"name": name}, "spec": {"devices": {}}, "status": {"allocation": allocation}}
