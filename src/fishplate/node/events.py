"""The kernel's word that something changed: links and default routes over rtnetlink, devices over uevents.

What is iterated over are ticks, not events: each says "look again", however many events it stands for. A tick must
never be lost and may come too often, so everything doubtful is a tick: an overrun socket (the kernel dropped events), a
socket that failed and was opened again. Needs no privileges. Where there is no netlink there are no ticks, which is
said once; the clock then has to do.

Not done here: deciding what changed. Messages are read only as far as it takes to leave out those of no concern: a
route that is no default route, a uevent of another subsystem, anything that did not come from the kernel.
"""

import asyncio
import errno
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from fishplate.node.bursts import Burst
from fishplate.node.rtnetlink import parse_default_route, parse_messages

_LOG = logging.getLogger(__name__)

_NETLINK_KOBJECT_UEVENT = 15
_RTMGRP_LINK, _RTMGRP_IPV4_ROUTE, _RTMGRP_IPV6_ROUTE = 0x1, 0x40, 0x400
_UEVENT_KERNEL = 1  # group 2 is udev's
_LINK_MESSAGES = (16, 17)  # RTM_NEWLINK, RTM_DELLINK
_ROUTE_MESSAGES = (24, 25)  # RTM_NEWROUTE, RTM_DELROUTE
_SUBSYSTEMS = (b"infiniband", b"infiniband_verbs", b"infiniband_mad", b"net", b"pci")
_BUFFER = 1 << 20  # what the kernel keeps for us while we look elsewhere
_MOST_PER_TURN = 256  # messages read before others get their turn
_LONGEST_BACK_OFF = 60.0


class Source(NamedTuple):
    """One netlink family: how to open it, and which of its messages matter."""

    name: str
    open: Callable[[], socket.socket]
    matters: Callable[[bytes], bool]


def open_route() -> socket.socket:
    return _open(socket.NETLINK_ROUTE, _RTMGRP_LINK | _RTMGRP_IPV4_ROUTE | _RTMGRP_IPV6_ROUTE)


def open_uevents() -> socket.socket:
    return _open(_NETLINK_KOBJECT_UEVENT, _UEVENT_KERNEL)


def _open(protocol: int, groups: int) -> socket.socket:
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        opened.bind((0, groups))
    except OSError:
        opened.close()
        raise
    return opened


def route_matters(data: bytes) -> bool:
    """Link messages, and routes that make or end an uplink. Every pod has routes; only default ones concern us."""
    return any(
        kind in _LINK_MESSAGES or (kind in _ROUTE_MESSAGES and parse_default_route(body) is not None)
        for kind, _, body in parse_messages(data)
    )


def uevent_matters(data: bytes) -> bool:
    """`add@/devices/…`, then NUL-separated variables, one of them SUBSYSTEM."""
    head, *variables = data.split(b"\0")
    if b"@" not in head:
        return False
    return any(one.startswith(b"SUBSYSTEM=") and one[10:] in _SUBSYSTEMS for one in variables)


SOURCES = (Source("rtnetlink", open_route, route_matters), Source("uevents", open_uevents, uevent_matters))


class KernelEvents:
    """`async for _ in KernelEvents(): rescan()`. One consumer; ends by cancelling it or by `close()`."""

    def __init__(
        self,
        *,
        sources: tuple[Source, ...] = SOURCES,
        burst: Burst | None = None,
        first_back_off: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._burst = burst or Burst()
        self._clock = clock
        self._noted = asyncio.Event()
        self._closed = False
        self._watches = [_Watch(source, self._note, first_back_off) for source in sources]
        self.events = 0  # that mattered
        self.ticks = 0

    @property
    def overruns(self) -> int:
        """How often the kernel dropped events because we were too slow."""
        return sum(watch.overruns for watch in self._watches)

    @property
    def reopened(self) -> int:
        return sum(watch.reopened for watch in self._watches)

    @property
    def problems(self) -> tuple[str, ...]:
        """Why a source is silent, for each that is."""
        return tuple(watch.problem for watch in self._watches if watch.problem)

    def close(self) -> None:
        self._closed = True
        for watch in self._watches:
            watch.close()
        self._noted.set()

    def _note(self) -> None:
        self.events += 1
        self._burst.note(self._clock())
        self._noted.set()

    async def __aiter__(self) -> AsyncIterator[None]:
        try:
            for watch in self._watches:
                watch.start()
            while not self._closed:
                due = self._burst.due
                if due is None:
                    self._noted.clear()
                    await self._noted.wait()
                elif self._burst.take(self._clock()):
                    self.ticks += 1
                    yield
                else:
                    # Woken by the clock alone: events that come meanwhile move the time, they do not wake us.
                    await asyncio.sleep(max(due - self._clock(), 0.001))
        finally:
            self.close()


class _Watch:
    """One socket in the event loop, opened again when it fails."""

    def __init__(self, source: Source, note: Callable[[], None], first_back_off: float) -> None:
        self._source = source
        self._note = note
        self._first_back_off = first_back_off
        self._back_off = first_back_off
        self._loop: asyncio.AbstractEventLoop | None = None
        self._socket: socket.socket | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.problem = ""
        self.overruns = 0
        self.reopened = 0

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            self._socket = self._source.open()
        except (OSError, AttributeError) as error:
            # Not Linux, or a sandbox without netlink: that does not pass, so nobody tries again.
            self.problem = f"no events from {self._source.name}: {error}"
            _LOG.warning("%s; changes are found by the clock alone", self.problem)
            return
        self._loop.add_reader(self._socket.fileno(), self._read)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._drop_socket()

    def _drop_socket(self) -> None:
        if self._socket is not None and self._loop is not None:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def _read(self) -> None:
        assert self._socket is not None
        for _ in range(_MOST_PER_TURN):
            try:
                data, sender = self._socket.recvfrom(1 << 16)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    self.overruns += 1
                    self._note()
                    continue
                self._fail(error)
                return
            self._back_off = self._first_back_off
            # Sender 0 is the kernel. Any process may send to a netlink socket.
            if sender[0] == 0 and self._source.matters(data):
                self._note()

    def _fail(self, error: OSError) -> None:
        self.problem = f"no events from {self._source.name}: {error}"
        _LOG.warning("%s; trying again in %g s", self.problem, self._back_off)
        self._drop_socket()
        assert self._loop is not None
        self._timer = self._loop.call_later(self._back_off, self._reopen)
        self._back_off = min(self._back_off * 2, _LONGEST_BACK_OFF)

    def _reopen(self) -> None:
        assert self._loop is not None
        self._timer = None
        try:
            self._socket = self._source.open()
        except OSError as error:
            self._fail(error)
            return
        self.problem = ""
        self.reopened += 1
        self._loop.add_reader(self._socket.fileno(), self._read)
        self._note()  # whatever happened in between was not heard
