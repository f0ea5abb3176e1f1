"""Reading files below a root, whatever lies there.

A captured tree comes from somebody else's machine and a live one changes while it is read, so nothing here trusts what
it finds: links are followed inside the root only (as chroot would), loops end, pipes and device nodes are not read,
files are read up to a limit, and a file that cannot be read becomes a problem in the report, never an exception and
never a hang. A file that is not there is no problem: most attributes of sysfs are optional.
"""

import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from fishplate.errors import RootError
from fishplate.findings import Finding, Verdict

MAX_BYTES = 64 * 1024
MAX_ENTRIES = 65_536
MAX_PROBLEMS_OF_A_KIND = 100
_MAX_LINKS = 40  # the kernel's own limit
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENXIO, errno.ENODEV})


# What a terminal could take for a command. The kernel writes none of these; a captured tree may.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
T = TypeVar("T")

_WANTED = "give the directory that holds sys/, proc/ and dev/ of the host"


class Tree:
    """Files below `root`. Paths are written as on the host: `/sys/class/net`."""

    def __init__(self, root: str | Path = "/") -> None:
        self.root = os.fspath(root).rstrip("/")
        self.problems: list[Finding] = []
        self._reported: Counter[str] = Counter()
        self._places: set[tuple[str, str]] = set()
        self._resolved: dict[str, str | None] = {}
        self._links: dict[str, str | None] = {}
        try:
            mode = os.stat(self.root or "/").st_mode
        except (OSError, ValueError) as error:
            what = "no such directory" if isinstance(error, FileNotFoundError) else f"cannot be opened: {error}"
            raise RootError(what, where=self.root, remedy=_WANTED) from error
        if not stat.S_ISDIR(mode):
            raise RootError("not a directory", where=self.root, remedy=_WANTED)
        if not (self.is_dir("/sys") or self.is_dir("/proc")):
            raise RootError("holds neither sys/ nor proc/", where=self.root, remedy=_WANTED)

    @property
    def live(self) -> bool:
        """True for the running host itself: only there do netlink and the vendors' tools speak of the same machine."""
        return self.root == ""

    def report(self, rule: str, place: str, what: str, *, evidence: str = "", remedy: str = "") -> None:
        """Note a problem. A thousand of a kind tell no more than a hundred."""
        self._reported[rule] += 1
        if self._reported[rule] > MAX_PROBLEMS_OF_A_KIND or (rule, place) in self._places:
            return
        self._places.add((rule, place))
        self.problems.append(
            Finding(
                id=f"discovery.{rule}",
                place=place,
                what=what,
                verdict=Verdict.CANNOT_TELL,
                evidence=evidence,
                remedy=remedy,
            )
        )

    # -- links ---------------------------------------------------------------------------------------------------

    def resolve(self, path: str) -> str | None:
        """The path with every link followed, or None if it leads nowhere (or in circles)."""
        if path not in self._resolved:
            self._resolved[path] = self._walk(path)
        return self._resolved[path]

    def _walk(self, path: str) -> str | None:
        """Component by component, as the kernel does: one budget of links for the whole walk, or a tree of links that
        double at every level would keep us busy for ever."""
        here, links = "/", 0
        pending = path.split("/")[::-1]
        while pending:
            name = pending.pop()
            if name in ("", "."):
                continue
            if name == "..":
                here = here.rpartition("/")[0] or "/"  # `..` at the top stays at the top, as under chroot
                continue
            step = f"{here.rstrip('/')}/{name}"
            target = self._link(step)
            if target is None:
                return None
            if target == "":
                here = step
                continue
            links += 1
            if links > _MAX_LINKS:
                self.report("link-loop", path, "links lead in circles", evidence=f"{step} -> {target[:60]}")
                return None
            here = "/" if target.startswith("/") else here
            pending += target.split("/")[::-1]
        return here

    def _link(self, path: str) -> str | None:
        """The text of a link, "" for what is no link, None for what is not there."""
        if path not in self._links:
            try:
                self._links[path] = os.readlink(self.root + path)
            except OSError as error:
                if error.errno == errno.EINVAL:
                    self._links[path] = ""
                else:
                    self._links[path] = None
                    if error.errno not in _ABSENT:
                        self._unreadable(path, error)
            except ValueError:  # a name with a zero byte in it
                self._links[path] = None
        return self._links[path]

    def link_text(self, path: str) -> str:
        """What a link says, followed or not: the kernel's own links (`net:[4026531840]`) lead nowhere in the tree."""
        parent = self.resolve(path.rpartition("/")[0] or "/")
        return (self._link(f"{parent}/{path.rpartition('/')[2]}") or "") if parent else ""

    # -- directories and files -----------------------------------------------------------------------------------

    def names(self, path: str) -> list[str]:
        """The names in a directory, sorted; empty if there is none."""
        real = self.resolve(path)
        if real is None:
            return []
        try:
            names = os.listdir(self.root + (real or "/"))
        except OSError as error:
            if error.errno not in _ABSENT:
                self._unreadable(path, error)
            return []
        if len(names) > MAX_ENTRIES:
            self.report("too-many", path, f"{len(names)} entries; only the first {MAX_ENTRIES} were looked at")
        return sorted(filter(self._is_name, names))[:MAX_ENTRIES]

    def _is_name(self, name: str) -> bool:
        """Names of bytes that are no text, or hold control characters, cannot be printed nor written as JSON."""
        if not name.isprintable():
            self.report("garbled", ascii(name), "a name that cannot be printed; left out")
            return False
        return True

    def is_dir(self, path: str) -> bool:
        real = self.resolve(path)
        try:
            return real is not None and stat.S_ISDIR(os.stat(self.root + real).st_mode)
        except OSError:
            return False

    def mode(self, path: str) -> int | None:
        """Permission bits of a node, or None if there is none."""
        real = self.resolve(path)
        if real is None:
            return None
        try:
            return stat.S_IMODE(os.lstat(self.root + real).st_mode)
        except OSError:
            return None

    def text(self, path: str, *, limit: int = MAX_BYTES) -> str | None:
        """A file's text without surrounding white space; None if there is none or it cannot be read."""
        parent_path, _, name = path.rpartition("/")
        parent = self.resolve(parent_path or "/")
        if parent is None:
            return None
        return self._read(f"{parent.rstrip('/')}/{name}", path, limit)

    def _read(self, real: str, path: str, limit: int) -> str | None:
        try:
            # Never through a link here (the directory is resolved already), never waiting for the far end of a pipe.
            handle = os.open(self.root + real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.ELOOP:
                target = self.resolve(path)
                return self._read(target, path, limit) if target not in (None, real) else None
            if error.errno not in _ABSENT:
                self._unreadable(path, error)
            return None
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                self.report("not-a-file", path, "not a plain file; left unread")
                return None
            data = _read_up_to(handle, limit)
        except OSError as error:
            # EINVAL is how the kernel says "this GID slot is empty"; ENODEV and friends say "gone meanwhile".
            if error.errno not in _ABSENT | {errno.EINVAL, errno.EOPNOTSUPP}:
                self._unreadable(path, error)
            return None
        finally:
            os.close(handle)
        return _CONTROL.sub("\ufffd", data.decode("utf-8", "replace").strip("\0 \t\r\n"))

    def _unreadable(self, path: str, error: OSError) -> None:
        reason = error.strerror or str(error)
        remedy = "run as root" if error.errno in (errno.EACCES, errno.EPERM) else ""
        self.report("unreadable", path, f"cannot be read: {reason}", remedy=remedy)

    # -- values --------------------------------------------------------------------------------------------------

    def number(self, path: str, *, radix: int = 10, low: int = -(2**63), high: int = 2**64) -> int | None:
        """A file that holds one number. Anything else in it is reported and counts as not known."""

        def parse(text: str) -> int:
            value = int(text, radix)
            if not low <= value <= high:
                raise ValueError(text)
            return value

        return self.value(path, parse, "a number")

    def value(self, path: str, parse: Callable[[str], T], expected: str) -> T | None:
        text = self.text(path)
        if text is None or text == "":
            return None
        try:
            return parse(text)
        except ValueError:
            self.garbled(path, text, expected)
            return None

    def garbled(self, path: str, text: str, expected: str) -> None:
        self.report("garbled", path, f"expected {expected}", evidence=ascii(text[:60]))


def _read_up_to(handle: int, limit: int) -> bytes:
    """procfs hands out a page at a time, so one read is not the whole file."""
    data = b""
    while len(data) < limit and (chunk := os.read(handle, limit - len(data))):
        data += chunk
    return data


def natural_key(name: str) -> tuple[str, int]:
    """Sorts mlx5_10 behind mlx5_9."""
    match = re.fullmatch(r"(.*?)(\d{1,9})", name)
    return (match[1], int(match[2])) if match else (name, -1)
