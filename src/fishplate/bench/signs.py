"""Texts that mean something to a cause: what NCCL, perftest, launchers and the runtime print when a thing goes wrong.

Kept apart from the readers because they are facts about other programs. A cause asks for a kind by its name.
"""

import re

Signs = tuple[tuple[str, re.Pattern[str]], ...]


def _signs(*pairs: tuple[str, str]) -> Signs:
    return tuple((kind, re.compile(pattern)) for kind, pattern in pairs)


_FAILED = r"failed with (?:error )?(?:\d+ )?"

# From src/transport/net_ib*, src/graph/paths.cc, src/misc/shmutils.cc and src/misc/ibvwrap.cc of NVIDIA/nccl.
NCCL: Signs = _signs(
    ("no-device", r"NET/IB\w* : No (?:IP )?device found"),
    ("too-far", r"GPU Direct RDMA Disabled for GPU \S+ / HCA \S+ \(distance \d+ >=? \d+\)"),
    ("gdr-hca-off", r"NET/IB\w* : GPU Direct RDMA Disabled for HCA"),
    ("acs-hint", r"ACS is enabled"),
    ("qp-timeout", rf"ibv_modify_qp {_FAILED}(?:110\b|Connection timed out)|ibv_modify_qp failed with 110\b"),
    ("no-memory", rf"ibv_(?:reg_mr|create_cq|create_qp)\w* {_FAILED}Cannot allocate memory"),
    ("bad-address", rf"ibv_reg_\w*mr\w* {_FAILED}Bad address"),
    (
        "shm-full",
        r"Error while creating shared memory segment|(?:posix_fallocate|ftruncate) failed ?: ?No space left"
        r"|No space left on device.*/dev/shm|/dev/shm.*No space left on device",
    ),
    ("gid-unreadable", r"ncclIbRoceGetVersionNum\b.*Invalid argument"),
    ("data-direct", r"Data Direct DMA Interface is detected"),
    ("mnnvl", r"\bMNNVL 1\b|via P2P/MNNVL"),
)

# Every line of NCCL's that bears one of the signs holds one of these. Most lines hold none, and need no second look.
NCCL_MARKS = ("No ", "Disabled", "ACS", "failed", "shared memory", "Invalid argument", "Data Direct", "MNNVL")

# From ssh, src/perftest_resources.c of linux-rdma/perftest, and the C library's error texts.
AROUND: Signs = _signs(
    ("unresolved", r"ssh: Could not resolve hostname"),
    ("retry-exceeded", r"transport retry counter exceeded|Failed status[ -].*\(12\)|Failed status 12\b"),
    ("bad-address", r"Couldn't allocate MR.*Bad address|[Ff]ailed to create mr.*Bad address"),
    ("no-memory", r"Couldn't allocate MR(?!.*Bad address)|Couldn't create CQ.*Cannot allocate memory"),
    ("qp-timeout", r"Failed to modify QP (?:\d+ )?to RTR"),
    ("shm-full", r"No space left on device.*/dev/shm|/dev/shm.*No space left on device"),
)
AROUND_MARKS = (
    "resolve hostname",
    "ounter exceeded",
    "Failed status",
    "allocate MR",
    "create",
    "modify QP",
    "No space",
)
