"""Names of the TCX programs on an interface, asked from the kernel by bpf(2).

Neither sysfs nor netlink tells them. Without the right to ask (CAP_BPF or CAP_SYS_ADMIN), on kernels before 6.6 and on
architectures whose call number we do not know, the answer is that there are none: DRANET says the same there.
"""

import contextlib
import ctypes
import os
import platform
import struct

_CALL_NUMBERS = {"x86_64": 321, "aarch64": 280}
_PROG_GET_FD_BY_ID, _OBJ_GET_INFO_BY_FD, _PROG_QUERY = 13, 15, 16
_TCX_INGRESS, _TCX_EGRESS = 46, 47
_MAX_PROGRAMS = 64  # the kernel's own limit for one hook
# target_ifindex, attach_type, query_flags, attach_flags, prog_ids, count, -, flags, links, link flags, revision
_QUERY = struct.Struct("=IIIIQIIQQQQ")
_INFO_SIZE, _NAME_AT, _NAME_SIZE = 232, 64, 16  # struct bpf_prog_info: the name stands behind nine fixed fields

_libc = ctypes.CDLL(None, use_errno=True)


def tcx_program_names(ifindex: int) -> tuple[str, ...]:
    """Names of the programs at both ends of an interface, sorted; empty where the kernel does not say."""
    names: set[str] = set()
    for hook in (_TCX_INGRESS, _TCX_EGRESS):
        with contextlib.suppress(OSError):
            names.update(_program_name(number) for number in _query(ifindex, hook))
    return tuple(sorted(filter(None, names)))


def _query(ifindex: int, hook: int) -> list[int]:
    ids = (ctypes.c_uint32 * _MAX_PROGRAMS)()
    request = _QUERY.pack(ifindex, hook, 0, 0, ctypes.addressof(ids), _MAX_PROGRAMS, 0, 0, 0, 0, 0)
    _, answer = _bpf(_PROG_QUERY, request)
    return list(ids[: _QUERY.unpack(answer)[5]])


def _program_name(number: int) -> str:
    handle, _ = _bpf(_PROG_GET_FD_BY_ID, struct.pack("=III", number, 0, 0))
    try:
        info = ctypes.create_string_buffer(_INFO_SIZE)
        _bpf(_OBJ_GET_INFO_BY_FD, struct.pack("=IIQ", handle, _INFO_SIZE, ctypes.addressof(info)))
    finally:
        os.close(handle)
    return info.raw[_NAME_AT : _NAME_AT + _NAME_SIZE].split(b"\0")[0].decode("ascii", "replace")


def _bpf(command: int, request: bytes) -> tuple[int, bytes]:
    number = _CALL_NUMBERS.get(platform.machine())
    if number is None:
        raise OSError("bpf(2) is not known on this architecture")
    buffer = ctypes.create_string_buffer(request, len(request))
    result = _libc.syscall(number, command, buffer, len(request))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result, buffer.raw
