"""Mux frames: the exact bytes, the cutting that a Go peer needs, and what hostile bytes can make the reader hold."""

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishplate.wire.mux import FIRST_FRAME, MAX_PAYLOAD, FrameError, Reader, frame_message


def frames(data: bytes) -> list[tuple[int, bytes]]:
    found = []
    while data:
        connection, length = struct.unpack(">II", data[:8])
        found.append((connection, data[8 : 8 + length]))
        data = data[8 + length :]
    return found


def streams(reader: Reader, data: bytes) -> dict[int, bytes]:
    joined: dict[int, bytes] = {}
    for connection, piece in reader.feed(data):
        joined[connection] = joined.get(connection, b"") + piece
    return joined


def test_a_frame_is_connection_length_and_bytes() -> None:
    assert frame_message(2, b"abc") == bytes.fromhex("00000002 00000003") + b"abc"


@pytest.mark.parametrize("size", [1, 4085, 4086, 4087, 4095, 4096])
def test_a_message_up_to_the_peers_buffer_is_one_frame(size: int) -> None:
    assert frames(frame_message(1, b"x" * size)) == [(1, b"x" * size)]


@pytest.mark.parametrize("size", [4097, 8191, 8192, 8193, 1 << 20, 4 << 20])
def test_a_longer_message_is_the_peers_buffer_and_all_the_rest(size: int) -> None:
    """More than two frames could overflow the peer's queue; a first frame of more than 4096 bytes kills it."""
    first, rest = frames(frame_message(1, b"x" * size))
    assert (len(first[1]), len(rest[1])) == (FIRST_FRAME, size - FIRST_FRAME)
    assert FIRST_FRAME == 4096


@given(
    messages=st.lists(st.tuples(st.integers(0, 5), st.binary(max_size=9000)), max_size=8),
    cuts=st.lists(st.integers(0, 40_000), max_size=12),
)
def test_streams_come_out_as_they_went_in_however_the_socket_cuts_them(
    messages: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    wire = b"".join(frame_message(connection, message) for connection, message in messages)
    edges = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    reader, found = Reader(), dict[int, bytes]()
    for begin, end in itertools.pairwise(edges):
        for connection, piece in streams(reader, wire[begin:end]).items():
            found[connection] = found.get(connection, b"") + piece
    wanted = dict[int, bytes]()
    for connection, message in messages:
        wanted[connection] = wanted.get(connection, b"") + message
    assert found == {connection: stream for connection, stream in wanted.items() if stream}


def test_a_frame_longer_than_any_message_is_no_frame() -> None:
    assert streams(Reader(), struct.pack(">II", 1, MAX_PAYLOAD) + b"x") == {1: b"x"}
    with pytest.raises(FrameError, match="4194315 bytes"):
        Reader().feed(struct.pack(">II", 1, MAX_PAYLOAD + 1))


def test_pieces_are_handed_on_and_not_kept() -> None:
    """A frame of 4 MiB that comes byte by byte never adds up in the reader."""
    reader = Reader()
    reader.feed(struct.pack(">II", 1, MAX_PAYLOAD))
    assert [streams(reader, b"x") for _ in range(3)] == [{1: b"x"}] * 3
