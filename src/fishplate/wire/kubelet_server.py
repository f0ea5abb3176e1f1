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
from typing import TYPE_CHECKING, TypeVar

import msgspec
from google.protobuf.message import DecodeError

from fishplate.errors import FishplateError, OutsideError
from fishplate.wire import kubelet_codec as codec
from fishplate.wire.grpc_server import GrpcServer, Streaming, Unary
from fishplate.wire.kubelet import Prepared
from fishplate.wire.proto import dra_pb2, health_pb2, registration_pb2
from fishplate.wire.sockets import SocketFile, SocketPaths, plan_socket_paths
from fishplate.wire.ttrpc import Code, StatusError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from google.protobuf.message import Message

    from fishplate.wire.grpc_server import Method
    from fishplate.wire.kubelet import ClaimRef, DraHandler

__all__ = ["KubeletServer", "Registration", "RegistrationPhase", "SocketPaths", "plan_socket_paths"]

log = logging.getLogger(__name__)

_Asked = TypeVar("_Asked")


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
        self._servers: list[GrpcServer] = []
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
            await self._listen(self._service_file, self._service_methods())
            await self._listen(self._registration_file, self._registration_methods())
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

    async def _listen(self, file: SocketFile, methods: Mapping[str, Method]) -> None:
        file.prepare()
        server = GrpcServer(methods)
        try:
            await server.listen(file.hidden)
        except OSError as error:
            raise OutsideError(f"cannot listen: {error}", where=str(file.path)) from error
        self._servers.append(server)
        file.show()

    def _service_methods(self) -> dict[str, Method]:
        methods: dict[str, Method] = {}
        for name in codec.DRA_SERVICES.values():
            methods[f"/{name}/NodePrepareResources"] = _unary(
                dra_pb2.NodePrepareResourcesRequest.FromString, self._prepare
            )
            methods[f"/{name}/NodeUnprepareResources"] = _unary(
                dra_pb2.NodeUnprepareResourcesRequest.FromString, self._unprepare
            )
        if self._health:
            for name in codec.HEALTH_SERVICES.values():
                methods[f"/{name}/NodeWatchResources"] = Streaming(self._watch)
        return methods

    def _registration_methods(self) -> dict[str, Method]:
        return {
            f"/{codec.REGISTRATION}/GetInfo": _unary(registration_pb2.InfoRequest.FromString, self._get_info),
            f"/{codec.REGISTRATION}/NotifyRegistrationStatus": _unary(
                registration_pb2.RegistrationStatus.FromString, self._notify
            ),
        }

    async def _get_info(self, request: registration_pb2.InfoRequest) -> registration_pb2.PluginInfo:
        return registration_pb2.PluginInfo(
            type=codec.PLUGIN_TYPE,
            name=self._driver,
            endpoint=str(self._service_file.path),
            supported_versions=[*codec.DRA_SERVICES, *(codec.HEALTH_SERVICES if self._health else ())],
        )

    async def _notify(
        self, request: registration_pb2.RegistrationStatus
    ) -> registration_pb2.RegistrationStatusResponse:
        phase = RegistrationPhase.REGISTERED if request.plugin_registered else RegistrationPhase.REFUSED
        if phase is RegistrationPhase.REFUSED:
            log.error("the kubelet refused to register %s: %s", self._driver, request.error)
        self._change(phase=phase, error=request.error, notifications=self._registration.notifications + 1)
        return registration_pb2.RegistrationStatusResponse()

    async def _prepare(self, request: dra_pb2.NodePrepareResourcesRequest) -> dra_pb2.NodePrepareResourcesResponse:
        claims = codec.read_claims(request.claims)
        try:
            given = await self._handler.prepare(claims)
        except Exception as error:
            reason = _describe("preparing", claims, error)
            return codec.write_prepared({claim.uid: Prepared(error=reason) for claim in claims})
        missing = Prepared(error="the driver gave no answer for this claim")
        return codec.write_prepared({claim.uid: given.get(claim.uid, missing) for claim in claims})

    async def _unprepare(
        self, request: dra_pb2.NodeUnprepareResourcesRequest
    ) -> dra_pb2.NodeUnprepareResourcesResponse:
        claims = codec.read_claims(request.claims)
        try:
            given = await self._handler.unprepare(claims)
        except Exception as error:
            reason = _describe("unpreparing", claims, error)
            return codec.write_unprepared({claim.uid: reason for claim in claims})
        missing = "the driver gave no answer for this claim"
        return codec.write_unprepared({claim.uid: given.get(claim.uid, missing) for claim in claims})

    async def _watch(self, request: bytes) -> AsyncGenerator[bytes, None]:
        _read(health_pb2.NodeWatchResourcesRequest.FromString, request)
        watch = self._handler.watch_health()
        try:
            async for devices in watch:
                yield codec.write_health(devices).SerializeToString()
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


def _read(parse: Callable[[bytes], _Asked], request: bytes) -> _Asked:
    try:
        return parse(request)
    except DecodeError as error:
        raise StatusError(Code.INTERNAL, f"the request cannot be read: {error}") from error


def _unary(parse: Callable[[bytes], _Asked], handler: Callable[[_Asked], Awaitable[Message]]) -> Unary:
    async def serve(request: bytes) -> bytes:
        return (await handler(_read(parse, request))).SerializeToString()

    return Unary(serve)


def _describe(doing: str, claims: Sequence[ClaimRef], error: Exception) -> str:
    if isinstance(error, FishplateError):
        return str(error)
    log.error("%s %s failed", doing, ", ".join(map(str, claims)), exc_info=error)
    return f"internal error: {type(error).__name__}: {error}"
