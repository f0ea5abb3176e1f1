import asyncio

from fishplate.driver.records import Claim, Held
from fishplate.driver.status import Report, StatusWriter, report_prepared, report_problem
from fishplate.errors import OutsideError
from fishplate.k8s.api import Api

CLAIM = Claim(uid="u", namespace="ns", name="c", held=(Held(request="nic", device="d", pool="n"),), since=1.0)
READY = report_prepared(CLAIM, driver="dra.net")
LOST = report_problem(CLAIM, driver="dra.net", reason="DeviceLost", message="gone", at=2.0)


class Taker(Api):
    """Takes what is applied; the first `failures` times it does not."""

    def __init__(self, failures: int = 0) -> None:
        self.taken: list[str] = []
        self.failures = failures
        self.gate: asyncio.Event | None = None

    async def apply(self, path: str, body: object, *, manager: str) -> bytes:
        if self.gate:
            await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise OutsideError("away")
        assert isinstance(body, dict)
        self.taken.append(body["status"]["devices"][0].conditions[0].reason)
        return b""


async def wait_until_written(writer: StatusWriter) -> None:
    while writer.waiting:  # noqa: ASYNC110 - it tells nobody, and need not
        await asyncio.sleep(0.01)


async def write(taker: Taker, *reports: Report) -> list[str]:
    writer = StatusWriter(taker, manager="dra.net")
    task = asyncio.create_task(writer.run())
    for report in reports:
        writer.tell(report)
    await wait_until_written(writer)
    task.cancel()
    return taker.taken


def test_the_same_words_are_not_written_twice() -> None:
    assert asyncio.run(write(Taker(), READY, READY)) == ["RDMAOnlyDeviceReady"]


def test_a_report_is_tried_again_until_it_is_taken() -> None:
    assert asyncio.run(write(Taker(failures=2), READY)) == ["RDMAOnlyDeviceReady"]


def test_what_is_said_last_is_what_stands_there() -> None:
    async def story() -> list[str]:
        taker = Taker()
        writer = StatusWriter(taker, manager="dra.net")
        task = asyncio.create_task(writer.run())
        writer.tell(READY)
        await wait_until_written(writer)
        taker.gate = asyncio.Event()
        writer.tell(LOST)
        await asyncio.sleep(0.02)  # it is on its way
        writer.tell(READY)
        taker.gate.set()
        await wait_until_written(writer)
        task.cancel()
        return taker.taken

    assert asyncio.run(story())[-1] == "RDMAOnlyDeviceReady"


def test_a_claim_that_is_forgotten_leaves_nothing_behind() -> None:
    writer = StatusWriter(Taker(), manager="dra.net")
    writer.tell(LOST)
    writer.forget("u")
    assert writer.waiting == 0
