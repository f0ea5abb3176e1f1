"""Many slices at once."""

import gc
from typing import Any

import msgspec
import pytest

from fishplate.errors import DocumentError
from fishplate.k8s.bulk import decode_slices
from fishplate.k8s.resource import ResourceSlice


def slice_of(name: str, *devices: dict[str, Any]) -> dict[str, Any]:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.io", "pool": pool, "nodeName": name, "devices": list(devices)}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def device(name: str, serial: int) -> dict[str, Any]:
    return {"name": name, "attributes": {"kind": {"string": "same"}, "serial": {"int": serial}}}


def encode(*items: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"kind": "ResourceSliceList", "items": items})


def test_slices_are_those_that_one_by_one_decoding_gives() -> None:
    items = [slice_of("a", device("x", 1), device("y", 2)), slice_of("b", device("x", 1)), slice_of("c")]
    assert decode_slices(encode(*items)) == tuple(msgspec.convert(item, ResourceSlice) for item in items)


def test_equal_attributes_are_one_object_across_slices() -> None:
    first, second = decode_slices(encode(slice_of("a", device("x", 1)), slice_of("b", device("x", 2))))
    one, other = first.spec.devices[0].attributes, second.spec.devices[0].attributes
    assert one["kind"] is other["kind"]
    assert one["serial"] != other["serial"]


@pytest.mark.parametrize(
    ("data", "told"),
    [(b"{}x", "the list"), (b'{"items": 1}', "the list"), (encode(slice_of("a"), {"kind": "Pod"}), "item 1")],
)
def test_what_is_no_list_of_slices_is_refused_with_its_place(data: bytes, told: str) -> None:
    with pytest.raises(DocumentError, match=f"not a list of ResourceSlices: {told}"):
        decode_slices(data)


def test_the_collector_is_on_again_after_a_bad_list() -> None:
    with pytest.raises(DocumentError):
        decode_slices(b"[")
    assert gc.isenabled()
