"""Kernel events, from a real kernel: veth pairs in a network namespace that a child process makes."""

import asyncio
import errno
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishplate.node.bursts import Burst
from fishplate.node.events import KernelEvents, Source, open_route, open_uevents, route_matters, uevent_matters
from tests.unit.node.test_rtnetlink import attribute, message, route

UEVENT = b"add@/devices/x\0ACTION=add\0DEVPATH=/devices/x\0SUBSYSTEM=%s\0SEQNUM=1\0"
QUICK = {"quiet": 0.02, "longest": 0.5}


# -- which messages matter ---------------------------------------------------------------------------------------


def test_links_and_default_routes_matter_and_other_routes_do_not() -> None:
    assert route_matters(message(16, b""))
    assert route_matters(message(17, b""))
    leg = attribute(4, struct.pack("=I", 5))
    assert route_matters(message(24, route(attributes=leg)))
    assert route_matters(message(25, route(attributes=leg)))
    assert not route_matters(message(24, route(prefix=24, attributes=leg)))
    assert not route_matters(message(24, route(table=103, attributes=leg)))
    assert not route_matters(message(20, b""))
    assert route_matters(message(24, route(prefix=24)) + message(16, b""))


@pytest.mark.parametrize("subsystem", [b"infiniband", b"infiniband_verbs", b"infiniband_mad", b"net", b"pci"])
def test_devices_of_our_concern_matter(subsystem: bytes) -> None:
    assert uevent_matters(UEVENT % subsystem)


@pytest.mark.parametrize(
    "data", [UEVENT % b"block", UEVENT % b"queues", b"libudev\0\xfe\xed\xca\xfe", b"", b"@", b"\0" * 9]
)
def test_other_devices_and_udevs_own_words_do_not(data: bytes) -> None:
    assert not uevent_matters(data)


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(data: bytes) -> None:
    route_matters(data)
    uevent_matters(data)


# -- the iterator ------------------------------------------------------------------------------------------------


def pair() -> tuple[socket.socket, socket.socket]:
    """Our end, which does not block, and the other one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.setblocking(False)
    return ours, theirs


class Wire:
    """A socket that stands for netlink's: datagrams from sender 0, and errors as told."""

    def __init__(self) -> None:
        self.ours, self.theirs = pair()
        self.errors: list[int] = []
        self.senders: list[int] = []
        self.closed = False

    def fileno(self) -> int:
        return self.ours.fileno()

    def recvfrom(self, size: int) -> tuple[bytes, tuple[int, int]]:
        if self.errors:
            code = self.errors.pop(0)
            raise OSError(code, os.strerror(code))
        return self.ours.recv(size), (self.senders.pop(0) if self.senders else 0, 1)

    def close(self) -> None:
        self.closed = True
        self.ours.close()
        self.theirs.close()


def listen(opened: list[Wire], story: Callable[[KernelEvents, list[int]], object], failing: int = 0) -> KernelEvents:
    """Run a story beside an iterator; the list grows by one with every tick. Opening fails the second to n-th time."""
    attempts = 0

    def open_wire() -> socket.socket:
        nonlocal attempts
        attempts += 1
        if 1 < attempts <= failing + 1:
            raise OSError(errno.EMFILE, "no more files")
        opened.append(Wire())
        return opened[-1]  # type: ignore[return-value]

    async def both() -> KernelEvents:
        source = Source("test", open_wire, lambda data: data != b"noise")
        events = KernelEvents(sources=(source,), burst=Burst(**QUICK), first_back_off=0.01)
        ticks: list[int] = []

        async def consume() -> None:
            async for _ in events:
                ticks.append(events.events)  # noqa: PERF401 - read by others while it grows

        task = asyncio.create_task(consume())
        await until(lambda: bool(opened))
        told = story(events, ticks)
        assert asyncio.iscoroutine(told)
        await told
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return events

    return asyncio.run(both())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in the kernel
            await asyncio.sleep(0.002)


def test_a_burst_is_one_tick_and_noise_is_none() -> None:
    wires: list[Wire] = []

    async def story(events: KernelEvents, ticks: list[int]) -> None:
        for _ in range(5):
            wires[0].theirs.send(b"noise")
        for _ in range(5):
            wires[0].theirs.send(b"x")
        await until(lambda: bool(ticks))
        assert ticks == [5]

    assert listen(wires, story).ticks == 1
    assert wires[0].closed


def test_what_does_not_come_from_the_kernel_is_not_heard() -> None:
    wires: list[Wire] = []

    async def story(events: KernelEvents, ticks: list[int]) -> None:
        wires[0].senders = [4711, 0]
        wires[0].theirs.send(b"x")
        wires[0].theirs.send(b"x")
        await until(lambda: bool(ticks))
        assert ticks == [1]

    listen(wires, story)


def test_an_overrun_is_counted_and_is_a_tick() -> None:
    wires: list[Wire] = []

    async def story(events: KernelEvents, ticks: list[int]) -> None:
        wires[0].errors = [errno.ENOBUFS]
        wires[0].theirs.send(b"noise")
        await until(lambda: bool(ticks))
        assert (events.overruns, events.reopened) == (1, 0)
        wires[0].theirs.send(b"x")  # and it goes on
        await until(lambda: len(ticks) == 2)

    listen(wires, story)


