"""The kernel's own answer about programs on an interface, in a network namespace made for the test."""

import os
import subprocess
import sys

# Loads a do-nothing program, hangs it on `lo` of a new namespace as a TCX link and as a clsact filter, and asks.
SCRIPT = r"""
import ctypes, os, socket, struct
from fishplate.node import bpf, rtnetlink

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())

insns = struct.pack("=BBhi", 0xB7, 0, 0, 0) + struct.pack("=BBhi", 0x95, 0, 0, 0)  # r0 = 0; exit
code, text = ctypes.create_string_buffer(insns, len(insns)), ctypes.create_string_buffer(b"GPL")
# type SCHED_CLS, count, insns, license, log level, log size, log buffer, kernel version, flags, name
load = struct.pack("=IIQQIIQII16s", 3, 2, ctypes.addressof(code), ctypes.addressof(text), 0, 0, 0, 0, 0, b"fish_test")
program, _ = bpf._bpf(5, load)
link, _ = bpf._bpf(28, struct.pack("=IIIIQQQQ", program, socket.if_nametoindex("lo"), 46, 0, 0, 0, 0, 0))

def attribute(kind, payload):
    data = struct.pack("=HH", 4 + len(payload), kind) + payload
    return data + bytes(-len(data) % 4)

def change(kind, parent, info, body):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as route:
        header = struct.pack("=BxxxiIII", 0, 1, 0 if kind == 44 else 0xFFFF0000, parent, info)
        data = header + body
        route.send(struct.pack("=IHHII", 16 + len(data), kind, 0x0001 | 0x0004 | 0x0400 | 0x0200, 1, 0) + data)
        error = struct.unpack_from("=i", route.recv(4096), 16)[0]
        assert error == 0, os.strerror(-error)

change(36, 0xFFFFFFF1, 0, attribute(1, b"clsact\0"))
options = attribute(6, struct.pack("=I", program)) + attribute(7, b"fish_filter\0") + attribute(8, struct.pack("=I", 1))
change(44, 0xFFFFFFF3, 1 << 16 | 0x0300, attribute(1, b"bpf\0") + attribute(2, options))

facts = rtnetlink.dump_link_facts()["lo"]
assert facts.tcx_programs == ("fish_test",), facts
assert facts.tc_filters == ("fish_filter",), facts
print("asked")
"""


def test_programs_and_filters_are_told_by_name() -> None:
    if os.geteuid() == 0:
        done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=30, check=False)
        assert (done.returncode, done.stdout) == (0, "asked\n"), done.stderr
    else:  # without the right to ask, the answer is that there are none
        from fishplate.node.bpf import tcx_program_names

        assert tcx_program_names(1) == ()


def test_an_interface_that_is_not_there_has_no_programs() -> None:
    from fishplate.node.bpf import tcx_program_names

    assert tcx_program_names(2**31 - 1) == ()
