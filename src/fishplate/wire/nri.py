"""What a runtime and a plugin say to each other over NRI, as plain values, and the interface a plugin implements.

Field meanings and numbers follow containerd/nri (pkg/api/api.proto, v0.6 to v0.12). Only what a device driver reads or
writes is here; the rest is skipped when a message is read.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence


class Event(enum.IntFlag):
    """The event mask; the bit is 1 << (number in NRI's enum - 1)."""

    RUN_POD_SANDBOX = 0x1
    STOP_POD_SANDBOX = 0x2
    REMOVE_POD_SANDBOX = 0x4
    CREATE_CONTAINER = 0x8
    POST_CREATE_CONTAINER = 0x10
    START_CONTAINER = 0x20
    POST_START_CONTAINER = 0x40
    UPDATE_CONTAINER = 0x80
    POST_UPDATE_CONTAINER = 0x100
    STOP_CONTAINER = 0x200
    REMOVE_CONTAINER = 0x400
    UPDATE_POD_SANDBOX = 0x800
    POST_UPDATE_POD_SANDBOX = 0x1000


class ContainerState(enum.IntEnum):
    UNKNOWN = 0
    CREATED = 1
    PAUSED = 2
    RUNNING = 3
    STOPPED = 4


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    destination: str
    type: str = "bind"
    source: str = ""
    options: tuple[str, ...] = ()


class DeviceNode(msgspec.Struct, frozen=True, kw_only=True):
    """A device file. The runtime also allows it in the container's device cgroup."""

    path: str
    type: str = "c"
    major: int
    minor: int
    file_mode: int | None = None
    uid: int | None = None
    gid: int | None = None


class Rlimit(msgspec.Struct, frozen=True, kw_only=True):
    """`type` as in OCI: RLIMIT_MEMLOCK."""

    type: str
    hard: int
    soft: int


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod sandbox. The UID is what joins it with a claim: NRI knows no claims."""

    id: str
    name: str = ""
    uid: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    runtime_handler: str = ""
    cgroup_parent: str = ""
    namespaces: dict[str, str] = {}  # type → path; "network" is there from RunPodSandbox to StopPodSandbox
    pid: int = 0
    ips: tuple[str, ...] = ()  # NRI v0.8, containerd 2.1

    @property
    def network_namespace(self) -> str:
        """Path of the pod's network namespace; empty for a pod on the host's network."""
        return self.namespaces.get("network", "")


class Container(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    pod_id: str = ""
    name: str = ""
    state: ContainerState = ContainerState.UNKNOWN
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    pid: int = 0
    cdi_devices: tuple[str, ...] = ()  # NRI v0.10


class Adjustment(msgspec.Struct, frozen=True, kw_only=True):
    """Changes to a container about to be created. Empty means: leave it alone.

    A key that starts with `-` removes (annotation, env, mount destination, device path). Two plugins that set the same
    key make the runtime refuse the container. What an older runtime does not know it ignores in silence: look at
    `RuntimeInfo.nri_version` before relying on `cdi_devices` (v0.7) or `net_devices` (v0.11).
    """

    annotations: dict[str, str] = {}
    mounts: tuple[Mount, ...] = ()
    env: dict[str, str] = {}
    rlimits: tuple[Rlimit, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    net_devices: dict[str, str] = {}  # name on the host → name in the container


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """A change to the resources of a container that exists."""

    container_id: str
    cpus: str = ""
    mems: str = ""
    unified: dict[str, str] = {}
    ignore_failure: bool = False


class RuntimeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Who configured us. `nri_version` is (major, minor, patch), told by the runtime (v0.12) or inferred from its
    name and version; None where nobody knows."""

    name: str
    version: str
    nri_version: tuple[int, int, int] | None
    config: str = ""
    request_timeout: float = 2.0  # seconds
    registration_timeout: float = 5.0


class PluginHandler(Protocol):
    """What the driver implements.

    A method may be a plain function or return an awaitable. A plain one is called straight from the socket's callback
    and its answer is written in the same breath: that is the fast way, and it holds up the loop meanwhile. Several
    awaitables may be under way at once.

    To refuse, raise: any FishplateError's text becomes the reason that the runtime shows, and the container or pod is
    not started (RunPodSandbox, CreateContainer, StartContainer, UpdateContainer). Any other exception refuses as well.
    An awaitable that is not done shortly before the runtime's request timeout is cancelled and the request refused,
    since a runtime that waits in vain drops the plugin and goes on without it.

    Never wait for `Plugin.update_containers` inside a handler: the runtime holds one lock around both.
    """

    @property
    def events(self) -> Event:
        """What to be told of. Bits that the runtime does not know are left out when subscribing."""

    def configure(self, runtime: RuntimeInfo) -> None:
        """A runtime has taken us in; once for each connection, before `synchronize`."""

    def synchronize(
        self, pods: Sequence[Pod], containers: Sequence[Container]
    ) -> Sequence[Update] | Awaitable[Sequence[Update]]:
        """All that exists. What started while we were away is seen here and nowhere else."""

    def run_pod_sandbox(self, pod: Pod) -> Awaitable[None] | None:
        """The sandbox runs and has its network; no container has been created."""

    def stop_pod_sandbox(self, pod: Pod) -> Awaitable[None] | None:
        """The network namespace still exists. Errors are only logged by the runtime."""

    def remove_pod_sandbox(self, pod: Pod) -> Awaitable[None] | None: ...

    def create_container(self, pod: Pod, container: Container) -> Adjustment | Awaitable[Adjustment]: ...

    def other_event(self, event: Event, pod: Pod, container: Container | None) -> Awaitable[None] | None:
        """Any further event subscribed to."""

    def disconnected(self, reason: str) -> None:
        """The connection is gone, or the runtime shuts down; `configure` follows when it is back."""
