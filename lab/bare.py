"""Many nodes without machines: Node objects and slices written straight to the API server.

The scheduler and the controllers treat them like any other, so allocation can be tested at a size no laptop could run.
No kubelet stands behind them: a pod is bound and stays Pending.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from lab.api import ApiClient, Object

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_STRICT = "?fieldValidation=Strict"
_THREADS = 8


def bare_node(name: str, labels: dict[str, str] | None = None) -> Object:
    """A node that is Ready and has room; its status is accepted at creation."""
    room = {"cpu": "128", "memory": "1Ti", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "Bare", "message": "no kubelet stands behind this node"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def bare_slice(node: str, driver: str, devices: list[Object]) -> Object:
    """The one slice of a driver's pool on a node, with the pool named after the node."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": devices},
    }


def create_all(api: ApiClient, path: str, objects: Iterable[Object]) -> list[Object]:
    """Create objects of one kind, several at a time, with strict field validation; what came back, in order."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(lambda one: api.request("POST", path + _STRICT, one), objects))


def add_bare_nodes(
    api: ApiClient, names: list[str], slices: Callable[[str], list[Object]], labels: dict[str, str] | None = None
) -> None:
    """Nodes first, then what `slices(node)` gives for each."""
    create_all(api, "/api/v1/nodes", (bare_node(name, labels) for name in names))
    create_all(api, SLICES, (one for name in names for one in slices(name)))
