"""Addresses of a lab, all decided from node and link numbers: nothing is handed out at run time.

mgmt0    10.77.NODE.15/24   QEMU's user network: the API server at .100, nothing else answers
pod0     10.78.0.NODE+1/24  between the nodes; carries pod traffic (10.79.NODE.0/24 per node)
rdmaK    10.80.K.NODE+1/24  between the nodes, one network per NIC position: rails, as on the real fabric
"""

import msgspec

API_PORT = 6443
KUBELET_PORT = 10250


class Link(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    mac: str
    address: str


class NodeNetwork(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    address: str
    gateway: str
    api: str
    range: str
    pods: str
    mgmt: Link
    pod: Link
    rdma: tuple[Link, ...]
    routes: tuple[tuple[str, str], ...]


def _link(kind: int, position: int, node: int, name: str, address: str) -> Link:
    return Link(name=name, mac=f"52:54:00:{kind:02x}:{position:02x}:{node:02x}", address=f"{address}/24")


def plan_network(node: int, nodes: int, nics: int) -> NodeNetwork:
    return NodeNetwork(
        name=f"node-{node}",
        address=f"10.77.{node}.15",
        gateway=f"10.77.{node}.2",
        api=f"10.77.{node}.100",
        range=f"10.77.{node}.0/24",
        pods=f"10.79.{node}.0/24",
        mgmt=_link(1, 0, node, "mgmt0", f"10.77.{node}.15"),
        pod=_link(2, 0, node, "pod0", f"10.78.0.{node + 1}"),
        rdma=tuple(_link(3, k, node, f"rdma{k}", f"10.80.{k}.{node + 1}") for k in range(nics)),
        routes=tuple((f"10.79.{other}.0/24", f"10.78.0.{other + 1}") for other in range(nodes) if other != node),
    )
