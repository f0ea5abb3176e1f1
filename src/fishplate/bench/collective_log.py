"""Reads what nccl-tests and rccl-tests print: banner, settings, devices, table, footer, failures.

One reader for each stream of lines (a pod, a rank). It never looks back: a run is built up line by line and given out
when the next one starts or the log ends. Lines that look like rows and cannot be read as such are handed back as
garbled, to be counted and shown; nothing is ever filled in.

A row may come in two pieces. The programs print size and type, then measure, then print the times, and NCCL's own
lines may fall in between. The pieces are joined again only if the joined numbers agree with each other.
"""

import re
from enum import Enum, auto

from fishplate.bench.busbw import name_test
from fishplate.bench.lines import Line
from fishplate.bench.printed import parse_number
from fishplate.bench.results import Evidence, Rank, Row, Run, Settings, Tool
from fishplate.bench.scrub import scrub
from fishplate.bench.table import DOCUMENTED, TYPES, Layout, find_odd_unit, parse_header, parse_row, row_proves_itself

MAX_ROWS = 20_000
MAX_RANKS = 20_000
MAX_FAILURES = 5

_BANNER = re.compile(r"(?:# )?(nccl|rccl)-tests(?::)? [vV]ersion (\S+)")
_STARTING = re.compile(r"# Collective test starting: (\S+)")
_SETTINGS = re.compile(r"# n[tT]hread(?:s)? \d+ n(?:Gpus|GPUs|gpus) \d+")
_SETTING = re.compile(r"(n[tT]hread|n[gG]pus|minBytes|maxBytes|warmup iters|agg iters|iters|validation|graph):? (\d+)")
_RANK = re.compile(r"#\s+Rank\s+(\d+)(?: Group\s+\d+)? Pid\s+(\d+) on\s+(\S+) device\s+(\d+) \[([^\]]*)\] ?(.*)")
_BOUNDS = re.compile(r"# Out of bounds values : (\d+) (OK|FAILED)")
_AVERAGE = re.compile(r"# Avg bus bandwidth\s*: (\S+)(?: (FAILED))?")
_CONCLUDED = re.compile(r"# Collective test concluded")
_FAILURE = re.compile(
    r"Test (?:NCCL|CUDA|HIP) failure|: Test failure \S+:\d+|Test timeout \(|^Invalid number of GPUs:|^# error:"
)
_RCCL_BANNER = re.compile(r"(?:RCCL version|HIP version|ROCm version|Hostname|Librccl path)\s*:")
_ROW_START = re.compile(r"\s*(\d{1,19})\s+(\d{1,19})\s+([A-Za-z]\w+)\s")
_BROKEN_HEAD = re.compile(r"(\s*\d{1,19}\s+\d{1,19}\s+[a-z]\w+\s+[a-z]+\s+-?\d+)\s*(\S+:\d+:\d+ \[\d+\].*NCCL .*)")
_ONLY_NUMBERS = re.compile(r"\s*\d[\d.e+]*\s+[\d.e+*]+\s+[\d.e+*]+\s+(?:N/A|[\d.e+*]+)(?:\s+(?:N/A|[\d.e+*]+))*\s*")
_DECORATION = re.compile(
    r"#\s*$|#\s+(?:out-of-place|in-place)|# Using devices|# Errors with asterisks|# Reducing maxBytes"
)


class Read(Enum):
    """What became of a line."""

    TAKEN = auto()
    GARBLED = auto()
    NOT_MINE = auto()


