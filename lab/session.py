"""A lab as its user sees it: up, down, and what can be done in between."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from fishplate.errors import OutsideError
from lab import TREE
from lab.api import ApiClient
from lab.gpudriver import start_gpu_driver, stop_gpu_driver
from lab.guest import Node
from lab.helm import helm_argv
from lab.image import read_identity
from lab.keeper import MARK, end_processes, find_processes, tail
from lab.machine import find_shape
from lab.progress import say
from lab.state import Request, State, read_state, state_directory

__all__ = ["Lab", "attach", "down", "running", "up"]


class Lab:
    """A lab that is up. Only `node` and the GPU driver need one with nodes."""

    def __init__(self, directory: Path, state: State) -> None:
        self.directory = directory
        self.state = state
        self.kubeconfig = directory / "admin.kubeconfig"
        self.url = f"https://127.0.0.1:{state.api_port}"
        self.token = state.token
        self.authority = directory / "keys" / "ca.crt"
        self.audit_log = directory / "audit.log"
        self.nodes = [Node(n, directory) for n in state.nodes]
        self.api = ApiClient(state.api_port, self.authority, state.token)

    def node(self, index: int) -> Node:
        return self.nodes[index]

    def kubectl(
        self, *args: str, check: bool = True, timeout_s: float = 120.0, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        argv = [self.state.kubectl, "--kubeconfig", str(self.kubeconfig), *args]
        return _run("kubectl", argv, check=check, timeout_s=timeout_s, stdin=stdin)

    def helm(
        self, *args: str, check: bool = True, timeout_s: float = 300.0, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        return _run("helm", [*helm_argv(self.kubeconfig), *args], check=check, timeout_s=timeout_s, stdin=stdin)

    def load(self, archive: Path, nodes: list[Node] | None = None) -> None:
        """Import an image archive into these nodes, or all, at the same time; a node that has it already keeps it."""
        name, digest = read_identity(archive)

        def load(node: Node) -> None:
            if digest in node.run(f"ctr -n k8s.io images ls name=={name}").stdout:
                return
            there = node.put(archive, "/var/tmp")
            # `--local` reads the file itself; else its bytes travel by gRPC, which takes three times as long here.
            node.run(f"ctr -n k8s.io images import --local {there} && rm {there}", timeout_s=300)

        with ThreadPoolExecutor() as pool:
            list(pool.map(load, self.nodes if nodes is None else nodes))

    def start_gpu_driver(self, profile: str) -> None:
        for node in self.nodes:
            start_gpu_driver(node, profile)

    def stop_gpu_driver(self) -> None:
        for node in self.nodes:
            stop_gpu_driver(node)

    def processes(self) -> list[int]:
        return find_processes(self.directory)


def _run(
    what: str, argv: list[str], *, check: bool, timeout_s: float, stdin: str | None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(argv, input=stdin or "", capture_output=True, text=True, timeout=timeout_s, check=False)
    if check and done.returncode:
        raise OutsideError(f"exit {done.returncode}: {done.stderr.strip()}", where=f"{what} {' '.join(argv[3:])}")
    return done


def attach(name: str = "default") -> Lab:
    directory = state_directory(name)
    return Lab(directory, read_state(directory))


def down(name: str = "default") -> bool:
    """End the lab and remove its files; false if there was none. Also clears what a crash left behind."""
    directory = state_directory(name)
    if not directory.exists():
        return False
    with _locked(directory):
        _clear(directory)
    return True


def _clear(directory: Path) -> None:
    ended = end_processes(directory)
    if ended:
        say(f"ended {ended} processes of {directory.name}")
    if directory.exists():
        shutil.rmtree(directory)
    with contextlib.suppress(OSError):
        directory.parent.rmdir()


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """One `up` or `down` of a lab at a time. The lock is on the parent, which outlives the lab."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory.parent, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _spawn(directory: Path, request: Request) -> subprocess.Popen[bytes]:
    directory.mkdir(parents=True)
    (directory / "request.json").write_bytes(msgspec.json.encode(request))
    environment = {**os.environ, MARK: str(directory), "PYTHONPATH": f"{TREE}:{TREE / 'src'}", "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "lab.hold", str(directory)],
        cwd=TREE,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # Ctrl-C goes to the owner, and reaches the keeper as the end of its pipe.
        start_new_session=True,
    )


def _await_ready(keeper: subprocess.Popen[bytes], directory: Path) -> None:
    assert keeper.stdout is not None
    said: list[str] = []
    for raw in keeper.stdout:
        line = raw.decode(errors="replace").rstrip()
        if line == "ready":
            return
        if line.startswith("lab: "):
            print(line, file=sys.stderr, flush=True)
        else:
            said.append(line)
    keeper.wait()
    consoles = "".join(f"\n  {log}:\n{tail(log)}" for log in sorted((directory / "logs").glob("*.console.log")))
    text = "\n".join(line for line in said if line != "failed") or f"the keeper ended with {keeper.returncode}"
    raise OutsideError(f"{text}{consoles}", where="lab up", remedy=f"logs are kept in {directory / 'logs'}")


def _launch(name: str, request: Request) -> tuple[subprocess.Popen[bytes], Lab]:
    directory = state_directory(name)
    if request.nodes and not request.gpu_driver:
        request = msgspec.structs.replace(request, gpu_driver=find_shape(request.shape).gpu_driver)
    with _locked(directory):
        if directory.exists():
            say(f"a lab {name} was here; clearing it away")
            _clear(directory)
        keeper = _spawn(directory, request)
    try:
        _await_ready(keeper, directory)
        return keeper, attach(name)
    except BaseException:
        _end(keeper)
        raise


def _end(keeper: subprocess.Popen[bytes]) -> None:
    """Let go of the keeper's pipe; it then stops everything and ends."""
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    with contextlib.suppress(OSError):
        keeper.stdin.close()
    keeper.send_signal(signal.SIGTERM)
    try:
        keeper.wait(timeout=30)
    except subprocess.TimeoutExpired:
        keeper.kill()
        keeper.wait()
    keeper.stdout.close()


def up(name: str, request: Request) -> Lab:
    """Bring a lab up and leave it running until `down`."""
    start = time.monotonic()
    keeper, lab = _launch(name, request)
    assert keeper.stdin is not None
    keeper.stdin.write(b"detach\n")
    keeper.stdin.close()
    say(f"{name} is up after {time.monotonic() - start:.1f} s")
    # The keeper lives on without us; Python would warn that nobody waited for it.
    keeper.returncode = 0
    return lab


@contextlib.contextmanager
def running(name: str, request: Request) -> Iterator[Lab]:
    """A lab that belongs to this process: it ends with the block, or with the process however that ends."""
    keeper, lab = _launch(name, request)
    try:
        yield lab
    finally:
        lab.api.close()
        _end(keeper)
        _clear(lab.directory)
