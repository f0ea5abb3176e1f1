"""What the kubelet and a DRA driver say to each other, as plain values, and the interface a driver implements.

From k8s.io/kubelet (pkg/apis/dra, dra-health, pluginregistration), Kubernetes 1.34 to 1.37. The versions v1 and v1beta1
(and v1 and v1alpha1 of health) have the same messages under different service names.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence


class ClaimRef(msgspec.Struct, frozen=True, kw_only=True):
    """All that the kubelet tells of a claim. The driver fetches the object itself and compares the UID."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PreparedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device handed over. `requests` are base names (no `/subrequest`); empty means every request of the claim."""

    pool: str
    device: str
    requests: tuple[str, ...] = ()
    cdi_device_ids: tuple[str, ...] = ()
    share_id: str | None = None


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one claim: its devices, or why not."""

    devices: tuple[PreparedDevice, ...] = ()
    error: str = ""


class Health(enum.IntEnum):
    UNKNOWN = 0
    HEALTHY = 1
    UNHEALTHY = 2


class DeviceHealth(msgspec.Struct, frozen=True, kw_only=True):
    pool: str
    device: str
    health: Health
    last_updated: int  # seconds since the epoch
    timeout_s: int = 0  # the kubelet takes an older entry for unknown; 0 means its own 30 s (1.35+)
    message: str = ""  # up to 1024 bytes (1.36+)


class DraHandler(Protocol):
    """What the driver implements. Calls may overlap; each must be safe to repeat (the kubelet does, after restarts).

    A claim without an entry in the answer, and every claim of a call that raised, is answered with an error: the
    kubelet then tries again later. Entries nobody asked for are dropped.
    """

    async def prepare(self, claims: Sequence[ClaimRef]) -> Mapping[str, Prepared]:
        """Answers by claim UID. The kubelet waits 45 s."""

    async def unprepare(self, claims: Sequence[ClaimRef]) -> Mapping[str, str]:
        """Errors by claim UID, empty for success. An unknown UID is a success: the claim may be long gone."""

    def watch_health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        """All devices at once, again and again, now and on every change; one iterator per watching kubelet."""
