"""Rules about what a pod needs, and must not have, for RDMA: locked memory, shared memory, its own network and devices.

They look only at pods and containers that have to do with RDMA NICs or GPUs; any other is none of their business.
"""

from collections.abc import Iterator

from fishplate.dra.lint_pod_subject import PodSubject
from fishplate.dra.lint_subject import Hit
from fishplate.findings import Verdict
from fishplate.k8s.pod import Container

_SHM = "/dev/shm"
_IPC_LOCK = ("IPC_LOCK", "CAP_IPC_LOCK", "ALL")
_DEVICES = "/dev/infiniband"


def find_host_network(subject: PodSubject) -> Iterator[Hit]:
    if subject.spec.host_network and subject.has("nic"):
        said = "the pod is on the host's network and claims NICs: their driver has nowhere to move them and refuses it"
        yield Hit(("hostNetwork",), said)


def find_locked_memory(subject: PodSubject) -> Iterator[Hit]:
    for path, container in subject.containers:
        context = container.security_context
        if not subject.given(container, "nic") or context.privileged:
            continue
        place = (*path, "securityContext")
        if not set(context.capabilities.add) & set(_IPC_LOCK):
            yield Hit(
                place, f"container {container.name} uses RDMA and may lock almost no memory: ibv_reg_mr will fail"
            )
        elif _is_not_root(container, subject):
            said = f"container {container.name} has IPC_LOCK and does not run as root: its processes do not get it"
            yield Hit(place, said, verdict=Verdict.CANNOT_TELL)


def _is_not_root(container: Container, subject: PodSubject) -> bool:
    own, pod = container.security_context, subject.spec.security_context
    user = own.run_as_user if own.run_as_user is not None else pod.run_as_user
    return bool(user) or own.run_as_non_root or pod.run_as_non_root


def find_privileged(subject: PodSubject) -> Iterator[Hit]:
    for path, container in subject.containers:
        if container.security_context.privileged and container.resources.claims:
            said = f"container {container.name} is privileged: it sees every device of the node, claimed or not"
            yield Hit((*path, "securityContext", "privileged"), said)


def find_host_devices(subject: PodSubject) -> Iterator[Hit]:
    for index, volume in enumerate(subject.spec.volumes):
        path = volume.host_path.path.rstrip("/") if volume.host_path else ""
        if path == "/dev" or path == _DEVICES or path.startswith(f"{_DEVICES}/"):
            said = f"volume {volume.name} brings the host's {path} into the pod: NICs that were given to others as well"
            yield Hit(("volumes", index, "hostPath"), said)


def find_shared_memory(subject: PodSubject) -> Iterator[Hit]:
    """NCCL's ranks of one pod talk through it; 64 MiB is what a container gets by itself."""
    in_memory = {one.name for one in subject.spec.volumes if one.empty_dir and one.empty_dir.medium == "Memory"}
    on_host = {one.name for one in subject.spec.volumes if one.host_path and one.host_path.path.rstrip("/") == _SHM}
    for path, container in subject.containers:
        gpus = subject.given(container, "gpu")
        mounts = {one.name for one in container.volume_mounts if one.mount_path.rstrip("/") == _SHM}
        disabled = any(one.name == "NCCL_SHM_DISABLE" and one.value == "1" for one in container.env)
        if not gpus or disabled or mounts & (in_memory | on_host):
            continue
        said = f"container {container.name} has {gpus} GPU{'s' if gpus > 1 else ''} and 64 MiB of shared memory"
        if mounts:
            said = f"container {container.name} has a {_SHM} that is not in memory"
        verdict = Verdict.BAD if gpus > 1 or mounts else Verdict.CANNOT_TELL
        yield Hit((*path, "volumeMounts"), said, verdict=verdict)
