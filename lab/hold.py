"""The keeper process of a lab: brings it up, says so, and stays until its owner or `down` ends it.

It is started by lab.session with the owner's pipe as standard input. End of file there means that the owner is gone and
the lab goes too, unless the owner wrote `detach` first. Standard output carries progress and one last line, `ready` or
`failed`; nothing is written to it after that.
"""

import contextlib
import os
import shutil
import signal
import sys
import threading
import traceback
from pathlib import Path

import msgspec

from fishplate.errors import FishplateError, OutsideError
from lab import HERE, TREE
from lab.api import ApiClient, ApiError
from lab.binaries import control_plane_binaries
from lab.controlplane import (
    SERVICE_ADDRESS,
    ControlPlane,
    Ports,
    free_ports,
    start_control_plane,
    wait_until,
    write_egress,
)
from lab.credentials import make_credentials
from lab.gpudriver import start_gpu_driver
from lab.guest import Node, answers_ssh, master_argv
from lab.host import CONTROL_PLANE, NEEDED, find_command, require_commands, run_checked
from lab.keeper import Keeper, end_processes
from lab.machine import Machine, find_shape, qemu_argv
from lab.network import KUBELET_PORT, NodeNetwork, plan_network
from lab.payload import node_tools, write_payload
from lab.progress import say, timed
from lab.rootfs import node_system
from lab.state import NodeState, Request, State, write_state


def bring_up(keeper: Keeper, request: Request) -> None:
    require_commands(CONTROL_PLANE if request.control_plane_only else tuple(NEEDED))
    shape, binaries = find_shape(request.shape), control_plane_binaries()
    networks = [plan_network(i, request.nodes, len(shape.nics)) for i in range(request.nodes)]
    api, etcd, peer, *rest = free_ports(3 + 2 * request.nodes)
    nodes = tuple(
        NodeState(name=n.name, ssh_port=rest[2 * i], kubelet_port=rest[2 * i + 1]) for i, n in enumerate(networks)
    )
    addresses = ["127.0.0.1", SERVICE_ADDRESS, *(n.api for n in networks)]
    credentials = make_credentials(keeper.directory / "keys", [n.name for n in networks], addresses)
    plane = ControlPlane(
        ports=Ports(api=api, etcd=etcd, etcd_peer=peer),
        binaries=binaries,
        credentials=credentials,
        feature_gates=request.feature_gates,
        with_nodes=not request.control_plane_only,
    )
    if nodes:
        _start_nodes(keeper, request, networks, nodes, plane)
    with timed("control plane"):
        client = start_control_plane(keeper, plane)
        kubectl = [str(binaries["kubectl"]), "--kubeconfig", str(keeper.directory / "admin.kubeconfig")]
        run_checked([*kubectl, "apply", "-f", str(HERE / "manifests" / "classes.yaml")], what="kubectl apply")
        wait_until(lambda: _has_account(client), "default service account", within_s=60, check=keeper.check)
    state = State(
        request=request, api_port=api, token=credentials.tokens["admin"], kubectl=str(binaries["kubectl"]), nodes=nodes
    )
    if nodes:
        with timed("nodes"):
            _await_nodes(keeper, client, nodes)
            for node in nodes if request.gpu_driver else ():
                start_gpu_driver(Node(node, keeper.directory), request.gpu_driver)
    write_state(keeper.directory, state)


def _start_nodes(
    keeper: Keeper, request: Request, networks: list[NodeNetwork], nodes: tuple[NodeState, ...], plane: ControlPlane
) -> None:
    """Boot the nodes first: they need longer than the control plane, and wait for it by themselves."""
    directory, system = keeper.directory, node_system()
    tools = node_tools(system)
    with timed("payload disk"):
        payload = write_payload(directory, networks, plane.credentials, request.feature_gates)
    write_egress(directory)
    table = {f"{n.address}:{KUBELET_PORT}": s.kubelet_port for n, s in zip(networks, nodes, strict=True)}
    keeper.start("dialer", [sys.executable, "-m", "lab.dialer", msgspec.json.encode(table).decode()], _python_path())
    known = [(directory / f"{n.name}.pub").read_text() for n in networks]
    (directory / "known_hosts").write_text(
        "".join(f"[127.0.0.1]:{s.ssh_port} {key}" for s, key in zip(nodes, known, strict=True))
    )
    for i, (network, node) in enumerate(zip(networks, nodes, strict=True)):
        machine = Machine(
            index=i,
            nodes=request.nodes,
            network=network,
            system=system,
            tools=tools,
            payload=payload,
            api_port=plane.ports.api,
            ssh_port=node.ssh_port,
            kubelet_port=node.kubelet_port,
        )
        argv = qemu_argv(machine, find_shape(request.shape))
        # QEMU's scratch file for the root disk goes where the lab's other things are.
        keeper.start(node.name, [find_command(argv[0]) or argv[0], *argv[1:]], {"TMPDIR": str(directory)})


