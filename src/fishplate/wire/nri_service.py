"""The plugin's service, without I/O: a method's name and bytes become a call of the handler, its result becomes bytes.

Runtimes before NRI v0.12 send most events as StateChange, later ones as methods of their own, and fall back to
StateChange where one is unimplemented; both are here. One `PluginService` lives as long as its connection, so that half
of a split Synchronize is forgotten with it.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, TypeVar

from fishplate.errors import OutsideError
from fishplate.wire import nri_codec as codec
from fishplate.wire.nri import Adjustment, Container, Event, Pod, RuntimeInfo, Update
from fishplate.wire.nri_versions import infer_nri_version, plan_events
from fishplate.wire.proto import nri_pb2 as pb
from fishplate.wire.ttrpc import Code, Request, Served, StatusError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fishplate.wire.nri import PluginHandler

PLUGIN = "nri.pkg.api.v1alpha1.Plugin"
RUNTIME = "nri.pkg.api.v1alpha1.Runtime"

# All the pods and containers of a node, over all pieces of a split Synchronize: 16 messages of the largest size.
MAX_SYNCHRONIZE = 64 << 20

# Every event that has a method of its own, by the method's name, which is the event's in camel case.
EVENT_METHODS = {
    "".join(part.capitalize() for part in event.name.split("_")): event for event in Event if event.name is not None
}
POD_EVENTS = (
    Event.RUN_POD_SANDBOX
    | Event.STOP_POD_SANDBOX
    | Event.REMOVE_POD_SANDBOX
    | Event.UPDATE_POD_SANDBOX
    | Event.POST_UPDATE_POD_SANDBOX
)
# What StateChange may tell of, by NRI's number. CreateContainer has always had a method of its own.
_BY_NUMBER = {event.bit_length(): event for event in Event if event is not Event.CREATE_CONTAINER}

_T = TypeVar("_T")


class PluginService:
    """Serves one connection. `on_configured` and `on_synchronised` tell of progress once the handler agreed to it."""

    def __init__(
        self,
        handler: PluginHandler,
        *,
        on_configured: Callable[[RuntimeInfo], None],
        on_synchronised: Callable[[], None],
    ) -> None:
        self._handler = handler
        self._on_configured = on_configured
        self._on_synchronised = on_synchronised
        self._pods: list[Pod] = []
        self._containers: list[Container] = []
        self._synchronize_bytes = 0
        self._methods: dict[str, Callable[[bytes], Served]] = {
            "Configure": self._configure,
            "Synchronize": self._synchronize,
            "Shutdown": lambda _: b"",  # the connection is closed next
            "StateChange": self._state_change,
            "CreateContainer": self._create_container,
        }

    def serve(self, request: Request) -> Served:
        if request.service != PLUGIN:
            raise StatusError(Code.UNIMPLEMENTED, f"service {request.service}")
        method = self._methods.get(request.method)
        if method is not None:
            return method(request.payload)
        event = EVENT_METHODS.get(request.method)
        if event is None:
            raise StatusError(Code.UNIMPLEMENTED, f"method {request.method}")
        return self._own_method(event, request.payload)

    def _configure(self, payload: bytes) -> bytes:
        request = codec.parse(pb.ConfigureRequest, payload)
        nri = infer_nri_version(request.runtime_name, request.runtime_version, request.nri_version)
        runtime = RuntimeInfo(
            name=request.runtime_name,
            version=request.runtime_version,
            nri_version=nri,
            config=request.config,
            request_timeout=request.request_timeout / 1000 if request.request_timeout > 0 else 2.0,
            registration_timeout=request.registration_timeout / 1000 if request.registration_timeout > 0 else 5.0,
        )
        events = plan_events(self._handler.events, nri)
        if not events:
            # An empty mask would subscribe to everything there is.
            raise OutsideError(
                f"{runtime.name} {runtime.version} knows none of the events wanted", remedy="update the runtime"
            )
        self._handler.configure(runtime)
        self._on_configured(runtime)
        return pb.ConfigureResponse(events=events).SerializeToString()

    def _synchronize(self, payload: bytes) -> Served:
        self._synchronize_bytes += len(payload)
        if self._synchronize_bytes > MAX_SYNCHRONIZE:
            self._pods, self._containers = [], []
            raise StatusError(Code.RESOURCE_EXHAUSTED, f"more than {MAX_SYNCHRONIZE} bytes of pods and containers")
        request = codec.parse(pb.SynchronizeRequest, payload)
        self._pods += map(codec.read_pod, request.pods)
        self._containers += map(codec.read_container, request.containers)
        if request.more:
            # To say anything else than "go on" here has the runtime take us for unable to receive in pieces.
            return pb.SynchronizeResponse(more=True).SerializeToString()
        pods, self._pods = self._pods, []
        containers, self._containers = self._containers, []
        self._synchronize_bytes = 0
        return _then(self._handler.synchronize(pods, containers), self._synchronised)

    def _synchronised(self, updates: Sequence[Update]) -> bytes:
        answer = pb.SynchronizeResponse(update=map(codec.write_update, updates)).SerializeToString()
        self._on_synchronised()
        return answer

    def _create_container(self, payload: bytes) -> Served:
        request = codec.parse(pb.ContainerRequest, payload)
        pod, container = codec.read_pod(request.pod), codec.read_container(request.container)
        return _then(self._handler.create_container(pod, container), _write_adjustment)

    def _own_method(self, event: Event, payload: bytes) -> Served:
        if event & POD_EVENTS:
            return self._event(event, codec.read_pod(codec.parse(pb.PodRequest, payload).pod), None)
        request = codec.parse(pb.ContainerRequest, payload)
        return self._event(event, codec.read_pod(request.pod), codec.read_container(request.container))

    def _state_change(self, payload: bytes) -> Served:
        request = codec.parse(pb.StateChangeEvent, payload)
        event = _BY_NUMBER.get(request.event)
        if event is None:
            return b""  # an event of a later NRI; nothing was promised for it
        container = codec.read_container(request.container) if request.HasField("container") else None
        return self._event(event, codec.read_pod(request.pod), container)

    def _event(self, event: Event, pod: Pod, container: Container | None) -> Served:
        handler = self._handler
        match event:
            case Event.RUN_POD_SANDBOX:
                result = handler.run_pod_sandbox(pod)
            case Event.STOP_POD_SANDBOX:
                result = handler.stop_pod_sandbox(pod)
            case Event.REMOVE_POD_SANDBOX:
                result = handler.remove_pod_sandbox(pod)
            case _:
                result = handler.other_event(event, pod, container)
        return _then(result, lambda _: b"")


def _write_adjustment(adjustment: Adjustment) -> bytes:
    return pb.CreateContainerResponse(adjust=codec.write_adjustment(adjustment)).SerializeToString()


def _then(result: _T | Awaitable[_T], encode: Callable[[_T], bytes]) -> Served:
    if inspect.isawaitable(result):
        return _encode_later(result, encode)
    return encode(result)


async def _encode_later(result: Awaitable[_T], encode: Callable[[_T], bytes]) -> bytes:
    return encode(await result)
