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
    assert find_oddities(read({"name": "x", **extra}, plain)).pools == {("d.io", "p")}


def test_a_name_that_occurs_twice_makes_the_slice_odd() -> None:
    odd = find_oddities(read({"name": "x"}, {"name": "x"}, {"name": "y"}))
    assert odd.pools == {("d.io", "p")}


def test_a_plain_slice_is_not_odd() -> None:
    plain = {"name": "y", "attributes": {"n": {"version": "1.2.3"}, "k.io/n": {"int": 1}}}
    assert not find_oddities(read({"name": "x"}, plain)).pools


def test_equal_columns_have_equal_numbers() -> None:
    def device(name: str, serial: int) -> dict[str, Any]:
        return {"name": name, "attributes": {"n": {"string": "same"}, "serial": {"int": serial}}}

    slices = read(device("x", 1), device("y", 2)) + read(device("x", 1), device("z", 3))
    odd = find_oddities(slices)
    first, second = (odd.sheets[id(origin)] for origin in slices)
    assert odd.spellings[first.spelling] == ("d.io", ("n", "serial"), 2)
    assert first.columns[0] == second.columns[0]
    assert first.columns[1] != second.columns[1]
    assert (first.devices, second.devices) == (("x", "y"), ("x", "z"))


def test_a_slice_of_different_names_has_no_sheet() -> None:
    slices = read({"name": "x", "attributes": {"n": {"int": 1}}}, {"name": "y"})
    assert not find_oddities(slices).sheets


@pytest.mark.parametrize(
    "extra",
    [
        {"capacity": {"memory": {"value": "2Gi"}}},
        {"capacity": {"memory": {"value": "1Gi"}, "more": {"value": "1"}}},
        {"capacity": {"memory": {"value": "1Gi"}}, "allowMultipleAllocations": True},
        {},
    ],
)
def test_devices_of_several_capacities_have_no_sheet(extra: dict[str, Any]) -> None:
    same = {"capacity": {"memory": {"value": "1Gi"}}}
    assert find_oddities(read({"name": "x", **same}, {"name": "y", **same})).sheets
    assert not find_oddities(read({"name": "x", **same}, {"name": "y", **extra})).sheets
