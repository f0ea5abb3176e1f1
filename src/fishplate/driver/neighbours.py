"""Another driver of our name on this node: upstream DRANET, or the one that AKS or GKE manages.

Two of them would answer the same kubelet socket and overwrite each other's slices. Whoever comes second has to go, and
that is us: nothing is touched before this was asked.
"""

import errno
import socket
from pathlib import Path

import msgspec

from fishplate.driver.slices import LiveSlice
from fishplate.errors import FishplateError
from fishplate.k8s.api import Api
from fishplate.k8s.client import NotFoundError
from fishplate.k8s.resource import LiveMeta

# Labels by which managed offerings mark the nodes they run on.
_LABELS = {"cloud.google.com/gke-networking-dra-driver": "GKE's managed DRANET"}


class OccupiedError(FishplateError):
    """Somebody else serves this driver name on this node."""

    exit_code = 3


class _Node(msgspec.Struct, frozen=True):
    metadata: LiveMeta


async def refuse_if_occupied(api: Api, *, driver: str, node: str, registration: Path) -> None:
    remedy = "run one of the two on this node; node selectors keep them apart"
    query = {"fieldSelector": f"spec.nodeName={node},spec.driver={driver}"}
    listing = await api.list("/apis/resource.k8s.io/v1/resourceslices", LiveSlice, query)
    foreign = sorted(one.metadata.name for one in listing.items if not one.ours)
    if foreign:
        raise OccupiedError(
            f"another driver already serves {driver} on node {node}: it published {', '.join(foreign)}",
            remedy=f"{remedy}; slices of a driver that has left are deleted by the kubelet after 30 s",
        )
    if answers(registration):
        raise OccupiedError(
            f"another process already serves {driver} on this node: {registration} is in use", remedy=remedy
        )
    if owner := await _managed_by(api, node):
        raise OccupiedError(f"{owner} serves node {node}", remedy=remedy)


def answers(path: Path) -> bool:
    """Whether somebody listens there. A socket file alone is only a leftover."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError as error:
            return error.errno not in (errno.ENOENT, errno.ECONNREFUSED, errno.ENOTSOCK, errno.ENOTDIR)
    return True


async def _managed_by(api: Api, node: str) -> str:
    try:
        labels = (await api.get(f"/api/v1/nodes/{node}", _Node)).metadata.labels
    except NotFoundError:
        return ""
    return next((owner for label, owner in _LABELS.items() if labels.get(label) == "true"), "")
