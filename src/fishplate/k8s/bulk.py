"""Thousands of slices at once: `kubectl get resourceslices -o json` of a whole fleet.

Straight from JSON into Structs. Half the time of such a load is Python's cycle collector looking at values that hold no
cycles, so it is off meanwhile, and what was loaded is put out of its sight.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from fishplate.errors import DocumentError
from fishplate.k8s.resource import ResourceSlice


class _SliceList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[ResourceSlice, ...] = ()


_DECODER = msgspec.json.Decoder(_SliceList)


def decode_slices(data: bytes, *, where: str = "") -> tuple[ResourceSlice, ...]:
    """The slices of a JSON list. Fields of newer API servers that we do not know are left out."""
    with _quiet_collector():
        try:
            return _DECODER.decode(data).items
        except msgspec.DecodeError as error:
            raise DocumentError(
                f"not a list of ResourceSlices: {error}", where=where, remedy="give the output of kubectl get -o json"
            ) from error


@contextmanager
def _quiet_collector() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
        gc.freeze()
