"""The kubelet's end of its wire, for the simulation and for tests: its questions, its order, its deadlines."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fishplate.errors import OutsideError
from fishplate.wire import kubelet_codec as codec
from fishplate.wire.grpc_client import Channel
from fishplate.wire.proto import dra_pb2, health_pb2, registration_pb2
from fishplate.wire.ttrpc import Code, StatusError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from fishplate.wire.kubelet import ClaimRef, DeviceHealth, Prepared

# Seconds, from pkg/kubelet: pluginmanager and cm/dra/plugin.
GET_INFO_TIMEOUT = 1.0
NOTIFY_TIMEOUT = 5.0
CALL_TIMEOUT = 45.0


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
        self._channel = Channel(Path(info.endpoint))

    @classmethod
    async def register(cls, socket: Path, *, known: Sequence[str] = tuple(codec.DRA_SERVICES)) -> Kubelet:
        """Ask who is at the registration socket and tell it that it is in, or why not; `known` is what this kubelet
        speaks."""
        async with Channel(socket) as channel:
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
        request = dra_pb2.NodePrepareResourcesRequest(claims=codec.write_claims(claims))
        answer = await self._ask("NodePrepareResources", request.SerializeToString())
        answers = codec.read_prepared(dra_pb2.NodePrepareResourcesResponse.FromString(answer))
        self._check_complete(claims, set(answers))
        return answers

    async def unprepare(self, claims: Sequence[ClaimRef]) -> dict[str, str]:
        """Errors by UID, empty for success."""
        request = dra_pb2.NodeUnprepareResourcesRequest(claims=codec.write_claims(claims))
        answer = await self._ask("NodeUnprepareResources", request.SerializeToString())
        errors = codec.read_unprepared(dra_pb2.NodeUnprepareResourcesResponse.FromString(answer))
        self._check_complete(claims, set(errors))
        return errors

    async def watch_health(self, version: str = "v1.DRAResourceHealth") -> AsyncGenerator[list[DeviceHealth], None]:
        request = health_pb2.NodeWatchResourcesRequest().SerializeToString()
        path = f"/{codec.HEALTH_SERVICES[version]}/NodeWatchResources"
        with _naming_codes():
            async with contextlib.aclosing(self._channel.stream(path, request)) as answers:
                async for answer in answers:
                    yield codec.read_health(health_pb2.NodeWatchResourcesResponse.FromString(answer))

    async def _ask(self, method: str, request: bytes) -> bytes:
        with _naming_codes():
            return await self._channel.call(
                f"/{codec.DRA_SERVICES[self.version]}/{method}", request, timeout=CALL_TIMEOUT
            )

    def _check_complete(self, claims: Sequence[ClaimRef], answered: set[str]) -> None:
        asked = {claim.uid for claim in claims}
        if answered != asked:
            wrong = ", ".join(sorted(answered ^ asked))
            raise OutsideError(f"{self.info.name} did not answer exactly what it was asked: {wrong}")


async def _get_info(channel: Channel) -> PluginInfo:
    request = registration_pb2.InfoRequest().SerializeToString()
    with _naming_codes():
        answer = await channel.call(f"/{codec.REGISTRATION}/GetInfo", request, timeout=GET_INFO_TIMEOUT)
    info = registration_pb2.PluginInfo.FromString(answer)
    return PluginInfo(
        type=info.type, name=info.name, endpoint=info.endpoint, supported_versions=tuple(info.supported_versions)
    )


async def _notify(channel: Channel, refusal: str) -> None:
    status = registration_pb2.RegistrationStatus(plugin_registered=not refusal, error=refusal)
    path = f"/{codec.REGISTRATION}/NotifyRegistrationStatus"
    with _naming_codes():
        await channel.call(path, status.SerializeToString(), timeout=NOTIFY_TIMEOUT)


@contextlib.contextmanager
def _naming_codes() -> Iterator[None]:
    try:
        yield
    except StatusError as error:
        name = Code(error.code).name if error.code in set(Code) else str(error.code)
        raise OutsideError(f"{name}: {error.what}", where=error.where) from error
