"""Reads perftest (ib_write_bw and its kin), ibv_rc_pingpong and sockperf.

Perftest prints MiB/s unless told otherwise, and calls them MiB/sec today and MB/sec in old releases; the header says
which, and every figure leaves here in Gb/s (1e9 bits). A peak of 0.00 means that none was measured (`-D`).
"""

import re

import msgspec

from fishplate.bench.collective_log import MAX_FAILURES, MAX_ROWS, Read
from fishplate.bench.lines import Line
from fishplate.bench.printed import parse_count, parse_number
from fishplate.bench.results import Evidence, Figure, Run, Settings, Tool
from fishplate.bench.scrub import scrub

GBPS_PER_MIB = 1024 * 1024 * 8 / 1e9

_TITLE = re.compile(
    r"\s{4,}(?:(RDMA_Write|RDMA_Read|Send|Atomic(?: \w+)*|Raw Ethernet \w+) )?"
    r"(Bidirectional )?(Post List )?(BW|Latency)(?: Post List)? Test\b"
)
_PAIR = re.compile(r"(Device|Link type|Mtu|GID index|Number of qps|Connection type)\s*: (\S+)")
_COLUMN = re.compile(
    r"#bytes|#iterations|BW peak\[(?P<peak>[^\]]+)\]|BW average\[(?P<average>[^\]]+)\]|MsgRate\[Mpps\]"
    r"|t_(?:min|max|typical|avg|stdev)\[usec\]|99(?:\.9+)?% percentile\[usec\]|tps average|CPU_Util\[%\]|#sl"
)
_UNITS = {"Gb/sec": 1.0, "MiB/sec": GBPS_PER_MIB, "MB/sec": GBPS_PER_MIB}
_FAILURE = re.compile(
    r"Completion with error at (?:client|server)|Failed status[ -]|Couldn't allocate MR|Failed to modify QP"
    r"|Couldn't connect to \S+|Unable to find the Infiniband/RoCE device|No IB devices found|IB device \S+ not found"
)
_GPU = re.compile(r"cuMemAlloc\(\)|hipMalloc|Picking (?:device|GPU)|device name = \[|Using DMA-?BUF|initializing CUDA")
_CHATTER = re.compile(
    r"-{20,}|\s+(?:local|remote) address:|\s+GID: |\*{10,}|\* Waiting for client|Conflicting CPU frequency"
    r"|\s[A-Z][\w .*-]+: |Disabling dynamic polling|WARNING: BW peak won't be measured"
)
_STARTING = re.compile(r"Starting RDMA (?:client|server) '(\w+)' for (\w+)")
_PINGPONG_RATE = re.compile(r"(\d+) bytes in ([\d.]+) seconds = ([\d.]+) Mbit/sec")
_PINGPONG_TIME = re.compile(r"(\d+) iters in ([\d.]+) seconds = ([\d.]+) usec/iter")
_SOCKPERF = re.compile(
    r"sockperf: Summary: (?:(Latency) is ([\d.]+) usec|(Round trip) is ([\d.]+) usec"
    r"|(Message Rate) is (\d+) \[msg/sec\]|(BandWidth) is ([\d.]+) MBps \(([\d.]+) Mbps\))"
)
_VERBS = {"RDMA_Write": "ib_write", "RDMA_Read": "ib_read", "Send": "ib_send"}


