"""The table of nccl-tests and rccl-tests: its header decides what a column is, never its place.

Seen in the field: with and without `root`, `error` for `#wrong`, `cputime` for `time`, one half or two, per-iteration
columns (`-I`), bit differences, tuning columns (`-U`), a timestamp (`-S`), asterisks glued to numbers. A header with a
name that nobody knows is refused: a number under an unknown name would be a guess.
"""

import re
from typing import NamedTuple

from fishplate.bench.printed import Printed, parse_count, parse_number
from fishplate.bench.results import Half, Row

_BASE = ("size", "count", "type", "redop", "root")
_HALF = {"time", "cputime", "algbw", "busbw", "#wrong", "error", "#bitdiff", "i_min", "i_max", "i_p99", "i_cv%"}
_TUNING = {"impl", "algo", "proto", "kernelVariant", "sync", "#channels", "#warps", "netChunkSize"}
_KNOWN = {*_BASE, *_HALF, *_TUNING, "timestamp"}
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_UNITS = {"(B)", "(elements)", "(us)", "(GB/s)", "(%)"}
_BLANK_HALF = 20  # characters; a half is printed 31 wide, and no number leaves so much room before it
TYPES = frozenset(
    {"int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16"}
    | {"f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2"}
)
_TYPE_BYTES = {"int8": 1, "uint8": 1, "half": 2, "bfloat16": 2, "float": 4, "int32": 4, "uint32": 4} | dict.fromkeys(
    ("double", "int64", "uint64"), 8
)


class Layout(NamedTuple):
    """Names of the columns in order."""

    columns: tuple[str, ...]

    @property
    def halves(self) -> int:
        return self.columns.count("algbw")


DOCUMENTED = Layout((*_BASE, *(2 * ("time", "algbw", "busbw", "#wrong"))))


def parse_header(text: str) -> Layout | str | None:
    """The layout; None for a line that is no header; the unknown names for a header that we cannot trust."""
    names = text.lstrip("#").replace("# ", "#").split()
    if not {"size", "count", "busbw"} <= set(names):
        return None
    unknown = [name for name in names if name not in _KNOWN]
    if unknown:
        return " ".join(unknown)
    if names.count("algbw") not in (1, 2) or names[0] != "size":
        return "an order of columns that is not known"
    return Layout(tuple(names))


def find_odd_unit(text: str) -> str:
    """The first unit of a unit line that is not what these programs print; a table in ms would be off by 1000."""
    return next((unit for unit in re.findall(r"\([^)\s]+\)", text) if unit not in _UNITS), "")


def parse_row(text: str, layout: Layout, line: int) -> Row | None:
    """The row, or None if it does not fit the layout in every column."""
    tokens, columns = text.split(), layout.columns
    if "timestamp" in columns:
        tokens = _drop_timestamp(tokens)
        columns = tuple(name for name in columns if name != "timestamp")
    base = [name for name in columns if name in _BASE]
    rest = columns[len(base) :]
    values = dict(zip(base, tokens, strict=False))
    size, count = parse_count(values.get("size", "")), parse_count(values.get("count", ""))
    if size is None or count is None or size == 0 or values.get("type") not in TYPES:
        return None
    halves = _parse_halves(rest, tokens[len(base) :], layout.halves, _has_gap(text, len(base)))
    if halves is None:
        return None
    root = values.get("root", "-1")
    return Row(
        line=line,
        bytes=size,
        count=count,
        type=values["type"],
        redop=values.get("redop", ""),
        root=int(root) if re.fullmatch(r"\d{1,9}", root) else None,
        out_of_place=halves[0],
        in_place=halves[1],
    )


def _drop_timestamp(tokens: list[str]) -> list[str]:
    """Date and time are two words under one name."""
    at = next((index for index, word in enumerate(tokens) if _DATE.fullmatch(word)), None)
    return tokens if at is None else [*tokens[:at], *tokens[at + 2 :]]


def _has_gap(text: str, words: int) -> bool:
    """Whether a blank half stands behind so many words. A row that was cut off after its first half has no such gap."""
    found = re.match(rf"(?:\s*\S+){{{words}}}(\s+)", text)
    return found is not None and len(found[1]) >= _BLANK_HALF


def _parse_halves(
    columns: tuple[str, ...], tokens: list[str], count: int, gap: bool
) -> tuple[Half | None, Half | None] | None:
    """Out-of-place and in-place. Where a test has no out-of-place form its half is blank, and the tokens are fewer."""
    per_half = tuple(name for name in columns if name in _HALF)
    per_half = per_half[: len(per_half) // count]
    trailing = len(columns) - count * len(per_half)
    if len(tokens) == len(columns):
        first = _parse_half(per_half, tokens)
        second = _parse_half(per_half, tokens[len(per_half) :]) if count == 2 else None
        if first is None or (second is None and count == 2):
            return None
        return first, second
    if gap and count == 2 and len(tokens) == len(per_half) + trailing:
        half = _parse_half(per_half, tokens)
        return None if half is None else (None, half)
    return None


def _parse_half(names: tuple[str, ...], tokens: list[str]) -> Half | None:
    values: dict[str, Printed] = {}
    for name, token in zip(names, tokens, strict=False):
        number = parse_number(token)
        if number is not None:
            values[name] = number
        elif token != "N/A" or name in ("time", "cputime", "algbw", "busbw"):
            return None
    time = values.get("time") or values.get("cputime")
    algbw, busbw = values.get("algbw"), values.get("busbw")
    if time is None or algbw is None or busbw is None:
        return None
    wrong = values.get("#wrong") or values.get("error")
    return Half(
        time_us=time.value,
        algbw=algbw.value,
        busbw=busbw.value,
        wrong=None if wrong is None else wrong.value,
        flagged=any(value.flagged for value in values.values()),
        time_is_cpu="cputime" in names,
        time_slack=min(1.0, time.slack + algbw.slack),
        busbw_slack=min(1.0, algbw.slack + busbw.slack),
    )


def row_proves_itself(row: Row) -> bool:
    """Whether size, count and both halves agree so well that the columns must be what we take them for."""
    width = _TYPE_BYTES.get(row.type)
    if width is not None and row.count and row.bytes % (row.count * width):
        return False
    return all(algbw_agrees(row, half) for half in row.halves) and any(half.time_slack < 0.05 for half in row.halves)


def algbw_agrees(row: Row, half: Half) -> bool:
    """size / time is algbw, within what rounding to the printed digits may do."""
    if half.time_is_cpu or half.time_slack >= 1 or not half.time_us:
        return True
    computed = row.bytes / half.time_us / 1e3
    return abs(computed - half.algbw) <= (half.time_slack * 1.5 + 0.001) * max(half.algbw, computed)
