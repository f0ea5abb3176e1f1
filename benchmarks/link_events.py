"""A burst of link events in a network namespace of its own, and how often the driver's survey looks because of it."""

import asyncio
import ctypes
import multiprocessing
import subprocess
import time
from multiprocessing.connection import Connection

from fishplate.driver.inventory import Cause, NodeInventory
from fishplate.driver.survey import Allowance, Survey
from fishplate.node.events import KernelEvents
from fishplate.topology.inventory import Inventory

_CLONE_NEWNET = 0x40000000
_QUIET_S = 5.0


def count_scans(events: int) -> tuple[int, float]:
    """Scans that the events caused, the one at the start left out, and how long the burst took."""
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_inside, args=(there, events))
    child.start()
    there.close()  # a child that fails ends the wait below
    scans, seconds = here.recv()
    child.join()
    return scans, seconds


def _inside(pipe: Connection, events: int) -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["ip", "link", "add", "near", "type", "veth", "peer", "name", "far"], check=True)
    pipe.send(asyncio.run(_count(events)))


async def _count(events: int) -> tuple[int, float]:
    causes: list[Cause] = []
    inventory = NodeInventory(Inventory, on_scan=lambda cause, _: causes.append(cause))
    survey = Survey(inventory, allowance=Allowance(2.0, 5), interval=600.0)
    tasks = [asyncio.create_task(survey.run()), asyncio.create_task(survey.listen(KernelEvents()))]
    await asyncio.sleep(0.5)
    began = time.monotonic()
    batch = "\n".join(f"link set near {'up' if number % 2 else 'down'}" for number in range(events))
    burst = await asyncio.create_subprocess_exec("ip", "-batch", "-", stdin=subprocess.PIPE)
    await burst.communicate(batch.encode())
    seconds = time.monotonic() - began
    await asyncio.sleep(_QUIET_S)
    for task in tasks:
        task.cancel()
    return causes.count("event"), seconds
