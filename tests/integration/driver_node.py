"""One node for tests: a synthetic host, `fishplate driver` as a process of its own, and real peers at its sockets.

The kubelet is grpc-go with the kubelet's client code, the runtime is containerd's NRI adaptation; both are programs of
oracle/. What a test asserts is read from files, from the peers' answers and from the API server, never from the driver.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from fishplate.hardware.catalog import load_catalog
from fishplate.sim.fleet import placement_group
from fishplate.sim.host import write_host
from oracle.peers import Peer, PeerError, build

WAIT_S = 30.0


def wait_for(what: str, look: Callable[[], Any], timeout_s: float = WAIT_S) -> Any:  # noqa: ANN401
    end = time.monotonic() + timeout_s
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout_s:.0f} s in vain for {what}")
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class DriverNode:
    def __init__(
        self,
        directory: Path,
        *,
        kubeconfig: Path,
        name: str,
        size: str = "Standard_ND128isr_GB300_v6",
        number: int = 0,
        flags: tuple[str, ...] = (),
        nri: str = "nri-0.12",
    ) -> None:
        self.directory = directory
        self.name = name
        self._kubeconfig = kubeconfig
        self._flags = flags
        self._nri_kind = nri
        self._runner = asyncio.Runner()
        self._peers: dict[str, Peer] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._port = free_port()
        self.root = directory / "root"
        self.cdi = directory / "cdi"
        self.nri_socket = directory / "nri.sock"
        self.registry = directory / "kubelet" / "plugins_registry"
        machine = load_catalog().find(size)
        write_host(self.root, machine, number=number)
        for path in (self.cdi, self.registry, directory / "kubelet" / "plugins"):
            path.mkdir(parents=True)
        facts = {"node": {"azure.dra.net/placementGroupId": placement_group(machine, number)}}
        (directory / "facts.yaml").write_text(json.dumps(facts))

    def __enter__(self) -> "DriverNode":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        self.kill()
        for peer in list(self._peers):
            self.end_peer(peer)
        self._runner.close()
        if kind is not None and (self.directory / "driver.log").exists():
            print(f"-- log of the driver on {self.name}\n{self.log}")  # shown where the test fails

    # -- the driver ----------------------------------------------------------------------------------------------

    def start(self, *flags: str, env: Mapping[str, str] | None = None, register: bool = True) -> "DriverNode":
        self.launch(*flags, env=env)
        if register:
            self.register()
        return self

    def launch(self, *flags: str, env: Mapping[str, str] | None = None) -> None:
        assert self._process is None, "it runs already"
        argv = [
            sys.executable, "-m", "fishplate", "driver",
            "--kubeconfig", str(self._kubeconfig), "--hostname-override", self.name, "--root", str(self.root),
            "--kubelet-root-dir", str(self.directory / "kubelet"), "--cdi-dir", str(self.cdi),
            "--nri-socket", str(self.nri_socket), "--db-path", str(self.directory / "driver.db"),
            "--bind-address", f"127.0.0.1:{self._port}", "--metadata-file", str(self.directory / "facts.yaml"),
            *self._flags, *flags,
        ]  # fmt: skip
        with (self.directory / "driver.log").open("ab") as log:
            self._process = subprocess.Popen(argv, stdout=log, stderr=log, env={**os.environ, **(env or {})})

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        return (self.directory / "driver.log").read_text()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(timeout=WAIT_S)
        self._process = None
        return code

    def ended(self, timeout_s: float = WAIT_S) -> int:
        """The exit code, once the process is gone by itself; negative for a signal."""
        assert self._process is not None
        code = self._process.wait(timeout=timeout_s)
        self._process = None
        return code

    def page(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def wait_ready(self) -> None:
        wait_for(f"readiness of {self.name}: {self.page('/readyz')}", lambda: self.page("/readyz")[0] == 200)

    # -- the kubelet ---------------------------------------------------------------------------------------------

    @property
    def registration_socket(self) -> Path:
        return self.registry / "dra.net-reg.sock"

    def register(self) -> dict[str, Any]:
        def info() -> dict[str, Any] | None:
            assert self._process is not None
            assert self._process.poll() is None, self.log
            if not self.registration_socket.exists():
                return None
            try:
                found = self.ask("kubelet", "info", socket=str(self.registration_socket))
            except PeerError:
                return None
            assert isinstance(found, dict)
            return found

        told: dict[str, Any] = wait_for(f"{self.name} at the registration socket", info)
        self.ask("kubelet", "notify", socket=str(self.registration_socket), registered=True)
        self.service_socket = told["endpoint"]
        return told

    def prepare(self, *claims: Mapping[str, Any], version: str = "v1") -> dict[str, Any]:
        """Answers by UID, as grpc-go decodes them."""
        answers = self.ask(
            "kubelet", "prepare", socket=self.service_socket, version=version, claims=[claim_ref(one) for one in claims]
        )
        assert isinstance(answers, dict)
        return answers

    def unprepare(self, *claims: Mapping[str, Any], version: str = "v1") -> dict[str, Any]:
        answers = self.ask(
            "kubelet", "unprepare", socket=self.service_socket, version=version,
            claims=[claim_ref(one) for one in claims],
        )  # fmt: skip
        assert isinstance(answers, dict)
        return answers

    # -- the runtime ---------------------------------------------------------------------------------------------

    def start_runtime(self, *, live: tuple[str, ...] = ()) -> None:
        """`live` are UIDs of pods whose container `main` runs already, without any device."""
        version = "v2.2.0" if self._nri_kind == "nri-0.12" else "v1.7.20"
        self.ask(
            self._nri_kind, "start", socket=str(self.nri_socket), name="containerd", version=version, live=list(live)
        )

    def stop_runtime(self) -> None:
        """As a crash of the runtime: the socket goes with the process."""
        self.end_peer(self._nri_kind)

    def run_pod(self, pod: Mapping[str, Any]) -> None:
        self.ask(self._nri_kind, "run-pod", **_pod(pod))

    def remove_pod(self, pod: Mapping[str, Any]) -> None:
        self.ask(self._nri_kind, "stop-pod", **_pod(pod))
        self.ask(self._nri_kind, "remove-pod", **_pod(pod))

    def create_container(
        self, pod: Mapping[str, Any], container: str, cdi: tuple[str, ...] = (), env: tuple[str, ...] = ()
    ) -> set[str]:
        """Device nodes that the plugin added for this container, as `path major:minor`."""
        answer = self.ask(self._nri_kind, "create", container=container, cdi=list(cdi), env=list(env), **_pod(pod))
        devices = ((answer or {}).get("adjust") or {}).get("linux", {}).get("devices", [])
        return {f"{one['path']} {one['major']}:{one['minor']}" for one in devices}

    # -- what is on disk -----------------------------------------------------------------------------------------

    def specs(self) -> dict[str, dict[str, Any]]:
        """CDI specs by file name."""
        return {path.name: json.loads(path.read_text()) for path in self.cdi.glob("*.json")}

    def nodes_of(self, cdi_ids: list[str]) -> set[str]:
        """What a runtime would put into a container that was given these ids. A missing one is an error, as there."""
        known = {
            f"{spec['kind']}={device['name']}": device["containerEdits"]
            for spec in self.specs().values()
            for device in spec["devices"]
        }
        return {
            f"{node['path']} {node['major']}:{node['minor']}" for one in cdi_ids for node in known[one]["deviceNodes"]
        }

    # -- peers ---------------------------------------------------------------------------------------------------

    def ask(self, peer: str, op: str, **fields: object) -> Any:  # noqa: ANN401
        if peer not in self._peers:
            self._peers[peer] = self._runner.run(Peer(build(peer)).__aenter__())
        return self._runner.run(self._peers[peer].ask(op, **fields))

    def end_peer(self, peer: str) -> None:
        if peer in self._peers:
            self._runner.run(self._peers.pop(peer).__aexit__())


def claim_ref(claim: Mapping[str, Any]) -> dict[str, str]:
    meta = claim["metadata"]
    return {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}


def _pod(pod: Mapping[str, Any]) -> dict[str, str]:
    meta = pod["metadata"]
    return {"uid": meta["uid"], "namespace": meta["namespace"], "pod": meta["name"]}
