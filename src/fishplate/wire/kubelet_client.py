"""The kubelet's end of its wire, for the simulation and for tests: its questions, its order, its deadlines."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import grpc
import grpc.aio
import msgspec

from fishplate.errors import OutsideError
from fishplate.wire import kubelet_codec as codec
from fishplate.wire.proto import dra_pb2, health_pb2, registration_pb2

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from fishplate.wire.kubelet import ClaimRef, DeviceHealth, Prepared

# Seconds, from pkg/kubelet: pluginmanager and cm/dra/plugin.
GET_INFO_TIMEOUT = 1.0
NOTIFY_TIMEOUT = 5.0
CALL_TIMEOUT = 45.0

# A grpcio client would send the socket's path as the authority; the kubelet's service connection says localhost.
_OPTIONS = [("grpc.default_authority", "localhost")]

_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


class PluginInfo(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    name: str
    endpoint: str
    supported_versions: tuple[str, ...]


class Kubelet:
    """A registered driver as the kubelet sees it.

    async with await Kubelet.register(socket) as kubelet:
        await kubelet.prepare([claim])
    """

    def __init__(self, info: PluginInfo, version: str) -> None:
        self.info = info
        self.version = version  # the DRA version in use
        self._channel = grpc.aio.insecure_channel(f"unix:{info.endpoint}", options=_OPTIONS)

    @classmethod
    async def register(cls, socket: Path, *, known: Sequence[str] = tuple(codec.DRA_SERVICES)) -> Kubelet:
        """Ask who is at the registration socket and tell it that it is in, or why not; `known` is what this kubelet
        speaks."""
        async with grpc.aio.insecure_channel(f"unix:{socket}", options=_OPTIONS) as channel:
            info = await _get_info(channel)
            version = next((one for one in info.supported_versions if one in known), None)
            refusal = "" if version else f"none of {', '.join(info.supported_versions)} is supported"
            if info.type != codec.PLUGIN_TYPE:
                refusal = f"a plugin of type {info.type}"
            await _notify(channel, refusal)
        if refusal or version is None:
            raise OutsideError(refusal, where=str(socket))
        return cls(info, version)

    async def __aenter__(self) -> Kubelet:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._channel.close()

    async def prepare(self, claims: Sequence[ClaimRef]) -> dict[str, Prepared]:
        """Answers by UID. Raises OutsideError where the kubelet would: for an entry missing, or one too many."""
        call = self._channel.unary_unary(
            f"/{codec.DRA_SERVICES[self.version]}/NodePrepareResources",
            request_serializer=dra_pb2.NodePrepareResourcesRequest.SerializeToString,
            response_deserializer=dra_pb2.NodePrepareResourcesResponse.FromString,
        )
        request = dra_pb2.NodePrepareResourcesRequest(claims=codec.write_claims(claims))
        answers = codec.read_prepared(await _ask(call, request, CALL_TIMEOUT))
        self._check_complete(claims, set(answers))
        return answers

    async def unprepare(self, claims: Sequence[ClaimRef]) -> dict[str, str]:
        """Errors by UID, empty for success."""
        call = self._channel.unary_unary(
            f"/{codec.DRA_SERVICES[self.version]}/NodeUnprepareResources",
            request_serializer=dra_pb2.NodeUnprepareResourcesRequest.SerializeToString,
            response_deserializer=dra_pb2.NodeUnprepareResourcesResponse.FromString,
        )
        request = dra_pb2.NodeUnprepareResourcesRequest(claims=codec.write_claims(claims))
        errors = codec.read_unprepared(await _ask(call, request, CALL_TIMEOUT))
        self._check_complete(claims, set(errors))
        return errors

    async def watch_health(self, version: str = "v1.DRAResourceHealth") -> AsyncGenerator[list[DeviceHealth], None]:
        call = self._channel.unary_stream(
            f"/{codec.HEALTH_SERVICES[version]}/NodeWatchResources",
            request_serializer=health_pb2.NodeWatchResourcesRequest.SerializeToString,
            response_deserializer=health_pb2.NodeWatchResourcesResponse.FromString,
        )(health_pb2.NodeWatchResourcesRequest())
        try:
            async for response in call:
                yield codec.read_health(response)
        except grpc.aio.AioRpcError as error:
            raise OutsideError(f"{error.code().name}: {error.details()}") from error
        finally:
            call.cancel()

    def _check_complete(self, claims: Sequence[ClaimRef], answered: set[str]) -> None:
        asked = {claim.uid for claim in claims}
        if answered != asked:
            wrong = ", ".join(sorted(answered ^ asked))
            raise OutsideError(f"{self.info.name} did not answer exactly what it was asked: {wrong}")


async def _get_info(channel: grpc.aio.Channel) -> PluginInfo:
    call = channel.unary_unary(
        f"/{codec.REGISTRATION}/GetInfo",
        request_serializer=registration_pb2.InfoRequest.SerializeToString,
        response_deserializer=registration_pb2.PluginInfo.FromString,
    )
    info = await _ask(call, registration_pb2.InfoRequest(), GET_INFO_TIMEOUT)
    return PluginInfo(
        type=info.type, name=info.name, endpoint=info.endpoint, supported_versions=tuple(info.supported_versions)
    )


async def _notify(channel: grpc.aio.Channel, refusal: str) -> None:
    call = channel.unary_unary(
        f"/{codec.REGISTRATION}/NotifyRegistrationStatus",
        request_serializer=registration_pb2.RegistrationStatus.SerializeToString,
        response_deserializer=registration_pb2.RegistrationStatusResponse.FromString,
    )
    status = registration_pb2.RegistrationStatus(plugin_registered=not refusal, error=refusal)
    await _ask(call, status, NOTIFY_TIMEOUT)


async def _ask(call: grpc.aio.UnaryUnaryMultiCallable[_Request, _Answer], request: _Request, wait: float) -> _Answer:
    try:
        return await call(request, timeout=wait)
    except grpc.aio.AioRpcError as error:
        raise OutsideError(f"{error.code().name}: {error.details()}") from error
