"""The facts as plain values, and what a provider of them is."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from fishplate.topology.attributes import Value

ProviderName = Literal["azure", "file", "webhook", "none"]
Attributes = Mapping[str, Value]


class DeviceId(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What tells one device from another, as DRANET's webhook has it. `name` is the interface's, if there is one."""

    mac: str = msgspec.field(default="", name="mac_address")
    pci_address: str = ""
    name: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """Under what a provider may know the device, the most telling last."""
        return tuple(filter(None, (self.name, normalise_mac(self.mac), self.pci_address.lower())))


class FactsState(msgspec.Struct, frozen=True, kw_only=True):
    """How far the facts can be trusted; for metrics, readiness and the log."""

    provider: ProviderName = "none"
    answered: bool = False  # there has been a good answer since the start
    age_seconds: float | None = None  # of that answer
    last_error: str = ""  # "" when the last attempt went well
    attempts: int = 0
    failures: int = 0
    ignored: tuple[str, ...] = ()  # parts of the last good answer that were refused, each with its reason


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`node` holds for every device of the node; `devices` are keyed by PCI address, MAC or interface name.

    `fabric` is what nodes must share to reach each other over RDMA, `nvlink_domain` what GPUs must share to reach each
    other over NVLink; both "" where nobody says.
    """

    node: Attributes = {}
    devices: Mapping[str, Attributes] = {}
    fabric: str = ""
    nvlink_domain: str = ""
    state: FactsState = FactsState()

    def of_device(self, device: DeviceId) -> dict[str, Value]:
        """The attributes of one device: the node's, and its own over them."""
        merged = dict(self.node)
        for key in device.keys:
            merged.update(self.devices.get(key, {}))
        return merged

    def says_the_same_as(self, other: "NodeFacts") -> bool:
        """Equal but for the state: what is published stays as it is."""
        return msgspec.structs.replace(self, state=other.state) == other


class Provider(Protocol):
    """`interval` is how long an answer stays good; `per_device` tells whether it depends on the devices asked about.
    `attributes` raises OutsideError when there is no answer to be had."""

    @property
    def name(self) -> ProviderName: ...

    @property
    def interval(self) -> float: ...

    @property
    def per_device(self) -> bool: ...

    async def attributes(self, devices: Sequence[DeviceId]) -> NodeFacts: ...


def normalise_mac(text: str) -> str:
    """Azure writes 0011AAFFBB22, Linux 00:11:aa:ff:bb:22; interface names stay what they are."""
    digits = text.replace(":", "").replace("-", "").lower()
    if len(digits) in (12, 40) and all(digit in "0123456789abcdef" for digit in digits):
        return ":".join(digits[index : index + 2] for index in range(0, len(digits), 2))
    return text


class NoProvider:
    """Nobody to ask."""

    name: ProviderName = "none"
    interval = 3600.0
    per_device = False

    async def attributes(self, devices: Sequence[DeviceId]) -> NodeFacts:
        return NodeFacts()
