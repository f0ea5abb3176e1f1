"""What a provider may say: names and values that the API takes, and none that speak over what was measured here.

One attribute that the API server refuses would cost the whole slice, and a webhook that claims `dra.net/rdma` for a
device without RDMA would send pods to it. Such attributes are left out, with a reason, and the others kept.
"""

import hashlib
import re
from collections.abc import Mapping

from fishplate.errors import InputError
from fishplate.k8s.resource import MAX_ATTRIBUTES_PER_DEVICE, MAX_STRING_BYTES
from fishplate.k8s.semver import parse_semver
from fishplate.topology.attributes import Value, Version

_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_MOST_DOMAIN, _MOST_IDENTIFIER = 63, 32  # resource.k8s.io/v1: DeviceMaxDomainLength, DeviceMaxIDLength
_INT64 = range(-(2**63), 2**63)
_HASHED = 16

# What the driver measures itself (topology/attributes.py); no provider has a say in these.
MEASURED = frozenset(
    "dra.net/" + name
    for names in (
        ("ifName", "mac", "mtu", "encapsulation", "alias", "state", "type", "ipv4", "ipv6", "virtual"),
        ("ebpf", "tcFilterNames", "tcxProgramNames", "sriov", "sriovVfs", "isSriovVf"),
        ("pciAddress", "pciVendor", "pciDevice", "pciSubsystem", "numaNode", "pairedGpu", "rail"),
        ("rdma", "rdmaDevice", "nodeGuid", "firmware", "ports", "linkLayer", "portState", "rateGbps", "portGuid"),
        ("lid", "pkey"),
    )
    for name in names
)
# Standard names must stay true, and those of GPU drivers are matched against the GPUs' own.
_FOREIGN_DOMAINS = ("resource.kubernetes.io", "gpu.nvidia.com", "gpu.amd.com")


def find_name_problem(name: str) -> str:
    """Why the API or the driver refuses this name, "" if neither does."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        return "has no domain; write it as example.com/name"
    if len(domain) > _MOST_DOMAIN or not _DOMAIN.match(domain):
        return f"has a domain that is no DNS name of at most {_MOST_DOMAIN} characters"
    if len(identifier) > _MOST_IDENTIFIER or not _IDENTIFIER.match(identifier):
        return f"does not end in an identifier (letters, digits, _) of at most {_MOST_IDENTIFIER} characters"
    if name in MEASURED or domain in _FOREIGN_DOMAINS:
        return "is measured on the node itself and cannot be set"
    return ""


def find_value_problem(value: object) -> str:
    if isinstance(value, bool):
        return ""
    if isinstance(value, int):
        return "" if value in _INT64 else "is no 64-bit integer"
    if not isinstance(value, str):
        return f"is neither string, integer nor boolean but {type(value).__name__}"
    if len(value.encode("utf-8", "surrogatepass")) > MAX_STRING_BYTES:
        return f"is longer than {MAX_STRING_BYTES} bytes"
    if any(char < " " or "\ud800" <= char <= "\udfff" for char in value):
        return "has control characters in it"
    if isinstance(value, Version):
        try:
            parse_semver(str(value))
        except InputError as error:
            return f"is no semantic version: {error.what}"
    return ""


def sift(values: Mapping[str, object], *, whose: str = "") -> tuple[dict[str, Value], list[str]]:
    """The attributes that can be published, sorted, and why the others cannot."""
    kept: dict[str, Value] = {}
    ignored: list[str] = []
    prefix = f"{whose}: " if whose else ""
    for name in sorted(values):
        value = values[name]
        problem = find_name_problem(name) or find_value_problem(value)
        if not problem and len(kept) >= MAX_ATTRIBUTES_PER_DEVICE:
            problem = f"is one more than the {MAX_ATTRIBUTES_PER_DEVICE} that a device may have"
        if problem:
            ignored.append(f"{prefix}{name[:100]!r} {problem}")
        else:
            assert isinstance(value, bool | int | str)
            kept[name] = value
    return kept, ignored


def shorten(text: str) -> str:
    """At most 64 bytes. A long identifier keeps its start and gets a digest: cut off, two of them could become equal,
    and pods would be sent to nodes that share nothing."""
    if len(text.encode()) <= MAX_STRING_BYTES:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASHED]
    head = text.encode()[: MAX_STRING_BYTES - _HASHED - 1].decode(errors="ignore")
    return f"{head}~{digest}"