class CollectiveReader:
    def __init__(self, source: str) -> None:
        self._source = source
        self._finished: list[Run] = []
        self._split_head = ""
        self.mentioned = ""
        """A test's program that some line named, for logs without a banner."""
        self._begin(0)

    # -- runs ----------------------------------------------------------------------------------------------------

    def _begin(self, line: int) -> None:
        self.started = line
        self._tool: Tool = "nccl-tests"
        self._version = self._test = ""
        self._settings = Settings()
        self._ranks: list[Rank] = []
        self._layout: Layout | None = None
        self._refused = ""
        self._headless = False
        self._rows: list[Row] = []
        self._left_out = 0
        self._bounds: int | None = None
        self._average: float | None = None
        self._failures: list[Evidence] = []
        self._complete = False
        self._saw_settings = False

    @property
    def has_run(self) -> bool:
        return bool(self._rows or self._ranks or self._failures or self._saw_settings or self._layout or self._refused)

    def _is_over(self) -> bool:
        return bool(self._rows or self._complete or self._average is not None)

    def finish(self) -> Run | None:
        """The run read so far, and a clean slate."""
        if not self.has_run:
            return None
        run = Run(
            label="",
            tool=self._tool,
            test=self._test or self.mentioned,
            version=self._version,
            source=self._source,
            line=self.started,
            settings=self._settings,
            ranks=tuple(self._ranks),
            rows=tuple(self._rows),
            rows_left_out=self._left_out,
            average=self._average,
            out_of_bounds=self._bounds,
            complete=self._average is not None,
            headless=self._headless,
            refused_header=scrub(self._refused),
            failures=tuple(self._failures),
        )
        self._begin(0)
        return run

    def starts_anew(self, text: str) -> bool:
        """Whether this line belongs to a run that is not the one being read."""
        if not text.startswith(("#", "rccl-tests")):
            return False
        if _BANNER.match(text) or _STARTING.match(text):
            return self._is_over() or (bool(_BANNER.match(text)) and bool(self._version))
        if _SETTINGS.match(text):
            return self._is_over() or self._saw_settings
        rank = _RANK.match(text)
        return bool(rank and int(rank[1]) == 0 and (self._is_over() or any(one.rank == 0 for one in self._ranks)))

    # -- lines ---------------------------------------------------------------------------------------------------

    def read(self, line: Line) -> Read:
        text = line.text
        if text.startswith("#"):
            return self._read_comment(line)
        if _ROW_START.match(text):
            return self._read_row(line)
        if self._split_head and _ONLY_NUMBERS.fullmatch(text):
            return self._read_row(line._replace(text=f"{self._split_head} {text}"), joined=True)
        if _FAILURE.search(text):
            return self._read_failure(line)
        if banner := _BANNER.match(text):
            return self._read_banner(banner, line.number)
        return Read.TAKEN if _RCCL_BANNER.match(text) else Read.NOT_MINE

    def split(self, text: str) -> str:
        """The NCCL line that fell into a row; keeps the row's beginning. Empty if this is no such line."""
        found = _BROKEN_HEAD.match(text)
        if found is None:
            return ""
        self._split_head = found[1]
        return found[2]

    def _read_banner(self, found: re.Match[str], line: int) -> Read:
        self._tool = "rccl-tests" if found[1] == "rccl" else "nccl-tests"
        self._version = found[2]
        self.started = self.started or line
        return Read.TAKEN

    def _read_comment(self, line: Line) -> Read:
        text = line.text
        self.started = self.started or line.number
        if rank := _RANK.match(text):
            return self._read_rank(rank)
        if _SETTINGS.match(text):
            return self._read_settings(text)
        if banner := _BANNER.match(text):
            return self._read_banner(banner, line.number)
        if found := _STARTING.match(text):
            self._test = name_test(found[1]) or found[1]
            return Read.TAKEN
        if found := _BOUNDS.match(text):
            self._bounds = int(found[1])
            return Read.TAKEN
        if found := _AVERAGE.match(text):
            return self._read_average(found, line)
        if _FAILURE.search(text):
            return self._read_failure(line)
        return self._read_header(text)

    def _read_header(self, text: str) -> Read:
        layout = parse_header(text)
        if isinstance(layout, str):
            self._layout, self._refused = None, layout
            return Read.GARBLED
        if layout is not None:
            self._layout, self._refused = layout, ""
            return Read.TAKEN
        if "(B)" in text and (odd := find_odd_unit(text)):
            self._layout, self._refused = None, odd
            return Read.GARBLED
        if "(B)" in text or _DECORATION.match(text) or _CONCLUDED.match(text):
            self._complete = self._complete or bool(_CONCLUDED.match(text))
            return Read.TAKEN
        return Read.NOT_MINE

    def _read_rank(self, found: re.Match[str]) -> Read:
        rank, pid, host, device, bus, gpu = found.groups()
        if len(self._ranks) < MAX_RANKS:
            self._ranks.append(
                Rank(rank=int(rank), host=host, pid=int(pid), device=int(device), bus=bus, gpu=scrub(gpu.strip()))
            )
        return Read.TAKEN

    def _read_settings(self, text: str) -> Read:
        found = {name: int(value) for name, value in _SETTING.findall(text)}
        self._saw_settings = True
        self._settings = Settings(
            min_bytes=found.get("minBytes"),
            max_bytes=found.get("maxBytes"),
            iterations=found.get("iters"),
            warmup=found.get("warmup iters"),
            aggregate=found.get("agg iters"),
            checked=None if "validation" not in found else bool(found["validation"]),
            graph=None if "graph" not in found else bool(found["graph"]),
            gpus_per_process=found.get("nGpus", found.get("ngpus")),
            threads=found.get("nThread", found.get("nthread")),
        )
        return Read.TAKEN

    def _read_average(self, found: re.Match[str], line: Line) -> Read:
        number = parse_number(found[1])
        if number is None:
            return Read.GARBLED
        self._average = number.value
        if found[2]:
            self._failures.append(Evidence(line=line.number, text=scrub(line.text)))
        return Read.TAKEN

    def _read_failure(self, line: Line) -> Read:
        self.started = self.started or line.number
        if len(self._failures) < MAX_FAILURES:
            self._failures.append(Evidence(line=line.number, text=scrub(line.text.strip())))
        return Read.TAKEN

    def _read_row(self, line: Line, *, joined: bool = False) -> Read:
        self._split_head = ""
        if line.text.split(maxsplit=3)[2] not in TYPES:
            return Read.NOT_MINE
        row = parse_row(line.text, self._layout or DOCUMENTED, line.number) if not self._refused else None
        # Without a header, and where two pieces were joined, the numbers themselves have to vouch for their columns.
        if row is None or ((joined or self._layout is None) and not row_proves_itself(row)):
            return Read.GARBLED
        self.started = self.started or line.number
        self._headless = self._headless or self._layout is None
        if len(self._rows) < MAX_ROWS:
            self._rows.append(row)
        else:
            self._left_out += 1
        return Read.TAKEN
