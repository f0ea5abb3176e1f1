"""Names that Kubernetes accepts for devices that have none of their own."""

import base64
import re

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")


def interface_device_name(interface: str) -> str:
    """An interface without a PCI device is published under its own name where that is a DNS label, as DRANET does."""
    if _DNS_LABEL.match(interface):
        return interface
    encoded = base64.b32encode(interface.encode()).decode().rstrip("=").lower()
    return f"net-{encoded}"


def is_dns_label(text: str) -> bool:
    return _DNS_LABEL.match(text) is not None