def _python_path() -> dict[str, str]:
    return {"PYTHONPATH": f"{TREE}:{TREE / 'src'}"}


def _has_account(client: ApiClient) -> bool:
    try:
        client.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")
    except ApiError:
        return False
    return True


def _check_nodes(keeper: Keeper) -> None:
    """A node that cannot boot says so on its console; there is no point in waiting for it."""
    keeper.check()
    for log in keeper.logs.glob("*.console.log"):
        text = log.read_text(errors="replace")
        if "Kernel panic" in text or "lab: boot failed" in text:
            raise OutsideError(f"{log.name.split('.')[0]} cannot boot", where=str(log), remedy="read the console log")


def _await_nodes(keeper: Keeper, client: ApiClient, nodes: tuple[NodeState, ...]) -> None:
    def check() -> None:
        _check_nodes(keeper)

    for node in nodes:
        wait_until(lambda n=node: answers_ssh(n), f"{node.name} answers", within_s=300, check=check)  # type: ignore[misc]
        keeper.start(f"ssh-{node.name}", master_argv(node))
    for node in nodes:
        socket = keeper.directory / f"ssh-{node.name}"
        wait_until(socket.exists, f"ssh to {node.name}", within_s=120, check=check)
        say(f"{node.name} is up; waiting for its kubelet")
    for node in nodes:
        wait_until(lambda n=node: _is_ready(client, n.name), f"{node.name} Ready", within_s=300, check=check)  # type: ignore[misc]


class _Condition(msgspec.Struct):
    type: str
    status: str


class _NodeStatus(msgspec.Struct):
    conditions: list[_Condition] = []


class _NodeSpec(msgspec.Struct):
    taints: list[dict[str, object]] = []


class _NodeObject(msgspec.Struct):
    spec: _NodeSpec
    status: _NodeStatus


def _is_ready(client: ApiClient, name: str) -> bool:
    """Ready, and the taint that every new node carries has been lifted."""
    try:
        node = msgspec.convert(client.request("GET", f"/api/v1/nodes/{name}"), _NodeObject)
    except ApiError:
        return False
    return not node.spec.taints and any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)


def _watch_owner() -> None:
    """End this process when the owner's pipe ends without a `detach`."""
    # Not through sys.stdin: its lock would be held when the interpreter ends.
    while said := os.read(0, 100):
        if said == b"detach\n":
            return
    os.kill(os.getpid(), signal.SIGTERM)


def _leave(*_: object) -> None:
    """Once only: the owner closes its pipe and also sends a signal, and the second must not break into the clearing."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)


def main(directory: Path) -> int:
    request = msgspec.json.decode((directory / "request.json").read_bytes(), type=Request)
    keeper = Keeper(directory)
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_watch_owner, daemon=True).start()
    # Progress goes to whoever waits for `ready`; they may have gone.
    sys.stderr = sys.stdout
    keep_logs = False
    try:
        bring_up(keeper, request)
        print("ready", flush=True)
        signal.pause()
    except FishplateError as error:
        keep_logs = True
        print(f"{error}\nfailed", flush=True)
        return error.exit_code
    except Exception:
        keep_logs = True
        print(f"{traceback.format_exc()}\nfailed", flush=True)
        return OutsideError.exit_code
    finally:
        keeper.stop()
        # A signal can arrive while a child is being started, before anybody has noted it down.
        end_processes(directory)
        _clear(directory, keep_logs=keep_logs)
    return 0


def _clear(directory: Path, *, keep_logs: bool) -> None:
    for path in directory.iterdir():
        if path.is_dir() and not (keep_logs and path.name == "logs"):
            shutil.rmtree(path)
        elif not path.is_dir():
            path.unlink()
    if not keep_logs:
        directory.rmdir()
        # The last lab takes the place of all labs along.
        with contextlib.suppress(OSError):
            directory.parent.rmdir()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
