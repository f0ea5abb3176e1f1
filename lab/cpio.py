"""A cpio archive in the kernel's `newc` form, from names and contents: the first-stage root of a node."""

from collections.abc import Mapping

_REGULAR, _DIRECTORY = 0o100000, 0o040000


def _entry(number: int, name: str, mode: int, content: bytes) -> bytes:
    # inode, mode, uid, gid, links, time, size, device numbers (4), length of the name, checksum
    numbers = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + "".join(f"{n:08x}" for n in numbers).encode() + name.encode() + b"\0"
    head += b"\0" * (-len(head) % 4)
    return head + content + b"\0" * (-len(content) % 4)


def pack_cpio(files: Mapping[str, bytes]) -> bytes:
    """Every file is executable by root; parent directories are made as needed."""
    directories = sorted({"/".join(n.split("/")[:i]) for n in files for i in range(1, n.count("/") + 1)})
    entries = [(d, _DIRECTORY | 0o755, b"") for d in directories]
    entries += [(n, _REGULAR | 0o755, files[n]) for n in files]
    packed = b"".join(_entry(i + 1, *e) for i, e in enumerate(entries))
    return packed + _entry(0, "TRAILER!!!", 0, b"")