def test_a_socket_that_fails_is_opened_again_and_that_is_a_tick() -> None:
    wires: list[Wire] = []

    async def story(events: KernelEvents, ticks: list[int]) -> None:
        wires[0].errors = [errno.EIO]
        wires[0].theirs.send(b"x")
        await until(lambda: bool(events.problems))
        assert "Input/output error" in events.problems[0]
        await until(lambda: bool(ticks))
        assert (events.reopened, events.problems, wires[0].closed, len(wires)) == (1, (), True, 2)
        wires[1].theirs.send(b"x")
        await until(lambda: len(ticks) == 2)

    listen(wires, story, failing=2)


def test_without_netlink_it_says_so_once_and_stays_silent(caplog: pytest.LogCaptureFixture) -> None:
    def refuse() -> socket.socket:
        raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")

    async def wait() -> tuple[str, ...]:
        events = KernelEvents(sources=(Source("test", refuse, lambda data: True),), first_back_off=0.001)
        iterator = aiter(events)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(iterator), 0.05)
        return events.problems

    assert "Address family not supported" in asyncio.run(wait())[0]
    assert len(caplog.records) == 1
    assert "by the clock alone" in caplog.text


def test_closing_ends_the_iteration() -> None:
    async def wait() -> int:
        events = KernelEvents(sources=())
        asyncio.get_running_loop().call_soon(events.close)
        return len([tick async for tick in events])

    assert asyncio.run(wait()) == 0


# -- the kernel --------------------------------------------------------------------------------------------------


def test_the_sockets_need_no_privileges() -> None:
    program = (
        "import os; from fishplate.node.events import open_route, open_uevents\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "open_route().close(); open_uevents().close(); print(os.getuid())"
    )
    if os.geteuid() == 0:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "65534\n"), done.stderr
    else:
        open_route().close()
        open_uevents().close()


# Makes and removes veth pairs in a namespace of its own while it listens there, then says what it heard.
NAMESPACE = """
import asyncio, ctypes, os, socket, subprocess, sys
# CLONE_NEWNET; without privileges, CLONE_NEWUSER with it.
assert ctypes.CDLL(None).unshare(0x40000000 if os.geteuid() == 0 else 0x50000000) == 0
from fishplate.node.events import KernelEvents

async def main(commands):
    events = KernelEvents()
    ticks = []
    async def consume():
        async for _ in events:
            ticks.append(events.events)
    task = asyncio.create_task(consume())
    while not any(watch._socket for watch in events._watches):
        await asyncio.sleep(0.001)
    if sys.argv[1] == "overrun":
        # The smallest buffer, and nobody reads while the links are made.
        events._watches[0]._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        subprocess.run(["ip", "-batch", "-"], input=add.encode(), check=True)
        commands = []
        while not ticks:
            await asyncio.sleep(0.01)
    for batch in commands:
        before = len(ticks)
        done = await asyncio.create_subprocess_exec("ip", "-batch", "-", stdin=subprocess.PIPE)
        await done.communicate(batch.encode())
        assert done.returncode == 0
        while len(ticks) == before:
            await asyncio.sleep(0.01)
    while events._burst.due is not None:
        await asyncio.sleep(0.01)
    task.cancel()
    print(len(ticks), events.events, events.overruns, sorted(events.problems))

add = "".join(f"link add a{n} type veth peer name b{n}\\n" for n in range(50))
# Making links takes the kernel long on a busy machine, changing one does not: the burst stays a burst.
change = "".join(f"link set a0 mtu {1000 + n % 400}\\n" for n in range(1000))
CASES = {
    "burst": [add + change],
    "overrun": [],
    "one": ["link set lo up\\n"],
    "routes": ["link add a0 type veth peer name b0\\nlink set a0 up\\naddr add 192.0.2.2/24 dev a0\\n",
               "route add default via 192.0.2.1\\n", "route del default\\n"],
}
asyncio.run(asyncio.wait_for(main(CASES[sys.argv[1]]), 45))
"""


def hear(case: str) -> tuple[int, int, int]:
    """(ticks, events, overruns) of a case."""
    done = subprocess.run(
        [sys.executable, "-c", NAMESPACE, case], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    ticks, events, overruns, *_ = done.stdout.split()
    return int(ticks), int(events), int(overruns)


def test_a_thousand_link_events_are_at_most_three_ticks() -> None:
    ticks, events, overruns = hear("burst")
    assert events >= 1000 or overruns
    assert 1 <= ticks <= 3


def test_events_that_the_kernel_dropped_are_counted_and_looked_for() -> None:
    ticks, events, overruns = hear("overrun")
    assert overruns >= 1
    assert 1 <= ticks <= 3
    assert events < 500


def test_one_link_event_is_one_tick() -> None:
    assert hear("one")[0] == 1


def test_a_default_route_that_comes_and_goes_is_heard() -> None:
    assert hear("routes")[0] >= 3
