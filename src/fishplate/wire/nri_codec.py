"""NRI's values to protobuf and back. Both ways for each: a driver reads what a simulated runtime writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from google.protobuf.message import DecodeError, Message

from fishplate.wire.nri import Adjustment, Container, ContainerState, DeviceNode, Mount, Pod, Rlimit, Update
from fishplate.wire.proto import nri_pb2 as pb
from fishplate.wire.ttrpc import Code, StatusError

if TYPE_CHECKING:
    from collections.abc import Iterable

_M = TypeVar("_M", bound=Message)
_STATES = {int(state): state for state in ContainerState}


def parse(kind: type[_M], payload: bytes) -> _M:
    """Bytes that are no such message are answered as Go does: Internal."""
    try:
        return kind.FromString(payload)
    except DecodeError as error:
        raise StatusError(Code.INTERNAL, f"ttrpc: error unmarshalling payload: {error}") from error


def read_pod(pod: pb.PodSandbox) -> Pod:
    return Pod(
        id=pod.id,
        name=pod.name,
        uid=pod.uid,
        namespace=pod.namespace,
        labels=dict(pod.labels),
        annotations=dict(pod.annotations),
        runtime_handler=pod.runtime_handler,
        cgroup_parent=pod.linux.cgroup_parent,
        namespaces={one.type: one.path for one in pod.linux.namespaces},
        pid=pod.pid,
        ips=tuple(pod.ips),
    )


def write_pod(pod: Pod) -> pb.PodSandbox:
    linux = pb.LinuxPodSandbox(
        cgroup_parent=pod.cgroup_parent,
        namespaces=[pb.LinuxNamespace(type=kind, path=path) for kind, path in pod.namespaces.items()],
    )
    return pb.PodSandbox(
        id=pod.id,
        name=pod.name,
        uid=pod.uid,
        namespace=pod.namespace,
        labels=pod.labels,
        annotations=pod.annotations,
        runtime_handler=pod.runtime_handler,
        linux=linux,
        pid=pod.pid,
        ips=pod.ips,
    )


def read_container(container: pb.Container) -> Container:
    return Container(
        id=container.id,
        pod_id=container.pod_sandbox_id,
        name=container.name,
        state=_STATES.get(container.state, ContainerState.UNKNOWN),
        labels=dict(container.labels),
        annotations=dict(container.annotations),
        args=tuple(container.args),
        env=tuple(container.env),
        mounts=_read_mounts(container.mounts),
        devices=_read_devices(container.linux.devices),
        pid=container.pid,
        cdi_devices=tuple(device.name for device in container.cdi_devices),
    )


def write_container(container: Container) -> pb.Container:
    return pb.Container(
        id=container.id,
        pod_sandbox_id=container.pod_id,
        name=container.name,
        state=container.state,
        labels=container.labels,
        annotations=container.annotations,
        args=container.args,
        env=container.env,
        mounts=_write_mounts(container.mounts),
        linux=pb.LinuxContainer(devices=_write_devices(container.devices)),
        pid=container.pid,
        cdi_devices=[pb.CDIDevice(name=name) for name in container.cdi_devices],
    )


def read_adjustment(adjust: pb.ContainerAdjustment) -> Adjustment:
    return Adjustment(
        annotations=dict(adjust.annotations),
        mounts=_read_mounts(adjust.mounts),
        env={one.key: one.value for one in adjust.env},
        rlimits=tuple(Rlimit(type=one.type, hard=one.hard, soft=one.soft) for one in adjust.rlimits),
        cdi_devices=tuple(device.name for device in adjust.cdi_devices),
        devices=_read_devices(adjust.linux.devices),
        net_devices={host: device.name for host, device in adjust.linux.net_devices.items()},
    )


def write_adjustment(adjustment: Adjustment) -> pb.ContainerAdjustment:
    adjust = pb.ContainerAdjustment(
        annotations=adjustment.annotations,
        mounts=_write_mounts(adjustment.mounts),
        env=[pb.KeyValue(key=key, value=value) for key, value in adjustment.env.items()],
        rlimits=[pb.POSIXRlimit(type=one.type, hard=one.hard, soft=one.soft) for one in adjustment.rlimits],
        cdi_devices=[pb.CDIDevice(name=name) for name in adjustment.cdi_devices],
    )
    if adjustment.devices or adjustment.net_devices:
        adjust.linux.devices.extend(_write_devices(adjustment.devices))
        for host, name in adjustment.net_devices.items():
            adjust.linux.net_devices[host].name = name
    return adjust


def read_update(update: pb.ContainerUpdate) -> Update:
    resources = update.linux.resources
    return Update(
        container_id=update.container_id,
        cpus=resources.cpu.cpus,
        mems=resources.cpu.mems,
        unified=dict(resources.unified),
        ignore_failure=update.ignore_failure,
    )


def write_update(update: Update) -> pb.ContainerUpdate:
    resources = pb.LinuxResources(unified=update.unified)
    if update.cpus or update.mems:
        resources.cpu.CopyFrom(pb.LinuxCPU(cpus=update.cpus, mems=update.mems))
    return pb.ContainerUpdate(
        container_id=update.container_id,
        linux=pb.LinuxContainerUpdate(resources=resources),
        ignore_failure=update.ignore_failure,
    )


def _read_mounts(mounts: Iterable[pb.Mount]) -> tuple[Mount, ...]:
    return tuple(
        Mount(destination=one.destination, type=one.type, source=one.source, options=tuple(one.options))
        for one in mounts
    )


def _write_mounts(mounts: Iterable[Mount]) -> list[pb.Mount]:
    return [
        pb.Mount(destination=one.destination, type=one.type, source=one.source, options=one.options) for one in mounts
    ]


def _read_devices(devices: Iterable[pb.LinuxDevice]) -> tuple[DeviceNode, ...]:
    return tuple(
        DeviceNode(
            path=one.path,
            type=one.type,
            major=one.major,
            minor=one.minor,
            file_mode=one.file_mode.value if one.HasField("file_mode") else None,
            uid=one.uid.value if one.HasField("uid") else None,
            gid=one.gid.value if one.HasField("gid") else None,
        )
        for one in devices
    )


def _write_devices(devices: Iterable[DeviceNode]) -> list[pb.LinuxDevice]:
    return [
        pb.LinuxDevice(
            path=one.path,
            type=one.type,
            major=one.major,
            minor=one.minor,
            file_mode=_optional(one.file_mode),
            uid=_optional(one.uid),
            gid=_optional(one.gid),
        )
        for one in devices
    ]


def _optional(value: int | None) -> pb.OptionalUInt32 | None:
    return None if value is None else pb.OptionalUInt32(value=value)
