import asyncio
from collections.abc import Callable, Sequence

import pytest

from fishplate.errors import OutsideError, UnknownNameError, UsageError
from fishplate.node.metadata import DeviceId, NodeFacts, ProviderName, Refresher, choose_provider
from fishplate.node.metadata.attribute_rules import MEASURED
from fishplate.node.metadata.azure import AzureProvider
from tests.conftest import Host, Scan
from tests.unit.node.metadata.conftest import Reply, Site

GOOD = Reply(body=b'{"placementGroupId": "p1", "vmSize": "s"}')
BACK_OFF = 0.01


class Impatient(AzureProvider):
    """Azure, asked again at once."""

    interval = 0.01


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in another thread
            await asyncio.sleep(0.002)


def run(provider: AzureProvider, story: Callable[[Refresher, list[NodeFacts]], object]) -> None:
    """Run a refresher beside a story; every change of facts is kept in the list."""

    async def both() -> None:
        changes: list[NodeFacts] = []
        refresher = Refresher(provider, first_back_off=BACK_OFF, on_change=lambda: changes.append(refresher.facts))
        task = asyncio.create_task(refresher.run())
        try:
            told = story(refresher, changes)
            assert asyncio.iscoroutine(told)
            await told
        finally:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(both())


def test_the_first_answer_is_waited_for_and_told(site: Site) -> None:
    site.otherwise = GOOD

    async def story(refresher: Refresher, changes: list[NodeFacts]) -> None:
        assert not refresher.facts.state.answered
        facts = await refresher.settled(grace=20)
        assert facts.fabric == "p1"
        assert (facts.state.provider, facts.state.answered, facts.state.last_error) == ("azure", True, "")
        assert facts.state.age_seconds is not None
        assert len(changes) == 1

    run(AzureProvider(site.url), story)


def test_a_silent_service_does_not_hold_up_the_start(site: Site) -> None:
    site.otherwise = Reply(hold=True)

    async def story(refresher: Refresher, changes: list[NodeFacts]) -> None:
        facts = await refresher.settled(grace=0.05)
        # The first attempt is still under way, and was not waited for.
        assert (facts.state.attempts, facts.state.failures, facts.state.answered) == (1, 0, False)
        assert facts.state.age_seconds is None
        assert not changes

    run(AzureProvider(site.url), story)


@pytest.mark.parametrize("bad", [Reply(status=429), Reply(status=500), Reply(body=b"garbage"), Reply(raw=b"?")])
def test_a_service_that_comes_back_is_asked_until_it_answers(site: Site, bad: Reply) -> None:
    site.otherwise = bad

    async def story(refresher: Refresher, changes: list[NodeFacts]) -> None:
        await until(lambda: refresher.facts.state.failures >= 3)
        assert refresher.facts.state.last_error
        site.otherwise = GOOD
        await until(lambda: refresher.facts.state.answered)
        assert refresher.facts.state.last_error == ""
        assert [one.fabric for one in changes] == ["p1"]

    run(AzureProvider(site.url), story)


def test_the_last_good_answer_outlives_the_service(site: Site) -> None:
    site.otherwise = GOOD

    async def story(refresher: Refresher, changes: list[NodeFacts]) -> None:
        await refresher.settled(grace=20)
        site.otherwise = Reply(status=500)
        await until(lambda: refresher.facts.state.failures >= 2)
        facts = refresher.facts
        assert (facts.fabric, facts.state.answered) == ("p1", True)
        assert "HTTP 500" in facts.state.last_error
        assert len(changes) == 1

    run(Impatient(site.url), story)


def test_only_a_change_is_told(site: Site) -> None:
    site.otherwise = GOOD

    async def story(refresher: Refresher, changes: list[NodeFacts]) -> None:
        await until(lambda: refresher.facts.state.attempts >= 4)
        assert len(changes) == 1
        site.otherwise = Reply(body=b'{"placementGroupId": "p2", "vmSize": "s"}')
        await until(lambda: len(changes) == 2)
        assert changes[1].fabric == "p2"

    run(Impatient(site.url), story)


