"""Signatures first; the body follows."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fishplate.wire.nri import PluginHandler, RuntimeInfo, Update


class Phase(enum.Enum):
    DISCONNECTED = "disconnected"
    CONNECTED = "connected"
    REGISTERED = "registered"
    SYNCHRONISED = "synchronised"
    STOPPED = "stopped"


class PluginState(msgspec.Struct, frozen=True, kw_only=True):
    """Where the plugin stands. Ready means SYNCHRONISED."""

    phase: Phase
    since: float  # of the plugin's clock
    attempts: int = 0  # connections tried since the last SYNCHRONISED
    connections: int = 0  # times SYNCHRONISED was reached
    error: str = ""  # why the last connection ended
    runtime: RuntimeInfo | None = None


class Plugin:
    """Connects, registers, serves `handler`; after any end of the connection, again, for ever.

    plugin = Plugin(handler, name="fishplate", index="10", socket="/var/run/nri/nri.sock")
    async with asyncio.TaskGroup() as group:
        group.create_task(plugin.run())   # returns after stop()
        await plugin.wait_until(Phase.SYNCHRONISED)
    """

    def __init__(
        self,
        handler: PluginHandler,
        *,
        name: str,
        index: str,
        socket: str,
        on_change: Callable[[PluginState], None] | None = None,
    ) -> None:
        raise NotImplementedError

    @property
    def state(self) -> PluginState:
        raise NotImplementedError

    async def run(self) -> None:
        raise NotImplementedError

    async def wait_until(self, phase: Phase) -> PluginState:
        raise NotImplementedError

    async def update_containers(self, updates: Sequence[Update]) -> Sequence[Update]:
        """Unsolicited updates; returns those that failed. Not from within a handler."""
        raise NotImplementedError

    async def stop(self) -> None:
        raise NotImplementedError
