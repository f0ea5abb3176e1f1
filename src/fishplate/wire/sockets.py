"""Socket files: where the kubelet looks for them, and how to put one there without a moment of wrong modes.

The mode of a socket file is the only lock on it. A server binds to a hidden name beside the wanted one (the kubelet
ignores names that start with a dot), the mode is set, and when it answers the file is renamed: that replaces a stale
socket in one step and shows nobody a socket that does not work yet. It also keeps asyncio from deleting, when a
server ends (Python 3.13), a file of that name that a successor has put there meanwhile.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import os
import stat
from typing import TYPE_CHECKING

import msgspec

from fishplate.errors import InputError, OutsideError

if TYPE_CHECKING:
    from pathlib import Path

MAX_PATH = 107  # bytes in sockaddr_un.sun_path, less the NUL
SOCKET_MODE = 0o600
DIRECTORY_MODE = 0o750

_numbers = itertools.count()


class SocketPaths(msgspec.Struct, frozen=True, kw_only=True):
    service: Path
    registration: Path


def plan_socket_paths(driver: str, *, plugins: Path, registry: Path, pod_uid: str = "") -> SocketPaths:
    """Where k8s.io/dynamic-resource-allocation puts them (kubeletplugin/draplugin.go); `plugins` is the directory of
    all plugins, /var/lib/kubelet/plugins. With `pod_uid` the names differ from pod to pod, for rolling updates."""
    service = _first_that_fits(plugins / driver, _service_names(pod_uid))
    return SocketPaths(service=service, registration=_first_that_fits(registry, _registration_names(driver, pod_uid)))


def _service_names(pod_uid: str) -> list[str]:
    """The kubelet is told this one, so that any name will do."""
    return [f"dra-{pod_uid}.sock", f"dra-{_digest(pod_uid, 8)}.sock"] if pod_uid else ["dra.sock"]


def _registration_names(driver: str, pod_uid: str) -> list[str]:
    if not pod_uid:
        return [f"{driver}-reg.sock"]
    short, shortest = _digest(pod_uid, 8), _digest(f"{driver}\0{pod_uid}", 16)
    return [f"{driver}-{pod_uid}-reg.sock", f"{driver}-{short}-reg.sock", f"dra-{shortest}-reg.sock"]


def _first_that_fits(folder: Path, names: list[str]) -> Path:
    for name in names:
        if len(os.fsencode(folder / name)) <= MAX_PATH:
            return folder / name
    raise InputError(
        f"a socket's path may have {MAX_PATH} bytes",
        where=str(folder / names[-1]),
        remedy="use a shorter driver name or kubelet directory",
    )


def _digest(text: str, size: int) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:size]).decode().rstrip("=")


def remove_stale_socket(path: Path) -> None:
    """Make room for a socket. What is no socket is not ours to remove."""
    if _is_stale_socket(path):
        path.unlink(missing_ok=True)


def _is_stale_socket(path: Path) -> bool:
    """Whether a socket is in the way; raises for anything else that is."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(mode):
        raise OutsideError("there is a file that is no socket", where=str(path), remedy="remove it")
    return True


class SocketFile:
    """A socket file that is ours: bound at `hidden`, then shown at `path`, then removed if it still is the same."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Short, so that it fits wherever the wanted name fits.
        self.hidden = path.with_name(f".{os.getpid():x}{next(_numbers):x}")
        self._inode: int | None = None

    def prepare(self) -> None:
        """The directory is there, and what is in the way is a stale socket or nothing."""
        self.path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        remove_stale_socket(self.hidden)
        _is_stale_socket(self.path)  # `show` will replace it

    def show(self) -> None:
        self.hidden.chmod(SOCKET_MODE)
        self._inode = self.hidden.lstat().st_ino
        self.hidden.rename(self.path)

    @property
    def is_shown(self) -> bool:
        try:
            return self._inode is not None and self.path.lstat().st_ino == self._inode
        except OSError:
            return False

    def remove(self) -> None:
        if self.is_shown:
            self.path.unlink(missing_ok=True)
        self.hidden.unlink(missing_ok=True)
