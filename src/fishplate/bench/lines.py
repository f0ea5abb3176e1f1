"""Lines of a log as a program printed them: without what carried them, and with where they came from.

A benchmark's output passes through many hands: `kubectl logs --prefix --timestamps`, stern, the CRI log file, mpirun's
`--tag-output`, srun's `-l`. Each puts something in front of every line, often two of them do, and colours may be around
all of it. They are taken off one by one until nothing known is left, and what they said (pod, rank) becomes the line's
origin, so that the output of several ranks can be told apart again.

Memory stays bounded whatever comes: input is read in chunks, and a line longer than `MAX_LINE` is cut and marked.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

MAX_LINE = 16_384
_CHUNK = 1 << 18

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")

# Order matters only for reading: each alternative is anchored by something the others cannot start with.
_PREFIX = re.compile(
    r"""
      \[pod/(?P<kube>[^\]\s]+)\]\ ?                                    # kubectl logs --prefix
    | (?P<cri>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))\ (?:std(?:out|err)\ [FP]\ )?  # timestamps; the CRI's file
    | \[(?P<job>\d+),(?P<rank>\d+)\]<std(?:out|err|diag)>:\ ?          # mpirun --tag-output
    | (?:[A-Z][a-z]{2}\ ){2}[\ \d]\d\ [\d:]{8}\ \d{4}\ ?<std(?:out|err)>:\ ?  # mpirun --timestamp-output
    | (?P<srun>\d{1,5}):\ (?=\s*(?:\#|\S+:\d+:\d+\ \[|\d+\s+\d+\s))    # srun -l
    | \[(?P<hydra>\d{1,5})\]\ (?=\s*(?:\#|\S+:\d+:\d+\ \[|\d+\s+\d+\s))  # Hydra's -prepend-rank
    # stern, which knows no mark of its own: by the names that the MPI operator gives to pods
    | (?P<stern>(?:[a-z0-9-]+\ )?[a-z0-9][-a-z0-9]*-(?:worker-\d+|launcher(?:-\w+)*)\ [a-z0-9][-a-z0-9]*)\ (?:│\ )?
    """,
    re.VERBOSE,
)
# What a prefix can begin with. Most lines begin otherwise, and need no second look.
_MAY_START = frozenset("[0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Readable(Protocol):
    """A stream of bytes, as far as we need it."""

    def read(self, size: int = -1, /) -> bytes: ...


class Line(NamedTuple):
    number: int
    text: str
    source: str = ""
    """The pod, where the line says it."""
    rank: str = ""
    cut: bool = False
    """Longer than anything a benchmark prints: only the beginning is here."""


def read_lines(stream: Readable) -> Iterator[Line]:
    for number, (raw, cut) in enumerate(_split(stream), start=1):
        text = raw.decode("utf-8", "replace")
        if "\x1b" in text:
            text = _ANSI.sub("", text)
        yield strip_prefixes(number, text.rstrip("\r"), cut)


def strip_prefixes(number: int, text: str, cut: bool = False) -> Line:
    source = rank = ""
    while match := _match(text):
        kind = match.lastgroup
        if kind in ("kube", "stern"):
            source = match[kind].replace(" ", "/")
        elif kind in ("rank", "srun", "hydra"):
            rank = match[kind]
        text = text[match.end() :]
    return Line(number, text, source, rank, cut)


def _match(text: str) -> re.Match[str] | None:
    if not text or not (text[0] in _MAY_START or "-" in text[:80]):
        return None
    match = _PREFIX.match(text)
    return match if match and match.end() else None


def _split(stream: Readable) -> Iterator[tuple[bytes, bool]]:
    rest = b""
    overflowing = False
    while chunk := stream.read(_CHUNK):
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        for line in lines:
            if overflowing:
                overflowing = False  # the tail of a line whose beginning was given out already
                continue
            yield line[:MAX_LINE], len(line) > MAX_LINE
        if len(rest) > MAX_LINE:
            if not overflowing:
                yield rest[:MAX_LINE], True
            rest, overflowing = b"", True
    if rest and not overflowing:
        yield rest, False
