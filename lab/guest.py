"""A node from outside: run a command on it, put a file there.

All sessions share one connection per node, which the keeper holds: a new key exchange costs seconds under emulation.
The sockets have short relative names in the state directory, since socket paths must fit 108 bytes.
"""

import io
import shlex
import socket
import subprocess
import tarfile
from pathlib import Path

from fishplate.errors import OutsideError
from lab.state import NodeState


def ssh_argv(node: NodeState) -> list[str]:
    options = {
        "IdentityFile": "ssh_key",
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": "known_hosts",
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "ControlPath": f"ssh-{node.name}",
        "BatchMode": "yes",
        "ConnectTimeout": "20",
        "ServerAliveInterval": "30",
        "ServerAliveCountMax": "20",
        "LogLevel": "ERROR",
    }
    flags = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-F", "/dev/null", *flags, "-p", str(node.ssh_port), "root@127.0.0.1"]


def master_argv(node: NodeState) -> list[str]:
    argv = ssh_argv(node)
    return [argv[0], "-N", "-M", *argv[1:]]


def answers_ssh(node: NodeState) -> bool:
    """QEMU accepts the connection before the node listens; only the greeting proves that it does."""
    try:
        with socket.create_connection(("127.0.0.1", node.ssh_port), timeout=2) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


class Node:
    def __init__(self, state: NodeState, directory: Path) -> None:
        self.name = state.name
        self.directory = directory
        self._state = state

    def argv(self, command: str) -> list[str]:
        return [*ssh_argv(self._state), "--", command]

    def run(
        self, command: str, *, check: bool = True, timeout_s: float = 120.0, stdin: bytes | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command on the node as root. With `check`, a failure is an error that shows what was said."""
        argv = self.argv(command)
        try:
            done = subprocess.run(
                argv, cwd=self.directory, input=stdin or b"", capture_output=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise OutsideError(f"not done within {timeout_s:.0f} s: {command}", where=self.name) from error
        out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        if check and done.returncode:
            said = "\n".join((err or out).strip().splitlines()[-20:])
            raise OutsideError(f"exit {done.returncode} from: {command}\n{said}", where=self.name)
        return subprocess.CompletedProcess(command, done.returncode, out, err)

    def put(self, path: Path, directory: str = "/root") -> str:
        """Copy a file or directory into a directory of the node; its path there."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            tar.add(path, arcname=path.name)
        where = shlex.quote(directory)
        unpack = f"mkdir -p {where} && tar -xf - --no-same-owner -C {where}"
        self.run(unpack, stdin=buffer.getvalue())
        return f"{directory}/{path.name}"