class PerftestReader:
    """One stream; a new title starts a new run."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._begin("perftest", "", 0)

    def _begin(self, tool: Tool, test: str, line: int) -> None:
        self._tool: Tool = tool
        self._test = test
        self.started = line
        self._settings = Settings()
        self._columns: tuple[str, ...] = ()
        self._scale = 0.0
        self._refused = ""
        self._figures: list[Figure] = []
        self._left_out = 0
        self._failures: list[Evidence] = []

    def finish(self) -> Run | None:
        found = self._figures or self._failures or (self._test and self._tool == "perftest") or self._refused
        if not found:
            return None
        run = Run(
            label="",
            tool=self._tool,
            test=self._test,
            source=self._source,
            line=self.started,
            settings=self._settings,
            figures=tuple(self._figures),
            rows_left_out=self._left_out,
            complete=bool(self._figures),
            refused_header=scrub(self._refused),
            failures=tuple(self._failures),
        )
        self._begin("perftest", "", 0)
        return run

    def starts_anew(self, text: str) -> bool:
        if not self._figures and not self._failures:
            return False
        if _TITLE.match(text) or _STARTING.search(text) or _GPU.search(text):
            return True
        if "bytes in" in text and _PINGPONG_RATE.match(text):
            return True
        return "sockperf: " in text and self._tool != "sockperf" and bool(_SOCKPERF.search(text))

    def read(self, line: Line) -> Read:
        text = line.text
        if "[" in text and "#bytes" in text:
            return self._read_header(text)
        if self._columns and text.lstrip()[:1].isdigit():
            return self._read_row(line)
        if title := _TITLE.match(text):
            return self._read_title(title, line.number)
        if _FAILURE.search(text):
            if len(self._failures) < MAX_FAILURES:
                self._failures.append(Evidence(line=line.number, text=scrub(text.strip())))
            return Read.TAKEN
        if "sockperf: " in text:
            return self._read_sockperf(line)
        if "seconds = " in text and self._read_pingpong(line):
            return Read.TAKEN
        return self._read_chatter(text, line.number)

    def _read_title(self, found: re.Match[str], line: int) -> Read:
        kind = "bw" if found[4] == "BW" else "lat"
        gpu = self._settings.gpu_memory  # said before the title, while memory is set up
        self._begin("perftest", f"{_VERBS.get(found[1] or '', 'ib_atomic')}_{kind}", line)
        self._settings = Settings(bidirectional=bool(found[2]), gpu_memory=gpu)
        return Read.TAKEN

    def _read_chatter(self, text: str, line: int) -> Read:
        if found := _STARTING.search(text):
            self._begin("perftest" if found[1].startswith("ib_") else "rc_pingpong", found[1], line)
            self._settings = Settings(device=found[2])
            return Read.TAKEN
        if _GPU.search(text):
            self._set(gpu_memory=True)
            return Read.TAKEN
        if not self._test:
            return Read.NOT_MINE
        for name, value in _PAIR.findall(text):
            if name == "Device":
                self._set(device=value)
            elif name == "Link type":
                self._set(link=value)
            elif name == "Number of qps":
                self._set(queue_pairs=parse_count(value))
        return Read.TAKEN if _CHATTER.match(text) or not text.strip() else Read.NOT_MINE

    def _set(self, **changes: object) -> None:
        self._settings = msgspec.structs.replace(self._settings, **changes)

    def _read_header(self, text: str) -> Read:
        columns = tuple(found[0] for found in _COLUMN.finditer(text))
        rest = _COLUMN.sub("", text).strip()
        units = {unit for found in _COLUMN.finditer(text) for unit in found.groupdict().values() if unit}
        unknown = rest or next((unit for unit in units if unit not in _UNITS), "")
        if unknown:
            self._columns, self._refused = (), unknown
            return Read.GARBLED
        self._columns, self._refused = columns, ""
        self._scale = _UNITS[units.pop()] if units else 0.0
        return Read.TAKEN

    def _read_row(self, line: Line) -> Read:
        tokens = line.text.split()
        if len(tokens) != len(self._columns):
            return Read.GARBLED
        numbers = [parse_number(token) for token in tokens]
        size = parse_count(tokens[0])
        if size is None or any(number is None for number in numbers):
            return Read.GARBLED
        iterations = None
        for column, number in zip(self._columns, numbers, strict=True):
            assert number is not None
            if column == "#iterations":
                iterations = int(number.value)
            self._keep(column, number.value, size, line.number)
        self._set(iterations=iterations)
        return Read.TAKEN

    def _keep(self, column: str, value: float, size: int, line: int) -> None:
        if len(self._figures) >= MAX_ROWS:
            self._left_out += 1
            return
        test = self._test or "ib_bw"
        figure: Figure | None = None
        if column.startswith("BW average"):
            figure = Figure(metric=test, value=value * self._scale, unit="Gb/s", bytes=size, line=line)
        elif column.startswith("BW peak") and value:
            figure = Figure(metric=f"{test}_peak", value=value * self._scale, unit="Gb/s", bytes=size, line=line)
        elif column == "MsgRate[Mpps]":
            figure = Figure(metric="message_rate", value=value, unit="Mpps", bytes=size, line=line)
        elif column == "t_avg[usec]":
            figure = Figure(metric=test, value=value, unit="us", bytes=size, line=line)
        elif column.startswith(("t_", "99")):
            name = column.partition("[")[0].replace("% percentile", "")
            figure = Figure(metric=f"{test}_{name}", value=value, unit="us", bytes=size, line=line)
        if figure is not None:
            self._figures.append(figure)

    def _read_pingpong(self, line: Line) -> bool:
        if found := _PINGPONG_RATE.match(line.text.strip()):
            if self._tool != "rc_pingpong":
                self._begin("rc_pingpong", "ibv_rc_pingpong", line.number)
            size = int(found[1])
            self._figures.append(
                Figure(metric="rc_pingpong_rate", value=float(found[3]), unit="Mbit/s", bytes=size, line=line.number)
            )
            return True
        if found := _PINGPONG_TIME.match(line.text.strip()):
            self._set(iterations=int(found[1]))
            self._figures.append(Figure(metric="rc_pingpong_time", value=float(found[3]), unit="us", line=line.number))
            return True
        return False

    def _read_sockperf(self, line: Line) -> Read:
        if self._tool != "sockperf":
            self._begin("sockperf", "sockperf", line.number)
        found = _SOCKPERF.search(line.text)
        if found is None:
            return Read.TAKEN
        if found[1]:
            figure = Figure(metric="sockperf_latency", value=float(found[2]), unit="us", line=line.number)
        elif found[3]:
            figure = Figure(metric="sockperf_round_trip", value=float(found[4]), unit="us", line=line.number)
        elif found[5]:
            figure = Figure(metric="sockperf_rate", value=float(found[6]), unit="msg/s", line=line.number)
        else:
            figure = Figure(metric="sockperf_throughput", value=float(found[9]), unit="Mbit/s", line=line.number)
        self._figures.append(figure)
        return Read.TAKEN