class Ledger:
    """A provider that knows devices one by one, and fails as told."""

    name: ProviderName = "webhook"
    interval = 3600.0

    def __init__(self, *, per_device: bool = True, error: Exception | None = None) -> None:
        self.per_device = per_device
        self.error = error
        self.calls: list[tuple[DeviceId, ...]] = []

    async def attributes(self, devices: Sequence[DeviceId]) -> NodeFacts:
        self.calls.append(tuple(devices))
        if self.error is not None:
            raise self.error
        return NodeFacts(devices={one.name: {"a.example/b": 1} for one in devices})


def test_new_devices_are_asked_about_soon_and_once() -> None:
    async def story() -> None:
        ledger = Ledger()
        refresher = Refresher(ledger)
        task = asyncio.create_task(refresher.run())
        await refresher.settled()
        device = DeviceId(name="eth1")
        refresher.ask_about([device])
        await until(lambda: refresher.facts.of_device(device) == {"a.example/b": 1})
        refresher.ask_about([device])
        for _ in range(5):
            await asyncio.sleep(0)
        assert ledger.calls == [(), (device,)]
        task.cancel()

    asyncio.run(story())


def test_a_provider_of_the_whole_node_is_not_woken_by_devices() -> None:
    async def story() -> None:
        ledger = Ledger(per_device=False)
        refresher = Refresher(ledger)
        task = asyncio.create_task(refresher.run())
        await refresher.settled()
        refresher.ask_about([DeviceId(name="eth1")])
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(ledger.calls) == 1
        task.cancel()

    asyncio.run(story())


def test_a_fault_in_a_provider_does_not_end_the_driver() -> None:
    async def story() -> None:
        refresher = Refresher(Ledger(error=ZeroDivisionError("oh")))
        task = asyncio.create_task(refresher.run())
        facts = await refresher.settled()
        assert facts.state.last_error == "ZeroDivisionError: oh"
        assert not task.done()
        task.cancel()

    asyncio.run(story())


def test_pauses_grow_and_are_spread() -> None:
    assert [Refresher(Ledger(), jitter=lambda: 1.0).plan_rest(n) for n in (1, 2, 3, 8, 99)] == [1, 2, 4, 120, 120]
    assert Refresher(Ledger(), jitter=lambda: 0.0).plan_rest(3) == 2
    assert Refresher(Ledger(), jitter=lambda: 0.0).plan_rest(0) == pytest.approx(3240)
    assert Refresher(Ledger(), jitter=lambda: 1.0).plan_rest(0) == pytest.approx(3960)


# -- the choice --------------------------------------------------------------------------------------------------


def test_upstreams_hints_choose_the_provider() -> None:
    assert choose_provider("AZURE").name == "azure"
    assert choose_provider("webhook", webhook_url="http://x").name == "webhook"
    assert choose_provider("NONE", cloud="azure").name == "none"
    assert choose_provider(file="f", cloud="azure").name == "file"


def test_without_a_hint_the_firmware_decides_and_nobody_is_probed() -> None:
    assert choose_provider(cloud="azure", webhook_url="http://x").name == "azure"
    assert choose_provider(webhook_url="http://x").name == "webhook"
    assert choose_provider().name == "none"


@pytest.mark.parametrize("hint", ["AWS", "GCE", "OKE", "ALIBABA", "CKS"])
def test_clouds_that_are_not_read_are_refused_with_a_way_out(hint: str) -> None:
    with pytest.raises(UsageError, match="not supported\n  use the file or webhook provider"):
        choose_provider(hint)


def test_contradicting_flags_are_refused() -> None:
    with pytest.raises(UsageError, match="--webhook-url"):
        choose_provider("webhook")
    with pytest.raises(UsageError, match="exclude each other"):
        choose_provider("AZURE", file="f")
    with pytest.raises(UnknownNameError, match="AZUR"):
        choose_provider("AZUR")


def test_no_provider_may_speak_of_what_is_measured(make_host: Host, scan_host: Scan) -> None:
    from fishplate.topology.attributes import device_attributes

    published = {name for nic in scan_host(make_host()).nics for name in device_attributes(nic)}
    own = {name for name in published if name.startswith("dra.net/")}
    assert own - MEASURED == set()
    assert len(own) > 10


def test_outside_errors_keep_their_remedy() -> None:
    async def story() -> None:
        refresher = Refresher(Ledger(error=OutsideError("no", where="w", remedy="do this")))
        task = asyncio.create_task(refresher.run())
        assert (await refresher.settled()).state.last_error == "w: no\n  do this"
        task.cancel()

    asyncio.run(story())
