"""Devices that must not be judged by likeness."""

from typing import Any

import msgspec
import pytest

from fishplate.dra.oddities import find_oddities
from fishplate.k8s.resource import ResourceSlice


def read(*devices: dict[str, Any]) -> list[ResourceSlice]:
    spec = {"driver": "d.io", "pool": {"name": "p", "resourceSliceCount": 1}, "nodeName": "a", "devices": list(devices)}
    return [msgspec.convert({"metadata": {"name": "s"}, "spec": spec}, ResourceSlice)]


@pytest.mark.parametrize(
    "extra",
    [
        {"attributes": {"n": {}}},
        {"attributes": {"n": {"version": "v1"}}},
        {"attributes": {"n": {"ints": [1]}}},
        {"attributes": {"n": {"int": 1}, "d.io/n": {"int": 1}}},
        {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        {"consumesCounters": [{"counterSet": "s"}]},
        {"bindingConditions": ["c"]},
        {"allowMultipleAllocations": True},
    ],
)
def test_an_odd_device_is_found(extra: dict[str, Any]) -> None:
    plain = {"name": "y", "attributes": {"n": {"version": "1.2.3"}, "k.io/n": {"int": 1}}}
    assert find_oddities(read({"name": "x", **extra}, plain)) == {("d.io", "p", "x")}


def test_a_name_that_occurs_twice_makes_the_slice_odd() -> None:
    assert find_oddities(read({"name": "x"}, {"name": "x"}, {"name": "y"})) == {("d.io", "p", "x"), ("d.io", "p", "y")}


def test_equal_attributes_become_one_object() -> None:
    slices = read(*({"name": name, "attributes": {"n": {"string": "same"}}} for name in "xy"))
    find_oddities(slices)
    first, second = slices[0].spec.devices
    assert first.attributes["n"] is second.attributes["n"]
