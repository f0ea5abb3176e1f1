"""ttrpc messages: worked bytes of a registration, limits, and what a reader may hold."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishplate.wire import ttrpc
from fishplate.wire.mux import PLUGIN_SERVICE, RUNTIME_SERVICE, frame_message
from fishplate.wire.proto import nri_pb2
from fishplate.wire.ttrpc import MAX_LENGTH, Code, Kind, Message, Reader, Request, StatusError

HUGE = bytes.fromhex("00500000 00000007 01 00")  # a header that announces 5 MiB


def feed(reader: Reader, data: bytes) -> list[Message]:
    return reader.feed(memoryview(data))


def test_a_registration_has_these_bytes() -> None:
    payload = nri_pb2.RegisterPluginRequest(plugin_name="demo", plugin_idx="10").SerializeToString()
    message = ttrpc.encode_request(1, Request("nri.pkg.api.v1alpha1.Runtime", "RegisterPlugin", payload, 5.0))
    assert frame_message(RUNTIME_SERVICE, message) == (
        bytes.fromhex("00000002 0000004a 00000040 00000001 01 00 0a1c")
        + b"nri.pkg.api.v1alpha1.Runtime"
        + bytes.fromhex("120e")
        + b"RegisterPlugin"
        + bytes.fromhex("1a0a 0a04 64656d6f 1202 3130 20 80e497d012")
    )


def test_an_empty_success_has_these_bytes() -> None:
    wire = frame_message(RUNTIME_SERVICE, ttrpc.encode_answer(1, b""))
    assert wire == bytes.fromhex("00000002 0000000c 00000002 00000001 02 00 0a00")


def test_the_events_of_configure_are_field_two() -> None:
    payload = nri_pb2.ConfigureResponse(events=0x0F).SerializeToString()
    wire = frame_message(PLUGIN_SERVICE, ttrpc.encode_answer(1, payload))
    assert wire == bytes.fromhex("00000001 00000010 00000006 00000001 02 00 0a00 1202 100f")


def test_an_unimplemented_method_has_these_bytes() -> None:
    wire = frame_message(PLUGIN_SERVICE, ttrpc.encode_refusal(3, Code.UNIMPLEMENTED, "method Foo"))
    assert wire == bytes.fromhex("00000001 0000001a 00000010 00000003 02 00 0a0e 080c 120a") + b"method Foo"


@given(
    payloads=st.lists(st.binary(max_size=300), max_size=6),
    cuts=st.lists(st.integers(0, 2000), max_size=10),
)
def test_messages_come_out_as_they_went_in_however_they_are_cut(payloads: list[bytes], cuts: list[int]) -> None:
    wire = b"".join(ttrpc.encode_message(2 * n + 1, Kind.REQUEST, payload) for n, payload in enumerate(payloads))
    edges = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    reader = Reader()
    found = [m for begin, end in itertools.pairwise(edges) for m in feed(reader, wire[begin:end])]
    assert [(m.stream, m.payload) for m in found] == [(2 * n + 1, payload) for n, payload in enumerate(payloads)]
    assert reader.held == 0


def test_a_message_too_long_is_reported_once_and_its_bytes_are_not_kept() -> None:
    reader = Reader()
    assert feed(reader, HUGE) == [Message(stream=7, kind=1, flags=0, length=5 << 20, payload=None)]
    for _ in range(5):
        assert feed(reader, bytes(1 << 20)) == []
        assert reader.held == 0


def test_reading_goes_on_behind_a_message_too_long() -> None:
    reader = Reader()
    after = ttrpc.encode_message(9, Kind.REQUEST, b"!")
    found = feed(reader, HUGE + bytes(5 << 20) + after)
    assert [(m.stream, m.payload) for m in found] == [(7, None), (9, b"!")]


def test_a_reader_holds_no_more_than_one_message() -> None:
    reader = Reader()
    feed(reader, MAX_LENGTH.to_bytes(4, "big") + bytes.fromhex("00000001 01 00"))
    for _ in range(4):
        feed(reader, bytes((1 << 20) - 1))
    assert reader.held == 10 + MAX_LENGTH - 4
    assert [m.length for m in feed(reader, bytes(4))] == [MAX_LENGTH]
    assert reader.held == 0


def test_what_is_too_long_to_send_is_not_sent() -> None:
    with pytest.raises(StatusError, match="4194305") as caught:
        ttrpc.encode_message(1, Kind.REQUEST, bytes(MAX_LENGTH + 1))
    assert caught.value.code == Code.RESOURCE_EXHAUSTED


def test_an_answer_too_long_becomes_an_error() -> None:
    [message] = feed(Reader(), ttrpc.encode_answer(5, bytes(MAX_LENGTH)))
    assert message.payload is not None
    with pytest.raises(StatusError, match="exceed maximum message size") as caught:
        ttrpc.decode_response(message.payload)
    assert (message.stream, caught.value.code) == (5, Code.RESOURCE_EXHAUSTED)


def test_a_reason_is_cut_and_stays_text() -> None:
    [message] = feed(Reader(), ttrpc.encode_refusal(1, Code.UNKNOWN, "ü" * (5 << 20)))
    assert message.payload is not None
    with pytest.raises(StatusError) as caught:
        ttrpc.decode_response(message.payload)
    assert caught.value.what == "ü" * (8 << 10)


def test_a_request_says_how_long_its_caller_waits() -> None:
    [message] = feed(Reader(), ttrpc.encode_request(1, Request("s", "m", b"p", 1.5)))
    assert message.payload is not None
    assert ttrpc.decode_request(message.payload) == Request("s", "m", b"p", 1.5)
    [message] = feed(Reader(), ttrpc.encode_request(1, Request("s", "m", b"p", None)))
    assert message.payload is not None
    assert ttrpc.decode_request(message.payload).timeout is None
