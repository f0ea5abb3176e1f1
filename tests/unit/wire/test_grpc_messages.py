"""gRPC's own bytes: messages around their limits, heads, deadlines and texts."""

from __future__ import annotations

import struct
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishplate.wire.grpc_messages import (
    MAX_TEXT,
    HeadRefused,
    MessageReader,
    read_head,
    read_status,
    write_head,
    write_message,
    write_status,
)
from fishplate.wire.ttrpc import Code, StatusError


def head(**changes: bytes | None) -> list[tuple[bytes, bytes]]:
    fields = {
        b":method": b"POST",
        b":path": b"/s/m",
        b":authority": b"%2Fvar%2Frun",
        b"content-type": b"application/grpc",
    }
    given = {name.replace("_", "-").encode(): value for name, value in changes.items()}
    named = {b":" + name if b":" + name in fields else name: value for name, value in given.items()}
    return [(name, value) for name, value in {**fields, **named}.items() if value is not None]


@given(st.lists(st.binary(max_size=50), max_size=6), st.lists(st.integers(1, 30), min_size=1))
def test_messages_come_out_as_they_went_in_however_they_are_cut(sent: list[bytes], sizes: list[int]) -> None:
    reader, data, found, at = MessageReader(50), b"".join(map(write_message, sent)), list[bytes](), 0
    while at < len(data):
        size = sizes[at % len(sizes)]
        found += reader.feed(data[at : at + size])
        at += size
        assert reader.held <= 55
    assert (found, reader.held) == (sent, 0)


def test_the_announced_length_is_checked_before_anything_is_kept() -> None:
    assert MessageReader(1000).feed(write_message(bytes(1000))) == [bytes(1000)]
    with pytest.raises(StatusError, match="1001 bytes, where 1000") as caught:
        MessageReader(1000).feed(struct.pack(">BI", 0, 1001))
    assert caught.value.code == Code.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("flag", [1, 2, 255])
def test_a_compressed_message_is_refused(flag: int) -> None:
    with pytest.raises(StatusError) as caught:
        MessageReader(1000).feed(struct.pack(">BI", flag, 3))
    assert caught.value.code == Code.UNIMPLEMENTED


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(b"1H", 3600), (b"2M", 120), (b"45S", 45), (b"500m", 0.5), (b"7u", 7e-6), (b"99999999n", 0.099999999), (b"0S", 0)],
)
def test_a_timeout_is_read_in_every_unit(text: bytes, seconds: float) -> None:
    assert read_head(head(grpc_timeout=text)).timeout == pytest.approx(seconds)


@pytest.mark.parametrize("text", [b"", b"S", b"5", b"-1S", b"1.5S", b"123456789S", b"5s", b"5S ", "٣S".encode()])
def test_a_timeout_that_is_none_is_refused(text: bytes) -> None:
    with pytest.raises(HeadRefused, match="malformed grpc-timeout"):
        read_head(head(grpc_timeout=text))


@pytest.mark.parametrize("kind", [b"application/grpc", b"application/grpc+proto", b"application/grpc;charset=utf-8"])
def test_grpc_is_known_by_its_content_type(kind: bytes) -> None:
    assert read_head(head(content_type=kind)) == ("/s/m", None)


@pytest.mark.parametrize("kind", [None, b"", b"application/json", b"application/grpcweb", b"application/grpc-web"])
def test_what_is_not_grpc_gets_415(kind: bytes | None) -> None:
    with pytest.raises(HeadRefused) as caught:
        read_head(head(content_type=kind))
    assert caught.value.http == 415


def test_what_is_no_post_gets_405() -> None:
    with pytest.raises(HeadRefused) as caught:
        read_head(head(method=b"GET"))
    assert caught.value.http == 405


@given(st.text(max_size=300), st.integers(0, 16))
def test_a_status_arrives_as_printable_ascii(text: str, code: int) -> None:
    written = write_status(code, text)
    assert all(0x20 <= byte <= 0x7E for _, value in written for byte in value)
    assert all(value == value.strip() for _, value in written)
    clean = text.encode("utf-8", "replace").decode().strip()
    assert read_status(written) == (code, clean)


def test_percent_signs_and_other_letters_are_encoded() -> None:
    assert dict(write_status(2, "50 % für\nIB"))[b"grpc-message"] == quote("50 % für\nIB", safe=" ").encode()


def test_a_long_text_is_cut_between_letters() -> None:
    _, text = read_status(write_status(2, "ü" * MAX_TEXT)) or (0, "")
    assert text == "ü" * (MAX_TEXT // 2)


@pytest.mark.parametrize("number", [b"x", b"-1", b"99999999999999999999", b""])
def test_a_status_that_is_no_number_is_unknown(number: bytes) -> None:
    assert read_status([(b"grpc-status", number)]) == (Code.UNKNOWN, "")


@pytest.mark.parametrize(("timeout", "text"), [(45.0, b"45000m"), (0.0001, b"1m"), (1e9, b"99999999m")])
def test_our_timeouts_can_be_read(timeout: float, text: bytes) -> None:
    assert dict(write_head("/s/m", timeout))[b"grpc-timeout"] == text
    assert read_head(write_head("/s/m", timeout)).path == "/s/m"
