"""The rules of calls on one stream."""

import pytest

from fishplate.errors import OutsideError
from fishplate.wire import ttrpc
from fishplate.wire.calls import MAX_UNDER_WAY, Answer, Call, Incoming, Outgoing, Refusal
from fishplate.wire.ttrpc import Code, Kind, Request, StatusError

REQUEST = Request("service", "Method", b"payload", 2.0)


def serve(incoming: Incoming, *messages: bytes) -> list[str]:
    """What becomes of messages, in words: `7 Method`, or `7 refused 3`."""
    words = []
    for found in incoming.feed(memoryview(b"".join(messages))):
        if isinstance(found, Call):
            words.append(f"{found.stream} {found.request.method}")
        else:
            words.append(refused(found))
    return words


def refused(refusal: Refusal) -> str:
    [message] = ttrpc.Reader().feed(memoryview(refusal.message))
    assert message.payload is not None
    with pytest.raises(StatusError) as caught:
        ttrpc.decode_response(message.payload)
    return f"{message.stream} refused {caught.value.code}"


def request(stream: int) -> bytes:
    return ttrpc.encode_request(stream, REQUEST)


def test_a_request_is_served_with_its_number() -> None:
    [call] = Incoming().feed(memoryview(request(5)))
    assert call == Call(5, REQUEST)


def test_numbers_must_rise_and_a_bad_one_changes_nothing() -> None:
    words = serve(Incoming(), request(5), request(5), request(3), request(7))
    assert words == ["5 Method", "5 refused 3", "3 refused 3", "7 Method"]


def test_numbers_of_a_client_are_odd() -> None:
    assert serve(Incoming(), request(2), request(0), request(1)) == ["2 refused 3", "0 refused 3", "1 Method"]


def test_streaming_data_is_refused_and_unknown_types_are_ignored() -> None:
    data = ttrpc.encode_message(1, Kind.DATA, b"x")
    response = ttrpc.encode_message(3, Kind.RESPONSE, b"x")
    unknown = data[:8] + b"\x09" + data[9:]
    assert serve(Incoming(), data, response, unknown, request(5)) == ["1 refused 3", "5 Method"]


def test_bytes_that_are_no_request_are_refused() -> None:
    assert serve(Incoming(), ttrpc.encode_message(1, Kind.REQUEST, b"\xff\xff"), request(3)) == [
        *("1 refused 3", "3 Method")
    ]


def test_a_request_too_long_is_refused_as_exhausted() -> None:
    incoming = Incoming()
    header = (5 << 20).to_bytes(4, "big") + bytes.fromhex("00000001 01 00")
    assert serve(incoming, header) == [f"1 refused {int(Code.RESOURCE_EXHAUSTED)}"]
    assert serve(incoming, bytes(5 << 20), request(3)) == ["3 Method"]


def test_questions_are_numbered_one_three_five() -> None:
    outgoing = Outgoing()
    assert [outgoing.ask(REQUEST)[0] for _ in range(3)] == [1, 3, 5]


def test_a_question_too_long_takes_no_number() -> None:
    outgoing = Outgoing()
    with pytest.raises(StatusError, match="exceed maximum"):
        outgoing.ask(Request("s", "m", bytes(5 << 20), None))
    assert outgoing.ask(REQUEST)[0] == 1


def test_no_more_questions_are_open_than_the_peer_can_queue() -> None:
    outgoing = Outgoing()
    for _ in range(MAX_UNDER_WAY):
        outgoing.ask(REQUEST)
    with pytest.raises(OutsideError, match="under way"):
        outgoing.ask(REQUEST)
    outgoing.forget(1)
    assert outgoing.ask(REQUEST)[0] == 2 * MAX_UNDER_WAY + 1
    assert MAX_UNDER_WAY * 2 <= 256  # two frames a message, and the peer queues 256


def answers(outgoing: Outgoing, message: bytes) -> list[Answer]:
    return outgoing.feed(memoryview(message))


def test_answers_find_their_question_once() -> None:
    outgoing = Outgoing()
    outgoing.ask(REQUEST)
    outgoing.ask(REQUEST)
    answer = ttrpc.encode_answer(3, b"yes")
    assert answers(outgoing, answer + answer) == [Answer(3, b"yes")]
    assert answers(outgoing, ttrpc.encode_answer(99, b"who asked?")) == []


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (ttrpc.encode_refusal(1, Code.UNKNOWN, "no"), Code.UNKNOWN),
        (ttrpc.encode_message(1, Kind.DATA, b""), Code.INTERNAL),
        (ttrpc.encode_message(1, Kind.RESPONSE, b"\xff"), Code.INTERNAL),
        ((5 << 20).to_bytes(4, "big") + bytes.fromhex("00000001 02 00"), Code.RESOURCE_EXHAUSTED),
    ],
)
def test_what_is_no_good_answer_is_an_error(message: bytes, code: Code) -> None:
    outgoing = Outgoing()
    outgoing.ask(REQUEST)
    [answer] = answers(outgoing, message)
    assert isinstance(answer.outcome, StatusError)
    assert answer.outcome.code == code
