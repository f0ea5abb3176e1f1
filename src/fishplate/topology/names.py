"""Names that Kubernetes accepts for devices that have none of their own."""

import base64
import re

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")


def interface_device_name(interface: str) -> str:
    """An interface without a PCI device is published under its own name where that is a DNS label, as DRANET does.
    One that looks like a name of ours is encoded too, so that no two devices ever share a name."""
    if _DNS_LABEL.match(interface) and not interface.startswith(("net-", "pci-")):
        return interface
    encoded = base64.b32encode(interface.encode()).decode().rstrip("=").lower()
    return f"net-{encoded}"


def is_dns_label(text: str) -> bool:
    return _DNS_LABEL.match(text) is not None


def is_dns_subdomain(text: str, *, limit: int = 253) -> bool:
    """What Kubernetes takes as the name of a node, a pool or a driver."""
    return 0 < len(text) <= limit and all(_DNS_LABEL.match(label) for label in text.split("."))
