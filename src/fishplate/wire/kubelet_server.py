"""The driver's end of the kubelet's wire: a service socket, and a registration socket that tells where it is.

The kubelet finds the registration socket in its plugin directory, asks GetInfo (it waits one second), connects to the
service socket, and tells the outcome by NotifyRegistrationStatus. So the service answers before the registration socket
appears, and disappears after it: the absence of the registration socket is what deregisters us.

What it promises to the kubelet whatever the handler does: exactly one entry for each claim asked for. An entry missing
or too many would make the kubelet fail the whole pod with a text that does not say why.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import msgspec

from fishplate.errors import FishplateError, OutsideError
from fishplate.wire import kubelet_codec as codec
from fishplate.wire.kubelet import Prepared
from fishplate.wire.proto import dra_pb2, health_pb2, registration_pb2
from fishplate.wire.sockets import SocketFile, SocketPaths, plan_socket_paths

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from fishplate.wire.kubelet import ClaimRef, DraHandler

    Method = grpc.RpcMethodHandler[Any, Any]

__all__ = ["KubeletServer", "Registration", "RegistrationPhase", "SocketPaths", "plan_socket_paths"]

log = logging.getLogger(__name__)

# The kubelet sends a pod's claims, some hundred bytes each. One process serves both versions: nobody else may listen.
_OPTIONS = [("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", 1 << 20)]


class RegistrationPhase(enum.Enum):
    WAITING = "waiting"  # the kubelet has not told yet
    REGISTERED = "registered"
    REFUSED = "refused"
    STOPPED = "stopped"


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    phase: RegistrationPhase
    since: float  # of the server's clock
    notifications: int = 0  # how often the kubelet told; more than one means that it restarted
    error: str = ""  # why the kubelet refused


class KubeletServer:
    """Both sockets.

    async with KubeletServer(handler, driver="dra.net", paths=paths) as server:
        await server.wait_until(RegistrationPhase.REGISTERED)
    """

    def __init__(
        self,
        handler: DraHandler,
        *,
        driver: str,
        paths: SocketPaths,
        health: bool = True,
        on_change: Callable[[Registration], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._handler = handler
        self._driver = driver
        self._health = health
        self._on_change = on_change
        self._clock = clock
        self._service_file = SocketFile(paths.service)
        self._registration_file = SocketFile(paths.registration)
        self._servers: list[grpc.aio.Server] = []
        self._registration = Registration(phase=RegistrationPhase.WAITING, since=clock())
        self._changed = asyncio.Event()

    @property
    def registration(self) -> Registration:
        return self._registration

    @property
    def is_reachable(self) -> bool:
        """Whether both socket files are there and ours. A file that somebody removed does not come back by itself."""
        return self._service_file.is_shown and self._registration_file.is_shown

    async def __aenter__(self) -> KubeletServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        try:
            await self._listen(self._service_file, self._service_handlers())
            await self._listen(self._registration_file, [self._registration_handler()])
        except BaseException:
            await self.stop(grace=0)
            raise

    async def stop(self, grace: float = 5.0) -> None:
        """Deregister first, then let calls under way finish within `grace` seconds."""
        self._registration_file.remove()
        for server in reversed(self._servers):
            await server.stop(grace)
        self._servers.clear()
        self._service_file.remove()
        self._change(phase=RegistrationPhase.STOPPED)

    async def wait_until(self, phase: RegistrationPhase) -> Registration:
        while self._registration.phase is not phase:
            await self._changed.wait()
        return self._registration

    async def _listen(self, file: SocketFile, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        file.prepare()
        server = grpc.aio.server(options=_OPTIONS)
        self._servers.append(server)
        server.add_generic_rpc_handlers(tuple(handlers))
        try:
            server.add_insecure_port(f"unix:{file.hidden}")
        except RuntimeError as error:
            raise OutsideError(f"cannot listen: {error}", where=str(file.path)) from error
        await server.start()
        file.show()

    def _service_handlers(self) -> list[grpc.GenericRpcHandler]:
        dra: dict[str, Method] = {
            "NodePrepareResources": grpc.unary_unary_rpc_method_handler(
                self._prepare,
                request_deserializer=dra_pb2.NodePrepareResourcesRequest.FromString,
                response_serializer=dra_pb2.NodePrepareResourcesResponse.SerializeToString,
            ),
            "NodeUnprepareResources": grpc.unary_unary_rpc_method_handler(
                self._unprepare,
                request_deserializer=dra_pb2.NodeUnprepareResourcesRequest.FromString,
                response_serializer=dra_pb2.NodeUnprepareResourcesResponse.SerializeToString,
            ),
        }
        watch: dict[str, Method] = {
            "NodeWatchResources": grpc.unary_stream_rpc_method_handler(
                self._watch,
                request_deserializer=health_pb2.NodeWatchResourcesRequest.FromString,
                response_serializer=health_pb2.NodeWatchResourcesResponse.SerializeToString,
            )
        }
        served = [grpc.method_handlers_generic_handler(name, dra) for name in codec.DRA_SERVICES.values()]
        if self._health:
            served += [grpc.method_handlers_generic_handler(name, watch) for name in codec.HEALTH_SERVICES.values()]
        return served

    def _registration_handler(self) -> grpc.GenericRpcHandler:
        methods: dict[str, Method] = {
            "GetInfo": grpc.unary_unary_rpc_method_handler(
                self._get_info,
                request_deserializer=registration_pb2.InfoRequest.FromString,
                response_serializer=registration_pb2.PluginInfo.SerializeToString,
            ),
            "NotifyRegistrationStatus": grpc.unary_unary_rpc_method_handler(
                self._notify,
                request_deserializer=registration_pb2.RegistrationStatus.FromString,
                response_serializer=registration_pb2.RegistrationStatusResponse.SerializeToString,
            ),
        }
        return grpc.method_handlers_generic_handler(codec.REGISTRATION, methods)

    async def _get_info(self, request: registration_pb2.InfoRequest, context: object) -> registration_pb2.PluginInfo:
        return registration_pb2.PluginInfo(
            type=codec.PLUGIN_TYPE,
            name=self._driver,
            endpoint=str(self._service_file.path),
            supported_versions=[*codec.DRA_SERVICES, *(codec.HEALTH_SERVICES if self._health else ())],
        )

    async def _notify(
        self, request: registration_pb2.RegistrationStatus, context: object
    ) -> registration_pb2.RegistrationStatusResponse:
        phase = RegistrationPhase.REGISTERED if request.plugin_registered else RegistrationPhase.REFUSED
        if phase is RegistrationPhase.REFUSED:
            log.error("the kubelet refused to register %s: %s", self._driver, request.error)
        self._change(phase=phase, error=request.error, notifications=self._registration.notifications + 1)
        return registration_pb2.RegistrationStatusResponse()

    async def _prepare(
        self, request: dra_pb2.NodePrepareResourcesRequest, context: object
    ) -> dra_pb2.NodePrepareResourcesResponse:
        claims = codec.read_claims(request.claims)
        try:
            given = await self._handler.prepare(claims)
        except Exception as error:
            reason = _describe("preparing", claims, error)
            return codec.write_prepared({claim.uid: Prepared(error=reason) for claim in claims})
        missing = Prepared(error="the driver gave no answer for this claim")
        return codec.write_prepared({claim.uid: given.get(claim.uid, missing) for claim in claims})

    async def _unprepare(
        self, request: dra_pb2.NodeUnprepareResourcesRequest, context: object
    ) -> dra_pb2.NodeUnprepareResourcesResponse:
        claims = codec.read_claims(request.claims)
        try:
            given = await self._handler.unprepare(claims)
        except Exception as error:
            reason = _describe("unpreparing", claims, error)
            return codec.write_unprepared({claim.uid: reason for claim in claims})
        missing = "the driver gave no answer for this claim"
        return codec.write_unprepared({claim.uid: given.get(claim.uid, missing) for claim in claims})

    async def _watch(
        self, request: health_pb2.NodeWatchResourcesRequest, context: object
    ) -> AsyncIterator[health_pb2.NodeWatchResourcesResponse]:
        watch = self._handler.watch_health()
        try:
            async for devices in watch:
                yield codec.write_health(devices)
        finally:
            # The kubelet is gone; a generator shall know now, and not when it is collected.
            if isinstance(watch, AsyncGenerator):
                await watch.aclose()

    def _change(self, **fields: object) -> None:
        self._registration = msgspec.structs.replace(self._registration, since=self._clock(), **fields)
        self._changed.set()
        self._changed = asyncio.Event()
        if self._on_change is not None:
            self._on_change(self._registration)


def _describe(doing: str, claims: Sequence[ClaimRef], error: Exception) -> str:
    if isinstance(error, FishplateError):
        return str(error)
    log.error("%s %s failed", doing, ", ".join(map(str, claims)), exc_info=error)
    return f"internal error: {type(error).__name__}: {error}"
