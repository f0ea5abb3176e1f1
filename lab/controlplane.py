"""etcd, kube-apiserver, kube-scheduler and kube-controller-manager on loopback."""

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from fishplate.errors import OutsideError
from lab import HERE
from lab.api import ApiClient
from lab.credentials import Credentials, write_kubeconfig
from lab.keeper import Keeper

SERVICE_RANGE = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"

_CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "daemonset-controller",
    "deployment-controller",
    "device-taint-eviction-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "resourceclaim-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
    "validatingadmissionpolicy-status-controller",
)
# Only where kubelets send heartbeats: these would declare bare nodes dead and evict their pods.
_NODE_CONTROLLERS = ("node-lifecycle-controller", "taint-eviction-controller")


class Ports(msgspec.Struct, frozen=True, kw_only=True):
    api: int
    etcd: int
    etcd_peer: int


class ControlPlane(msgspec.Struct, frozen=True, kw_only=True):
    ports: Ports
    binaries: dict[str, Path]
    credentials: Credentials
    feature_gates: str
    with_nodes: bool


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on; all are held open until the last is found, so they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _gates(plane: ControlPlane) -> list[str]:
    return [f"--feature-gates={plane.feature_gates}"] if plane.feature_gates else []


def etcd_argv(plane: ControlPlane) -> list[str]:
    client, peer = f"http://127.0.0.1:{plane.ports.etcd}", f"http://127.0.0.1:{plane.ports.etcd_peer}"
    return [
        str(plane.binaries["etcd"]),
        "--name=lab",
        "--data-dir=etcd",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=lab={peer}",
        "--log-level=warn",
        # Nothing here must survive a power cut.
        "--unsafe-no-fsync",
    ]


def apiserver_argv(plane: ControlPlane) -> list[str]:
    keys = plane.credentials.directory
    argv = [
        str(plane.binaries["kube-apiserver"]),
        f"--etcd-servers=http://127.0.0.1:{plane.ports.etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={plane.ports.api}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={keys / 'accounts.pub'}",
        f"--service-account-signing-key-file={keys / 'accounts.key'}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--token-auth-file={keys / 'tokens.csv'}",
        f"--tls-cert-file={keys / 'api.crt'}",
        f"--tls-private-key-file={keys / 'api.key'}",
        f"--kubelet-client-certificate={keys / 'kubelet-client.crt'}",
        f"--kubelet-client-key={keys / 'kubelet-client.key'}",
        # Nobody resolves the nodes' names.
        "--kubelet-preferred-address-types=InternalIP",
        "--audit-log-path=audit.log",
        f"--audit-policy-file={HERE / 'manifests' / 'audit.yaml'}",
        # The loopback address cannot be an endpoint; the nodes relay the service address themselves.
        "--endpoint-reconciler-type=none",
        *_gates(plane),
    ]
    if plane.with_nodes:
        return [*argv, "--egress-selector-config-file=egress.json"]
    # It taints every new node until a controller lifts the taint, and no such controller runs without kubelets.
    return [*argv, "--disable-admission-plugins=TaintNodesByCondition"]


def manager_argv(plane: ControlPlane) -> list[str]:
    controllers = _CONTROLLERS + (_NODE_CONTROLLERS if plane.with_nodes else ())
    return [
        str(plane.binaries["kube-controller-manager"]),
        "--kubeconfig=manager.kubeconfig",
        f"--controllers={','.join(controllers)}",
        f"--service-account-private-key-file={plane.credentials.directory / 'accounts.key'}",
        f"--root-ca-file={plane.credentials.authority}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        *_gates(plane),
    ]


def scheduler_argv(plane: ControlPlane) -> list[str]:
    binary = str(plane.binaries["kube-scheduler"])
    return [binary, "--kubeconfig=scheduler.kubeconfig", "--leader-elect=false", "--secure-port=0", *_gates(plane)]


def write_egress(directory: Path) -> None:
    """Calls to kubelets go through a relay in the state directory, since node addresses exist only inside QEMU."""
    transport = {"uds": {"udsName": "dialer.sock"}}
    selection = {"name": "cluster", "connection": {"proxyProtocol": "HTTPConnect", "transport": transport}}
    config = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [selection],
    }
    (directory / "egress.json").write_text(json.dumps(config))


def wait_until(condition: Callable[[], bool], what: str, *, within_s: float, check: Callable[[], None]) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        check()
        if time.monotonic() > deadline:
            raise OutsideError(f"{what}: not within {within_s:.0f} s", where="lab", remedy="see `lab logs`")
        time.sleep(0.1)


def start_control_plane(keeper: Keeper, plane: ControlPlane) -> ApiClient:
    """Start everything, come back when the API server says that it is ready."""
    directory, server = keeper.directory, f"https://127.0.0.1:{plane.ports.api}"
    users = {"admin": "admin", "manager": "system:kube-controller-manager", "scheduler": "system:kube-scheduler"}
    for name, user in users.items():
        write_kubeconfig(directory / f"{name}.kubeconfig", server, plane.credentials, user)
    keeper.start("etcd", etcd_argv(plane))
    keeper.start("kube-apiserver", apiserver_argv(plane))
    client = ApiClient(plane.ports.api, plane.credentials.authority, plane.credentials.tokens["admin"])
    wait_until(client.ready, "API server ready", within_s=180, check=keeper.check)
    keeper.start("kube-controller-manager", manager_argv(plane))
    keeper.start("kube-scheduler", scheduler_argv(plane))
    return client
