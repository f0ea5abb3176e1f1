"""The runtime's end of NRI: takes plugins in, one by one, and relays events to them in the order of their index.

For the simulation and for tests. It behaves as containerd's adaptation does where a driver can tell the difference:
what a plugin refuses is refused, and a plugin that does not answer in time is dropped and the event goes on without it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec

from fishplate.errors import OutsideError
from fishplate.wire import mux
from fishplate.wire import nri_codec as codec
from fishplate.wire.nri import Adjustment, Container, Event, Pod, Update
from fishplate.wire.nri_service import EVENT_METHODS, PLUGIN, POD_EVENTS, RUNTIME
from fishplate.wire.proto import nri_pb2 as pb
from fishplate.wire.sockets import remove_stale_socket
from fishplate.wire.trunk import Trunk
from fishplate.wire.ttrpc import MAX_LENGTH, Code, Request, StatusError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

log = logging.getLogger(__name__)

_METHODS = {event: name for name, event in EVENT_METHODS.items()}
# Methods that every NRI has; before v0.12 all other events went through StateChange.
_ALWAYS_OWN = Event.CREATE_CONTAINER | Event.UPDATE_CONTAINER | Event.STOP_CONTAINER | Event.UPDATE_POD_SANDBOX

World = tuple["Sequence[Pod]", "Sequence[Container]"]


class RuntimeOptions(msgspec.Struct, frozen=True, kw_only=True):
    name: str = "containerd"
    version: str = "v2.3.0"
    nri_version: str = "v0.12.2"  # empty: a runtime before v0.12, which sends StateChange
    request_timeout: float = 2.0
    registration_timeout: float = 5.0
    message_limit: int = MAX_LENGTH - (64 << 10)  # a larger Synchronize is split


class ConnectedPlugin:
    """A plugin as the runtime sees it."""

    def __init__(self, options: RuntimeOptions, on_update: Callable[[Sequence[Update]], Sequence[Update]]) -> None:
        self.name = ""
        self.events = Event(0)
        self.closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._options = options
        self._on_update = on_update
        self._registered = asyncio.Event()
        self.trunk = Trunk(
            serves_on=mux.RUNTIME_SERVICE,
            asks_on=mux.PLUGIN_SERVICE,
            serve=self._serve,
            on_lost=lambda reason: None if self.closed.done() else self.closed.set_result(reason),
        )

    def _serve(self, request: Request) -> bytes:
        if request.service != RUNTIME:
            raise StatusError(Code.UNIMPLEMENTED, f"service {request.service}")
        if request.method == "RegisterPlugin":
            told = codec.parse(pb.RegisterPluginRequest, request.payload)
            self.name = f"{told.plugin_idx}-{told.plugin_name}"
            self._registered.set()
            return b""
        if request.method == "UpdateContainers":
            wanted = codec.parse(pb.UpdateContainersRequest, request.payload)
            failed = self._on_update([codec.read_update(one) for one in wanted.update])
            return pb.UpdateContainersResponse(failed=map(codec.write_update, failed)).SerializeToString()
        raise StatusError(Code.UNIMPLEMENTED, f"method {request.method}")

    async def admit(self, world: World) -> Sequence[Update]:
        """Registration, Configure, Synchronize; OutsideError if the plugin fails at any of them."""
        try:
            async with asyncio.timeout(self._options.registration_timeout):
                await self._registered.wait()
        except TimeoutError:
            raise OutsideError("plugin registration timed out") from None
        await self._configure()
        return await self._synchronize(world)

    async def _configure(self) -> None:
        options = self._options
        request = pb.ConfigureRequest(
            runtime_name=options.name,
            runtime_version=options.version,
            registration_timeout=round(options.registration_timeout * 1000),
            request_timeout=round(options.request_timeout * 1000),
            nri_version=options.nri_version,
        )
        answer = codec.parse(pb.ConfigureResponse, await self.call("Configure", request.SerializeToString()))
        known = int(Event(0x1FFF)) if options.nri_version else 0x7FF
        if answer.events & ~known:
            raise OutsideError(f"invalid plugin events: {answer.events & ~known:#x}")
        self.events = Event(answer.events or known)

    async def _synchronize(self, world: World) -> Sequence[Update]:
        pieces = list(_split(world, self._options.message_limit))
        for index, piece in enumerate(pieces):
            piece.more = index + 1 < len(pieces)
            answer = codec.parse(pb.SynchronizeResponse, await self.call("Synchronize", piece.SerializeToString()))
            if piece.more and (answer.update or not answer.more):
                raise OutsideError("plugin does not handle split sync requests")
        return [codec.read_update(one) for one in answer.update]

    async def call(self, method: str, payload: bytes) -> bytes:
        return await self.trunk.call(PLUGIN, method, payload, timeout=self._options.request_timeout)

    async def send(self, event: Event, pod: Pod, container: Container | None) -> bytes:
        if self._options.nri_version or event & _ALWAYS_OWN:
            return await self.call(_METHODS[event], _event_payload(event, pod, container))
        change = pb.StateChangeEvent(event=int(event).bit_length(), pod=codec.write_pod(pod))
        if container is not None:
            change.container.CopyFrom(codec.write_container(container))
        return await self.call("StateChange", change.SerializeToString())


class Runtime:
    """Listens on `socket`. `world` is asked for what exists whenever a plugin comes."""

    def __init__(
        self,
        socket: Path,
        *,
        world: Callable[[], World] = lambda: ((), ()),
        on_update: Callable[[Sequence[Update]], Sequence[Update]] = lambda _: (),
        options: RuntimeOptions | None = None,
    ) -> None:
        self._socket = socket
        self._world = world
        self._on_update = on_update
        self._options = options or RuntimeOptions()
        self._plugins: list[ConnectedPlugin] = []
        self._server: asyncio.Server | None = None
        self._kept: set[asyncio.Task[None]] = set()
        self._one_by_one = asyncio.Lock()
        self._changed = asyncio.Event()
        self.refused: list[str] = []  # why plugins were turned away

    @property
    def plugins(self) -> tuple[ConnectedPlugin, ...]:
        return tuple(self._plugins)

    async def __aenter__(self) -> Runtime:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        remove_stale_socket(self._socket)
        self._server = await asyncio.get_running_loop().create_unix_server(self._accept, str(self._socket))
        self._socket.chmod(0o600)

    async def stop(self) -> None:
        """As a runtime that ends: sockets closed, nothing said."""
        if self._server is not None:
            self._server.close()
        for task in self._kept:
            task.cancel()
        await asyncio.gather(*self._kept, return_exceptions=True)
        self._socket.unlink(missing_ok=True)

    async def wait_for_plugins(self, count: int) -> tuple[ConnectedPlugin, ...]:
        while len(self._plugins) != count:
            await self._changed.wait()
        return self.plugins

    async def run_pod_sandbox(self, pod: Pod) -> None:
        await self.send(Event.RUN_POD_SANDBOX, pod, None)

    async def stop_pod_sandbox(self, pod: Pod) -> None:
        await self.send(Event.STOP_POD_SANDBOX, pod, None)

    async def remove_pod_sandbox(self, pod: Pod) -> None:
        await self.send(Event.REMOVE_POD_SANDBOX, pod, None)

    async def create_container(self, pod: Pod, container: Container) -> tuple[Adjustment, ...]:
        """What each plugin wants changed, in the order of their index."""
        answers = await self.send(Event.CREATE_CONTAINER, pod, container)
        return tuple(codec.read_adjustment(codec.parse(pb.CreateContainerResponse, one).adjust) for one in answers)

    async def send(self, event: Event, pod: Pod, container: Container | None) -> list[bytes]:
        """Relay to every plugin that subscribed. StatusError: one refused. One that fails to answer is dropped."""
        answers = []
        for plugin in self.plugins:
            if not plugin.events & event:
                continue
            try:
                answers.append(await plugin.send(event, pod, container))
            except StatusError:
                raise
            except OutsideError as error:
                plugin.trunk.close(str(error))
        return answers

    def _accept(self) -> asyncio.Protocol:
        plugin = ConnectedPlugin(self._options, self._on_update)
        task = asyncio.get_running_loop().create_task(self._keep(plugin))
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)
        return plugin.trunk

    async def _keep(self, plugin: ConnectedPlugin) -> None:
        try:
            async with self._one_by_one:
                self._on_update(await plugin.admit(self._world()))
            self._plugins = sorted([*self._plugins, plugin], key=lambda one: one.name)
            self._note_change()
            await plugin.closed
        except OutsideError as error:
            self.refused.append(str(error))
        finally:
            plugin.trunk.close("the runtime stops")
            self._plugins = [one for one in self._plugins if one is not plugin]
            self._note_change()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _event_payload(event: Event, pod: Pod, container: Container | None) -> bytes:
    if event & POD_EVENTS or container is None:
        return pb.PodRequest(pod=codec.write_pod(pod)).SerializeToString()
    request = pb.ContainerRequest(pod=codec.write_pod(pod), container=codec.write_container(container))
    return request.SerializeToString()


def _split(world: World, limit: int) -> list[pb.SynchronizeRequest]:
    """Pods, then containers, in messages of at most `limit` bytes; one message at least."""
    pieces, size = [pb.SynchronizeRequest()], 0

    def make_room(length: int) -> pb.SynchronizeRequest:
        nonlocal size
        if size and size + length > limit:
            pieces.append(pb.SynchronizeRequest())
            size = 0
        size += length
        return pieces[-1]

    # Each costs its own size and a few bytes for its tag and length.
    for pod in map(codec.write_pod, world[0]):
        make_room(pod.ByteSize() + 8).pods.append(pod)
    for container in map(codec.write_container, world[1]):
        make_room(container.ByteSize() + 8).containers.append(container)
    return pieces
