"""From algorithm bandwidth to bus bandwidth: the factor of each collective, and back to the number of ranks.

nccl-tests prints size / time as algbw and multiplies it so that the number can be held against a link's rate whatever
the number of ranks (doc/PERFORMANCE.md of NVIDIA/nccl-tests). GB is 1e9 bytes, while the sizes are powers of two.
"""

import math
from collections.abc import Callable

TESTS = (
    *("all_reduce", "all_gather", "reduce_scatter", "alltoall", "alltoallv", "broadcast", "reduce", "sendrecv"),
    *("gather", "scatter", "hypercube"),
)

_ONE_WAY = frozenset({"all_gather", "reduce_scatter", "alltoall", "gather", "scatter"})
_PLAIN = frozenset({"broadcast", "reduce", "sendrecv"})


def factor(test: str, ranks: int) -> float | None:
    """busbw / algbw; None for tests whose factor is not a matter of the rank count alone."""
    if ranks < 1:
        return None
    if test == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if test in _ONE_WAY:
        return (ranks - 1) / ranks
    return 1.0 if test in _PLAIN else None


def name_test(program: str) -> str:
    """`all_reduce_perf` → `all_reduce`; empty for a program that we do not know."""
    name = program.rpartition("/")[2].removesuffix("_mpi").removesuffix("_perf")
    return name if name in TESTS else ""


def recover_ranks(test: str, ratio: float, slack: float) -> tuple[int, int] | None:
    """The fewest and the most ranks that this busbw/algbw allows, rounding included; None if it tells nothing."""
    invert = _INVERSE.get(test)
    if invert is None:
        return None
    low, high = invert(ratio * (1 - slack)), invert(ratio * (1 + slack))
    if math.isinf(low):
        return None  # beyond what any number of ranks gives
    return (max(1, round(low + 0.499999)), int(high + 1e-9)) if math.isfinite(high) else (max(1, round(low)), 10**9)


def infer_test(ratio: float, ranks: int, slack: float) -> str:
    """all_reduce is the only test whose busbw exceeds its algbw; all others could be one of several."""
    fits = abs(ratio - 2 * (ranks - 1) / ranks) < 2 * slack * ratio + 0.001
    return "all_reduce" if fits and ratio * (1 - slack) > 1.01 else ""


def _invert_all_reduce(ratio: float) -> float:
    return 2 / (2 - ratio) if ratio < 2 else float("inf")


def _invert_one_way(ratio: float) -> float:
    return 1 / (1 - ratio) if ratio < 1 else float("inf")


_INVERSE: dict[str, Callable[[float], float]] = {
    "all_reduce": _invert_all_reduce,
    **dict.fromkeys(_ONE_WAY, _invert_one_way),
}
