from hypothesis import given
from hypothesis import strategies as st

from fishplate.node.bursts import Burst


def replay(times: list[float], burst: Burst) -> list[float]:
    """When somebody who sleeps until it is due would look, if events come at these times."""
    ticks: list[float] = []
    for now in times:
        while (due := burst.due) is not None and due <= now:
            assert burst.take(due)
            ticks.append(due)
        burst.note(now)
    while (due := burst.due) is not None:
        assert burst.take(due)
        ticks.append(due)
    return ticks


def test_nothing_is_due_before_the_first_event() -> None:
    burst = Burst()
    assert burst.due is None
    assert not burst.take(1e9)


def test_a_single_event_is_looked_at_after_a_moment() -> None:
    assert replay([10.0], Burst(quiet=0.2)) == [10.2]


def test_a_burst_is_one_look() -> None:
    assert len(replay([index / 1000 for index in range(1000)], Burst(quiet=0.2, longest=2))) == 1


def test_a_burst_that_does_not_end_is_looked_at_ever_more_seldom() -> None:
    ticks = replay([index / 100 for index in range(100 * 100)], Burst(quiet=0.2, longest=2, slowest=20))
    gaps = [round(later - sooner) for sooner, later in zip([0.0, *ticks], ticks, strict=False)]
    assert gaps[:6] == [2, 4, 8, 16, 20, 20]


def test_a_thousand_events_in_five_seconds_are_at_most_three_looks() -> None:
    for seconds in (0.01, 0.5, 1, 2, 3, 5):
        assert len(replay([index * seconds / 1000 for index in range(1000)], Burst())) <= 3


def test_quiet_brings_patience_back() -> None:
    storm = [index / 100 for index in range(1000)]
    later = [100 + index / 100 for index in range(1000)]
    ticks = replay(storm + later, Burst(quiet=0.2, longest=2))
    assert [round(tick) for tick in ticks if tick >= 100] == [102, 106, 110]


@given(st.lists(st.floats(min_value=0, max_value=100), min_size=1, max_size=60).map(sorted))
def test_every_event_is_followed_by_a_look_in_bounded_time(times: list[float]) -> None:
    ticks = replay(times, Burst(quiet=0.2, longest=2, slowest=8))
    for event in times:
        assert any(event <= tick <= event + 8 + 1e-6 for tick in ticks)
    assert len(ticks) <= len(times)
