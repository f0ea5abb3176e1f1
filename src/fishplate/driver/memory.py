"""Keeping the process small: it runs on every node, beside workloads that were sold the rest.

Two knobs of the C library. One arena instead of one per thread: nothing here is contended. And what start-up used and
freed goes back to the kernel, which the library would keep for later. Where there is no glibc nothing happens.
"""

import ctypes
import gc

_M_ARENA_MAX = -8


def use_one_arena() -> None:
    """Before the first thread."""
    libc = _libc()
    if libc is not None and hasattr(libc, "mallopt"):
        libc.mallopt(_M_ARENA_MAX, 1)


def give_back() -> None:
    """After start-up: what is left stays, so the collector need not look at it again either."""
    gc.collect()
    gc.freeze()
    libc = _libc()
    if libc is not None and hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def _libc() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(None)
    except OSError:
        return None
