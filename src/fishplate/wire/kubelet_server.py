"""Signatures first; the body follows."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fishplate.wire.kubelet import DraHandler


class RegistrationPhase(enum.Enum):
    WAITING = "waiting"  # the kubelet has not come yet
    REGISTERED = "registered"
    REFUSED = "refused"
    STOPPED = "stopped"


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    phase: RegistrationPhase
    since: float
    notifications: int = 0
    error: str = ""


class SocketPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Defaults: /var/lib/kubelet/plugins/<driver>/dra.sock and /var/lib/kubelet/plugins_registry/<driver>-reg.sock;
    with `pod_uid` (rolling update) dra-<uid>.sock and <driver>-<uid>-reg.sock."""

    service: Path
    registration: Path


def plan_socket_paths(driver: str, *, plugins: Path, registry: Path, pod_uid: str = "") -> SocketPaths:
    raise NotImplementedError


class KubeletServer:
    """The service socket, then the registration socket; both gone after stop().

    async with KubeletServer(handler, driver="dra.net", paths=paths) as server:
        await server.wait_until(RegistrationPhase.REGISTERED)
    """

    def __init__(
        self,
        handler: DraHandler,
        *,
        driver: str,
        paths: SocketPaths,
        health: bool = True,
        on_change: Callable[[Registration], None] | None = None,
    ) -> None:
        raise NotImplementedError

    @property
    def registration(self) -> Registration:
        raise NotImplementedError

    async def start(self) -> None:
        raise NotImplementedError

    async def wait_until(self, phase: RegistrationPhase) -> Registration:
        raise NotImplementedError

    async def stop(self, grace: float = 5.0) -> None:
        raise NotImplementedError
