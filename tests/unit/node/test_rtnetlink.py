import os
import struct

from hypothesis import given
from hypothesis import strategies as st

from fishplate.node.rtnetlink import dump_link_facts, parse_address, parse_attributes, parse_link, parse_messages


def attribute(kind: int, payload: bytes) -> bytes:
    data = struct.pack("=HH", 4 + len(payload), kind) + payload
    return data + b"\0" * (-len(data) % 4)


def message(kind: int, body: bytes) -> bytes:
    data = struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 0) + body
    return data + b"\0" * (-len(data) % 4)


def test_this_kernel_answers_with_every_interface() -> None:
    facts = dump_link_facts()
    assert set(os.listdir("/sys/class/net")) - {"bonding_masters"} == set(facts)
    assert "127.0.0.1/8" not in facts["lo"].addresses  # host scope is not for others to see


def test_a_link_tells_its_name_and_kind() -> None:
    info = attribute(18 | 0x8000, attribute(1, b"ipvlan\0"))
    body = struct.pack("=BxHiII", 0, 1, 7, 0, 0) + attribute(3, b"eth1\0") + info
    assert parse_link(body) == (7, "eth1", "ipvlan")


def test_a_peer_address_is_told_by_its_own_end() -> None:
    body = (
        struct.pack("=BBBBI", 2, 24, 0, 0, 7) + attribute(1, bytes([10, 0, 0, 9])) + attribute(2, bytes([10, 0, 0, 1]))
    )
    assert parse_address(body) == (7, "10.0.0.1/24")


def test_link_local_addresses_are_left_out() -> None:
    body = struct.pack("=BBBBI", 10, 64, 0, 253, 7) + attribute(1, bytes(16))
    assert parse_address(body) is None


def test_messages_follow_each_other_in_one_buffer() -> None:
    data = message(16, b"abc") + message(3, b"")
    assert [(kind, body) for kind, _, body in parse_messages(data)] == [(16, b"abc"), (3, b"")]


@given(st.binary(max_size=400))
def test_any_bytes_are_survived(data: bytes) -> None:
    for _, _, body in parse_messages(data):
        parse_link(body)
        parse_address(body)
    parse_attributes(data)
    parse_link(data)
    parse_address(data)
