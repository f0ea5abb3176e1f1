"""Names of PCI vendors and devices, for the hardware this program is about.

Hosts often lack pci.ids, and containers nearly always do; DRANET publishes these names as attributes, so selectors are
written against them. What is not in the data has no name here: nothing is guessed from a neighbouring identifier.
"""

import functools
from importlib import resources

import msgspec
import yaml


class Vendor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    devices: dict[str, str]


class _Names(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    vendors: dict[str, Vendor]


@functools.cache
def load_vendors() -> dict[str, Vendor]:
    text = resources.files("fishplate.hardware").joinpath("data", "pci_names.yaml").read_text(encoding="utf-8")
    return msgspec.convert(yaml.load(text, Loader=yaml.CSafeLoader), _Names).vendors


def pci_names(vendor: str, device: str) -> tuple[str | None, str | None]:
    """Vendor and device name of two hex identifiers, with or without `0x`; None where unknown."""
    known = load_vendors().get(_normalise(vendor))
    return (None, None) if known is None else (known.name, known.devices.get(_normalise(device)))


def _normalise(identifier: str) -> str:
    return identifier.strip().lower().removeprefix("0x").zfill(4)
