import asyncio

from fishplate.driver.inventory import Cause, NodeInventory
from fishplate.driver.survey import Allowance, Survey
from fishplate.driver.turns import Turns
from fishplate.topology.inventory import Inventory


def test_a_burst_is_free_and_then_each_look_waits_its_turn() -> None:
    now = 0.0
    allowance = Allowance(2.0, 3, clock=lambda: now)
    assert [allowance.wait_s() for _ in range(5)] == [0.0, 0.0, 0.0, 2.0, 4.0]
    now = 100.0
    assert allowance.wait_s() == 0.0


async def _count_scans(requests: int) -> list[Cause]:
    causes: list[Cause] = []
    scanned = asyncio.Event()

    def note(cause: Cause, _: Inventory) -> None:
        causes.append(cause)
        scanned.set()

    survey = Survey(NodeInventory(Inventory, on_scan=note), allowance=Allowance(0.05, 1), interval=60.0)
    task = asyncio.create_task(survey.run())
    await scanned.wait()
    scanned.clear()
    for _ in range(requests):
        survey.request("event")
    await scanned.wait()
    await asyncio.wait({task}, timeout=0.2)
    task.cancel()
    return causes


def test_a_thousand_events_at_once_are_one_scan() -> None:
    assert asyncio.run(_count_scans(1000)) == ["start", "event"]


def test_a_scan_that_fails_does_not_end_the_survey() -> None:
    async def story() -> int:
        tries = 0

        def scan() -> Inventory:
            nonlocal tries
            tries += 1
            if tries == 1:
                raise RuntimeError("a fault of ours")
            return Inventory()

        done = asyncio.Event()
        inventory = NodeInventory(scan, on_scan=lambda *_: done.set())
        survey = Survey(inventory, allowance=Allowance(0.0, 1), interval=0.01)
        task = asyncio.create_task(survey.run())
        await done.wait()
        task.cancel()
        return tries

    assert asyncio.run(story()) >= 2


def test_whoever_asks_during_a_scan_gets_one_that_started_after_asking() -> None:
    async def story() -> int:
        started = 0
        running, gate = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def scan() -> Inventory:
            nonlocal started
            started += 1
            if started == 1:
                loop.call_soon_threadsafe(running.set)
                asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()
            return Inventory()

        inventory = NodeInventory(scan)
        first = asyncio.create_task(inventory.rescan("request"))
        await running.wait()
        late = [asyncio.create_task(inventory.rescan("request")) for _ in range(5)]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(first, *late)
        return started

    assert asyncio.run(story()) == 2


def test_turns_of_one_key_do_not_overlap_and_leave_nothing_behind() -> None:
    async def story() -> tuple[int, int]:
        turns, inside, most = Turns(), 0, 0

        async def work() -> None:
            nonlocal inside, most
            async with turns.of("claim"):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(work() for _ in range(20)))
        return most, len(turns)

    assert asyncio.run(story()) == (1, 0)
