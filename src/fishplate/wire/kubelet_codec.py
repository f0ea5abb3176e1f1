"""The kubelet's values to protobuf and back, and the names under which its services go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishplate.wire.kubelet import ClaimRef, DeviceHealth, Health, Prepared, PreparedDevice
from fishplate.wire.proto import dra_pb2, health_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

REGISTRATION = "pluginregistration.Registration"
PLUGIN_TYPE = "DRAPlugin"
# What the kubelet calls a version, and the service it then asks for; newest first, since it takes the first it knows.
DRA_SERVICES = {
    "v1.DRAPlugin": "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",
    "v1beta1.DRAPlugin": "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
}
HEALTH_SERVICES = {
    "v1.DRAResourceHealth": "v1.DRAResourceHealth",
    "v1alpha1.DRAResourceHealth": "v1alpha1.DRAResourceHealth",
}

MAX_HEALTH_MESSAGE = 1024
_HEALTH = {int(health): health for health in Health}


def read_claims(claims: Iterable[dra_pb2.Claim]) -> list[ClaimRef]:
    return [ClaimRef(namespace=claim.namespace, name=claim.name, uid=claim.uid) for claim in claims]


def write_claims(claims: Iterable[ClaimRef]) -> list[dra_pb2.Claim]:
    return [dra_pb2.Claim(namespace=claim.namespace, name=claim.name, uid=claim.uid) for claim in claims]


def write_prepared(answers: Mapping[str, Prepared]) -> dra_pb2.NodePrepareResourcesResponse:
    response = dra_pb2.NodePrepareResourcesResponse()
    for uid, answer in answers.items():
        entry = response.claims[uid]
        entry.error = answer.error
        entry.devices.extend(_write_device(device) for device in answer.devices)
    return response


def read_prepared(response: dra_pb2.NodePrepareResourcesResponse) -> dict[str, Prepared]:
    return {
        uid: Prepared(devices=tuple(map(_read_device, entry.devices)), error=entry.error)
        for uid, entry in response.claims.items()
    }


def write_unprepared(errors: Mapping[str, str]) -> dra_pb2.NodeUnprepareResourcesResponse:
    response = dra_pb2.NodeUnprepareResourcesResponse()
    for uid, error in errors.items():
        response.claims[uid].error = error
    return response


def read_unprepared(response: dra_pb2.NodeUnprepareResourcesResponse) -> dict[str, str]:
    return {uid: entry.error for uid, entry in response.claims.items()}


def write_health(devices: Sequence[DeviceHealth]) -> health_pb2.NodeWatchResourcesResponse:
    return health_pb2.NodeWatchResourcesResponse(devices=map(_write_health, devices))


def read_health(response: health_pb2.NodeWatchResourcesResponse) -> list[DeviceHealth]:
    return [
        DeviceHealth(
            pool=one.device.pool_name,
            device=one.device.device_name,
            health=_HEALTH.get(one.health, Health.UNKNOWN),
            last_updated=one.last_updated_time,
            timeout_s=one.health_check_timeout_seconds,
            message=one.message,
        )
        for one in response.devices
    ]


def _write_health(one: DeviceHealth) -> health_pb2.DeviceHealth:
    return health_pb2.DeviceHealth(
        device=health_pb2.DeviceIdentifier(pool_name=one.pool, device_name=one.device),
        health=one.health.name,
        last_updated_time=one.last_updated,
        health_check_timeout_seconds=one.timeout_s,
        message=one.message.encode()[:MAX_HEALTH_MESSAGE].decode(errors="ignore"),
    )


def _write_device(device: PreparedDevice) -> dra_pb2.Device:
    return dra_pb2.Device(
        request_names=device.requests,
        pool_name=device.pool,
        device_name=device.device,
        cdi_device_ids=device.cdi_device_ids,
        share_id=device.share_id,
    )


def _read_device(device: dra_pb2.Device) -> PreparedDevice:
    return PreparedDevice(
        pool=device.pool_name,
        device=device.device_name,
        requests=tuple(device.request_names),
        cdi_device_ids=tuple(device.cdi_device_ids),
        share_id=device.share_id if device.HasField("share_id") else None,
    )
