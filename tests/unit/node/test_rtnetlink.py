import os
import shutil
import struct
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from fishplate.node.rtnetlink import (
    dump_default_interfaces,
    dump_link_facts,
    parse_address,
    parse_attributes,
    parse_default_route,
    parse_filter,
    parse_link,
    parse_messages,
)


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


def route(*, table: int = 254, prefix: int = 0, kind: int = 1, attributes: bytes = b"") -> bytes:
    return struct.pack("=BBBBBBBBI", 2, prefix, 0, 0, table, 3, 0, kind, 0) + attributes


def test_every_next_hop_of_a_default_route_counts() -> None:
    hops = b"".join(struct.pack("=HBBi", 8, 0, 0, index) for index in (4, 7))
    assert parse_default_route(route(attributes=attribute(9, hops))) == (2, 0, [4, 7])
    single = attribute(4, struct.pack("=I", 5)) + attribute(6, struct.pack("=I", 100))
    assert parse_default_route(route(attributes=single)) == (2, 100, [5])


def test_routes_of_other_tables_and_targets_do_not_count() -> None:
    one = attribute(4, struct.pack("=I", 5))
    assert parse_default_route(route(table=103, attributes=one)) is None
    assert parse_default_route(route(attributes=one + attribute(15, struct.pack("=I", 5103)))) is None
    assert parse_default_route(route(prefix=24, attributes=one)) is None
    assert parse_default_route(route(kind=7, attributes=one)) is None


# A namespace with a multipath default route and one in a table of policy routing, made by the kernel itself.
NAMESPACE = """
import ctypes, subprocess
assert ctypes.CDLL(None).unshare(0x40000000) == 0
def ip(text): subprocess.run(["ip", *text.split()], check=True)
for pair in ("up0", "up1", "up2"):
    ip(f"link add {pair} type veth peer name {pair}p")
    ip(f"link set {pair} up"); ip(f"link set {pair}p up")
for number in range(3):
    ip(f"addr add 192.0.2.{number * 16 + 2}/28 dev up{number}")
ip("route add default nexthop via 192.0.2.1 dev up0 nexthop via 192.0.2.17 dev up1")
ip("route add default via 192.0.2.33 dev up2 table 103")
from fishplate.node.rtnetlink import dump_default_interfaces
print(sorted(dump_default_interfaces()))
"""


def test_the_kernel_tells_both_legs_of_a_multipath_default_route() -> None:
    if os.geteuid() == 0 and shutil.which("ip"):
        done = subprocess.run(
            [sys.executable, "-c", NAMESPACE], capture_output=True, text=True, timeout=30, check=False
        )
        assert (done.returncode, done.stdout) == (0, "['up0', 'up1']\n"), done.stderr
    else:
        assert dump_default_interfaces() is not None


@given(st.binary(max_size=400))
def test_any_bytes_are_survived(data: bytes) -> None:
    for _, _, body in parse_messages(data):
        parse_link(body)
        parse_address(body)
        parse_default_route(body)
    parse_attributes(data)
    parse_default_route(data)
    parse_filter(data)
    parse_link(data)
    parse_address(data)
