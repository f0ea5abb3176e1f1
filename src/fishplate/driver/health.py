"""Is each device well? Told to the kubelet, which shows it in the pod's status.

A device is well while its port is up. One that was published and is not found any more is not well; neither is one
whose port is down. Where the kernel does not say, nobody knows.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence

from fishplate.topology.inventory import Inventory, Nic
from fishplate.wire.kubelet import DeviceHealth, Health

_REPEAT_S = 60.0  # again, although nothing changed: the kubelet distrusts old news
_TRUST_S = 180  # and how old we let it get


class HealthBoard:
    """What the last scan says of each device; watchers are woken when it changes."""

    def __init__(self, pool: str, clock: Callable[[], float] = time.time) -> None:
        self._pool = pool
        self._clock = clock
        self._state: dict[str, tuple[Health, str]] = {}
        self._changed = asyncio.Event()

    def note(self, inventory: Inventory) -> None:
        state = {nic.id: judge_nic(nic) for nic in inventory.nics if nic.is_rdma and not nic.excluded}
        for device in self._state.keys() - state.keys():
            state[device] = (Health.UNHEALTHY, "the device is gone")
        if state != self._state:
            self._state = state
            self._changed.set()
            self._changed = asyncio.Event()

    def now(self) -> tuple[DeviceHealth, ...]:
        at = int(self._clock())
        return tuple(
            DeviceHealth(
                pool=self._pool, device=device, health=health, last_updated=at, timeout_s=_TRUST_S, message=why
            )
            for device, (health, why) in sorted(self._state.items())
        )

    async def watch(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        while True:
            changed = self._changed
            yield self.now()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_REPEAT_S):
                    await changed.wait()


def judge_nic(nic: Nic) -> tuple[Health, str]:
    ports = [(device.name, port) for device in nic.rdma for port in device.ports]
    down = [f"{name} port {port.number} is {port.state}" for name, port in ports if port.state not in ("ACTIVE", "")]
    if down and len(down) == len(ports):
        return Health.UNHEALTHY, "; ".join(down)
    if not ports or all(not port.state for _, port in ports):
        return Health.UNKNOWN, "the kernel does not tell the state of its port"
    return Health.HEALTHY, ""
