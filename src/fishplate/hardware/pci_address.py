"""PCI addresses: how they are written, ordered and turned into device names."""

import re

# A domain has four hex digits, or more behind Intel VMD; upstream DRANET knows four only and loses such devices.
ADDRESS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([01][0-9a-f])\.([0-7])\Z")
ROOT = re.compile(r"pci([0-9a-f]{4,8}):([0-9a-f]{2})\Z")


def is_address(text: str) -> bool:
    return ADDRESS.match(text) is not None


def nearest_address(path: str) -> str:
    """The innermost PCI function in a path of sysfs, "" if there is none."""
    return next((part for part in reversed(path.split("/")) if is_address(part)), "")


def subfunction(path: str) -> str:
    """The mlx5 subfunction a path of sysfs leads through (`mlx5_core.sf.2` → "2"), "" if none."""
    match = re.search(r"/mlx5_core\.sf\.(\d{1,6})(?:/|\Z)", path)
    return match[1] if match else ""


def address_key(address: str) -> tuple[int, int, int, int]:
    """Orders addresses as numbers: domain 10000 comes after ffff."""
    match = ADDRESS.match(address)
    if match is None:
        raise ValueError(f"not a PCI address: {address!r}")
    domain, bus, device, function = match.groups()
    return int(domain, 16), int(bus, 16), int(device, 16), int(function)


def device_name(address: str) -> str:
    """`0101:00:00.0` is published as `pci-0101-00-00-0`, as DRANET does."""
    return "pci-" + address.replace(":", "-").replace(".", "-")
