"""The plugin's end of NRI: connects to the runtime's socket, registers, serves a handler, and connects again for ever.

The order is the protocol's (containerd/nri, pkg/stub/stub.go): the plugin's own service answers before anything is
sent, then RegisterPlugin; the runtime then calls Configure and Synchronize, and only after that sends events. Configure
may come before the answer to RegisterPlugin, since the two travel on different streams.

Reconnecting is not part of the protocol: a runtime that restarts closes the socket and has forgotten us. Nothing is
remembered here either; what happened meanwhile is told by the next Synchronize. There is no last attempt: a driver
without its runtime is useless, so it waits, and says so in `state`.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import random
import re
import time
from typing import TYPE_CHECKING

import msgspec

from fishplate.errors import InputError, OutsideError
from fishplate.wire import mux
from fishplate.wire import nri_codec as codec
from fishplate.wire.backoff import Backoff
from fishplate.wire.nri_service import RUNTIME, PluginService
from fishplate.wire.proto import nri_pb2 as pb
from fishplate.wire.trunk import Trunk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fishplate.wire.nri import PluginHandler, RuntimeInfo, Update

log = logging.getLogger(__name__)

NRI_VERSION = "v0.12.2"  # what we tell of ourselves: the version that nri.proto follows
FIRST_WAIT = 0.1  # seconds; a socket that is not there costs nothing to try
LONGEST_WAIT = 1.0  # a pod that starts meanwhile is seen by nobody
# Runtimes take plugins in one by one, and a hanging one holds up the others for 7 s; so we wait longer than that.
SETTLE = 30.0

_NAME = re.compile(r"[a-zA-Z0-9_.+-]+")
_INDEX = re.compile(r"[0-9][0-9]")


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
    error: str = ""  # why the last connection ended, or could not be made
    runtime: RuntimeInfo | None = None


class Plugin:
    """One plugin at one runtime's socket.

    plugin = Plugin(handler, name="fishplate", index="10", socket="/var/run/nri/nri.sock")
    async with asyncio.TaskGroup() as group:
        group.create_task(plugin.run())  # returns after stop()
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
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        if not _NAME.fullmatch(name):
            raise InputError(f"a plugin cannot be called {name!r}", remedy="use letters, digits and _ . + -")
        if not _INDEX.fullmatch(index):
            raise InputError(f"a plugin's index cannot be {index!r}", remedy="write two digits, 00 to 99")
        self._handler = handler
        self._name = name
        self._index = index
        self._socket = socket
        self._on_change = on_change
        self._clock = clock
        self._backoff = Backoff(draw, first=FIRST_WAIT, cap=LONGEST_WAIT)
        self._state = PluginState(phase=Phase.DISCONNECTED, since=clock())
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._trunk: Trunk | None = None
        self._running = False

    @property
    def state(self) -> PluginState:
        return self._state

    async def wait_until(self, phase: Phase) -> PluginState:
        while self._state.phase is not phase:
            await self._changed.wait()
        return self._state

    async def run(self) -> None:
        """Until `stop`. Raises nothing for whatever the runtime does."""
        self._running = True
        try:
            while not self._stopping.is_set():
                self._change(attempts=self._state.attempts + 1)
                reason = await self._connect()
                log.info("NRI connection to %s ended: %s", self._socket, reason)
                if self._state.phase is Phase.SYNCHRONISED and self._clock() - self._state.since > LONGEST_WAIT:
                    self._backoff.reset()
                self._change(phase=Phase.DISCONNECTED, error=reason, runtime=None)
                await self._pause(self._backoff.next())
        finally:
            self._running = False
            self._change(phase=Phase.STOPPED, runtime=None)

    async def stop(self) -> None:
        """Close the connection, for good; answers already written are still sent. Returns when `run` does."""
        self._stopping.set()
        if self._trunk is not None:
            self._trunk.close("the plugin stops")
        if self._running:
            await self.wait_until(Phase.STOPPED)

    async def update_containers(self, updates: Sequence[Update]) -> Sequence[Update]:
        """Unsolicited updates; returns those that failed. Not from within a handler: the runtime would wait for us."""
        if self._trunk is None:
            raise OutsideError("no runtime is connected", where=self._socket)
        request = pb.UpdateContainersRequest(update=map(codec.write_update, updates))
        answer = await self._trunk.call(RUNTIME, "UpdateContainers", request.SerializeToString(), timeout=SETTLE)
        return [codec.read_update(one) for one in codec.parse(pb.UpdateContainersResponse, answer).failed]

    async def _connect(self) -> str:
        """One connection from its beginning to its end; why it ended."""
        loop = asyncio.get_running_loop()
        lost: asyncio.Future[str] = loop.create_future()
        service = PluginService(self._handler, on_configured=self._configured, on_synchronised=self._synchronised)
        self._trunk = trunk = Trunk(
            serves_on=mux.PLUGIN_SERVICE,
            asks_on=mux.RUNTIME_SERVICE,
            serve=service.serve,
            on_lost=lambda reason: None if lost.done() else lost.set_result(reason),
        )
        timer = loop.call_later(SETTLE, self._give_up, trunk)
        try:
            return await self._live(trunk, lost)
        except OSError as error:
            return str(error)
        finally:
            timer.cancel()
            trunk.close("the plugin stops")
            self._trunk = None
            if self._state.runtime is not None:
                self._tell_disconnected(lost.result() if lost.done() and not lost.cancelled() else "the plugin stops")

    async def _live(self, trunk: Trunk, lost: asyncio.Future[str]) -> str:
        await asyncio.get_running_loop().create_unix_connection(lambda: trunk, self._socket)
        if self._stopping.is_set():  # stop() came while there was nothing to close
            trunk.close("the plugin stops")
            return await lost
        self._change(phase=Phase.CONNECTED)
        request = pb.RegisterPluginRequest(plugin_name=self._name, plugin_idx=self._index, nri_version=NRI_VERSION)
        try:
            await trunk.call(RUNTIME, "RegisterPlugin", request.SerializeToString(), timeout=SETTLE)
        except OutsideError as error:
            trunk.close(f"not registered: {error}")
        else:
            if self._state.phase is Phase.CONNECTED:  # Configure may have been faster
                self._change(phase=Phase.REGISTERED)
        return await lost

    def _configured(self, runtime: RuntimeInfo) -> None:
        if self._trunk is not None:
            self._trunk.patience = runtime.request_timeout
        self._change(phase=Phase.REGISTERED, runtime=runtime)

    def _synchronised(self) -> None:
        self._change(phase=Phase.SYNCHRONISED, attempts=0, connections=self._state.connections + 1, error="")

    def _give_up(self, trunk: Trunk) -> None:
        if self._state.phase is not Phase.SYNCHRONISED:
            trunk.close(f"the runtime did not take us in within {SETTLE:g} s")

    def _tell_disconnected(self, reason: str) -> None:
        try:
            self._handler.disconnected(reason)
        except Exception:
            log.exception("the handler failed to take note that the runtime is gone")

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            pass

    def _change(self, **fields: object) -> None:
        state = msgspec.structs.replace(self._state, **fields)
        if state.phase is not self._state.phase:
            state = msgspec.structs.replace(state, since=self._clock())
        self._state = state
        self._changed.set()
        self._changed = asyncio.Event()
        if self._on_change is not None:
            self._on_change(state)
