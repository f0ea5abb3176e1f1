"""Small worlds for the allocator's tests: one node `a`, devices by name, claims by their requests."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fishplate.dra import Allocation, Budget, Node, Scene, World, allocate, profile
from fishplate.dra.trace import Trace, trace
from fishplate.k8s.claim import DeviceClass, ResourceClaim, default_claim
from fishplate.k8s.resource import ResourceSlice

DRIVER = "d.io"


class Little:
    """A world under construction. Everything is written as it would stand in YAML."""

    def __init__(self) -> None:
        self.minor = "1.36"
        self.gates: dict[str, bool] = {}
        self.labels: dict[str, str] = {}
        self.slices: list[dict[str, Any]] = []
        self.classes: list[dict[str, Any]] = [{"metadata": {"name": "any"}, "spec": {}}]
        self.claims: list[dict[str, Any]] = []
        self.held: list[dict[str, Any]] = []

    def slice(self, *devices: dict[str, Any] | str, pool: str = "a", count: int = 1, **spec: Any) -> None:  # noqa: ANN401
        written = [{"name": device} if isinstance(device, str) else device for device in devices]
        place = {} if {"allNodes", "nodeSelector", "perDeviceNodeSelection"} & set(spec) else {"nodeName": "a"}
        body = {"name": pool, "generation": spec.pop("generation", 1), "resourceSliceCount": count}
        whole = {"driver": DRIVER, "pool": body, **place, "devices": written, **spec}
        self.slices.append({"metadata": {"name": spec.get("driver", DRIVER) + f"-{len(self.slices)}"}, "spec": whole})

    def claim(self, *requests: dict[str, Any], **devices: Any) -> None:  # noqa: ANN401
        named = [
            request
            if "firstAvailable" in request
            else {"name": f"r{index}", "exactly": {"deviceClassName": "any", **request}}
            for index, request in enumerate(requests)
        ]
        metadata = {"name": f"c{len(self.claims)}", "namespace": "ns"}
        self.claims.append({"metadata": metadata, "spec": {"devices": {"requests": named, **devices}}})

    def hold(self, device: str, pool: str = "a", **result: Any) -> None:  # noqa: ANN401
        taken = {"request": "r", "driver": DRIVER, "pool": pool, "device": device, **result}
        status = {"allocation": {"devices": {"results": [taken]}}}
        self.held.append({"metadata": {"name": f"holder-of-{device}"}, "spec": {}, "status": status})

    def scene(self) -> Scene:
        world = World(
            slices=msgspec.convert(self.slices, tuple[ResourceSlice, ...]),
            classes=msgspec.convert(self.classes, tuple[DeviceClass, ...]),
            claims=msgspec.convert(self.held, tuple[ResourceClaim, ...]),
        )
        return Scene(world, profile(self.minor, self.gates))

    def wanted(self) -> list[ResourceClaim]:
        return [default_claim(claim) for claim in msgspec.convert(self.claims, list[ResourceClaim])]

    def allocate(self, budget: Budget | None = None) -> Allocation | None:
        scene = self.scene()
        node = Node(name="a", labels=self.labels)
        return allocate(scene, node, self.wanted(), profile=scene.profile, budget=budget, new_share_id=lambda: "share")

    def chosen(self) -> list[list[str]] | None:
        """Device names, claim by claim."""
        found = self.allocate()
        if found is None:
            return None
        return [[device.device for device in result.devices.results] for result in found.results]

    def trace(self) -> Trace:
        return trace(self.scene(), Node(name="a", labels=self.labels), self.wanted())


@pytest.fixture
def world() -> Little:
    return Little()
