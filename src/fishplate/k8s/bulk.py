"""Thousands of slices at once: `kubectl get resourceslices -o json` of a whole fleet.

Straight from JSON into Structs, one slice after the other. A fleet's devices repeat themselves, so equal attributes
become one object as soon as their slice is there: the memory of the others is used again for the next slice. That
halves what a fleet takes, and what is kept lies close together.

Half the time of such a load would be Python's cycle collector looking at values that hold no cycles, so it is off
meanwhile, and what was loaded is put out of its sight.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from fishplate.errors import DocumentError
from fishplate.k8s.resource import DeviceAttribute, ResourceSlice


class _SliceList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[msgspec.Raw, ...] = ()


_LIST = msgspec.json.Decoder(_SliceList)
_SLICE = msgspec.json.Decoder(ResourceSlice)


def decode_slices(data: bytes, *, where: str = "") -> tuple[ResourceSlice, ...]:
    """The slices of a JSON list. Fields of newer API servers that we do not know are left out."""
    found: list[ResourceSlice] = []
    known: dict[DeviceAttribute, DeviceAttribute] = {}
    place = "the list"
    with quiet_collector():
        try:
            for raw in _LIST.decode(data).items:
                place = f"item {len(found)}"
                found.append(_SLICE.decode(raw))
                _share_attributes(found[-1], known)
        except msgspec.DecodeError as error:
            raise DocumentError(
                f"not a list of ResourceSlices: {place}: {error}",
                where=where,
                remedy="give the output of kubectl get -o json",
            ) from error
    gc.freeze()
    return tuple(found)


def _share_attributes(origin: ResourceSlice, known: dict[DeviceAttribute, DeviceAttribute]) -> None:
    first = known.setdefault
    for device in origin.spec.devices:
        attributes = device.attributes
        attributes.update(zip(attributes, map(first, attributes.values(), attributes.values()), strict=True))


@contextmanager
def quiet_collector() -> Iterator[None]:
    """For work that makes very many values without cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
