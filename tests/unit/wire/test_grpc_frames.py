"""The gate in front of h2: what passes, what is refused at its first nine bytes, and how long a peer may only talk."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishplate.wire.grpc_frames import (
    CREDIT,
    EARNED_BY_ANSWER,
    MAX_BLOCK,
    MAX_FRAME,
    MAX_SETTINGS,
    FrameGate,
    FrameRefused,
    Goaway,
    Reason,
    encode_goaway,
)
from tests.raw_grpc import PREFACE, frame

DATA, HEADERS, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 4, 6, 7, 9
END_HEADERS = 0x4


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def gate(clock: Clock | None = None, *, preface: bool = False) -> FrameGate:
    return FrameGate(preface=preface, clock=clock or Clock())


def feed(one: FrameGate, data: bytes) -> bytes:
    return one.feed(memoryview(data))


def refusal(one: FrameGate, data: bytes) -> int:
    with pytest.raises(FrameRefused) as caught:
        feed(one, data)
    return caught.value.code


frames = st.builds(
    frame,
    st.sampled_from([DATA, HEADERS, SETTINGS, PING, GOAWAY, 200]),
    st.binary(min_size=8, max_size=90),
    flags=st.just(END_HEADERS),
    stream=st.integers(0, 9),
)


@given(st.lists(frames, max_size=8), st.lists(st.integers(1, 40), min_size=1))
def test_pieces_of_any_size_give_the_same(given_frames: list[bytes], sizes: list[int]) -> None:
    whole, pieces = gate(preface=True), gate(preface=True)
    data = PREFACE + b"".join(given_frames)
    passed, at = b"", 0
    while at < len(data):
        size = sizes[at % len(sizes)]
        passed += feed(pieces, data[at : at + size])
        at += size
    assert passed == feed(whole, data) == PREFACE + b"".join(one for one in given_frames if one[3] != GOAWAY)
    assert pieces.goaway == whole.goaway


def test_a_frame_that_is_too_long_is_refused_at_its_header() -> None:
    assert feed(gate(), frame(DATA, bytes(MAX_FRAME)))
    assert refusal(gate(), frame(DATA, length=MAX_FRAME + 1)) == Reason.FRAME_SIZE_ERROR
    assert refusal(gate(), frame(200, length=(1 << 24) - 1)) == Reason.FRAME_SIZE_ERROR


def test_headers_are_bounded_however_they_are_cut() -> None:
    half = bytes(MAX_BLOCK // 2)
    assert feed(gate(), frame(HEADERS, half) + frame(CONTINUATION, half, flags=END_HEADERS) + frame(HEADERS, half))
    more = frame(HEADERS, half) + frame(CONTINUATION, half) + frame(CONTINUATION, length=1, flags=END_HEADERS)
    assert refusal(gate(), more) == Reason.ENHANCE_YOUR_CALM


def test_settings_are_bounded_in_length_and_number() -> None:
    assert refusal(gate(), frame(SETTINGS, length=MAX_SETTINGS + 6)) == Reason.ENHANCE_YOUR_CALM
    one = gate()
    feed(one, frame(SETTINGS, bytes(MAX_SETTINGS)) * 20)
    assert refusal(one, frame(SETTINGS)) == Reason.ENHANCE_YOUR_CALM


@pytest.mark.parametrize("kind", [DATA, HEADERS, 2, 3, PING, 8, 200])
def test_who_only_talks_is_refused(kind: int) -> None:
    one = gate()
    feed(one, frame(kind, flags=END_HEADERS) * int(CREDIT))
    assert refusal(one, frame(kind)) == Reason.ENHANCE_YOUR_CALM


def test_empty_continuations_are_talk() -> None:
    one = gate()
    feed(one, frame(HEADERS) + frame(CONTINUATION) * (int(CREDIT) - 1))
    assert refusal(one, frame(CONTINUATION)) == Reason.ENHANCE_YOUR_CALM


def test_answers_payload_and_time_allow_more_but_never_more_than_at_first() -> None:
    clock = Clock()
    one = gate(clock)
    feed(one, frame(PING) * int(CREDIT))
    one.earn(EARNED_BY_ANSWER)
    feed(one, frame(PING) * 10)
    clock.now += 5
    feed(one, frame(PING) * 5)
    feed(one, frame(DATA, bytes(4096)) * 3 + frame(PING) * 9)
    assert refusal(one, frame(PING)) == Reason.ENHANCE_YOUR_CALM
    rested = gate(clock)
    clock.now += 1e6
    rested.earn(1e6)
    feed(rested, frame(PING) * int(CREDIT))
    assert refusal(rested, frame(PING)) == Reason.ENHANCE_YOUR_CALM


def test_a_goaway_is_read_and_does_not_pass() -> None:
    one = gate()
    ping = frame(PING, bytes(8))
    assert feed(one, ping + encode_goaway(7, Reason.ENHANCE_YOUR_CALM, b"why") + ping) == ping + ping
    assert one.goaway == Goaway(7, Reason.ENHANCE_YOUR_CALM)


def test_a_goaway_that_is_too_short_is_refused() -> None:
    assert refusal(gate(), frame(GOAWAY, bytes(7))) == Reason.FRAME_SIZE_ERROR
    assert refusal(gate(), frame(GOAWAY)) == Reason.FRAME_SIZE_ERROR
