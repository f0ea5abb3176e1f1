"""Reads a log, whatever is in it, in one pass and bounded memory.

Each line goes to the reader that knows its kind. Table readers are kept for each stream (pod and rank), because several
of them may print at once; what NCCL says is kept for each pod, because every rank says it and only rank 0 prints the
table. NCCL's lines belong to the table that began last in their pod, or to the first one after them.

What no reader takes is counted, and the first of it is shown. A log without a single result is not an empty answer: it
is bad input, and says what was in it instead.
"""

import re

import msgspec

from fishplate.bench.busbw import name_test
from fishplate.bench.collective_log import CollectiveReader, Read
from fishplate.bench.lines import Line, Readable, read_lines
from fishplate.bench.nccl_log import NetworkReader, speaks_nccl
from fishplate.bench.perftest_log import PerftestReader
from fishplate.bench.results import Evidence, Run, Unread
from fishplate.bench.scrub import scrub
from fishplate.bench.signs import AROUND, AROUND_MARKS
from fishplate.errors import DocumentError

MAX_RUNS = 500
MAX_STREAMS = 4096
MAX_SHOWN = 5

_PROGRAM = re.compile(r"\b([a-z_]+_perf)(?:_mpi)?\b")


class _Pod:
    """The lines of one source: its streams, and what NCCL said there since the last table began."""

    def __init__(self) -> None:
        self.network = NetworkReader()
        self.bound = False
        """Whether a table has begun that these NCCL lines belong to."""
        self.run_indexes: list[int] = []


class Log:
    """What a log held."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.lines = 0
        self.nuls = 0
        self.runs: list[Run] = []
        self._garbled = 0
        self._other = 0
        self._shown: list[Evidence] = []
        self._networks: list[NetworkReader] = []
        self._pods: dict[str, _Pod] = {}
        self._collective: dict[tuple[str, str], CollectiveReader] = {}
        self._perftest: dict[tuple[str, str], PerftestReader] = {}
        self._mentioned = ""

    # -- lines ---------------------------------------------------------------------------------------------------

    def read(self, stream: Readable) -> None:
        for line in read_lines(stream):
            self.lines = line.number
            text = line.text
            if "\x00" in text:
                self.nuls += 1
                self._set_aside(line, garbled=True)
            elif line.cut:
                self._set_aside(line, garbled=True)
            elif speaks_nccl(text):
                self._read_nccl(line)
            elif text and not text.isspace():
                self._read_other(line)

    def _read_nccl(self, line: Line) -> None:
        text = line.text
        if text[0] in " 0123456789" and (rest := self._table(line).split(text)):
            text = rest
        self._pod(line.source).network.read(line.number, text)

    def _read_other(self, line: Line) -> None:
        collective, perftest = self._table(line), self._perf(line)
        if collective.starts_anew(line.text):
            self._close(line, collective.finish())
        elif perftest.starts_anew(line.text):
            self._close(line, perftest.finish())
        if not self._pod(line.source).bound and line.text.startswith("#"):
            self._pod(line.source).bound = True
        if any(mark in line.text for mark in AROUND_MARKS):
            self._note_sign(line)
        answer = collective.read(line)
        if answer is Read.NOT_MINE:
            answer = perftest.read(line)
        if answer is not Read.TAKEN:
            self._note_program(line.text)
            self._set_aside(line, garbled=answer is Read.GARBLED)

    def _note_sign(self, line: Line) -> None:
        network = self._pod(line.source).network
        for kind, pattern in AROUND:
            if pattern.search(line.text) and len(network.signs[kind]) < 3:
                network.signs[kind].append(Evidence(line=line.number, text=scrub(line.text.strip())))

    def _note_program(self, text: str) -> None:
        if not self._mentioned and "_perf" in text and (found := _PROGRAM.search(text)):
            self._mentioned = name_test(found[1])

    def _set_aside(self, line: Line, *, garbled: bool) -> None:
        self._garbled += garbled
        self._other += not garbled
        # Garbled lines matter more than chatter: they push it out of the few that are shown.
        if len(self._shown) < MAX_SHOWN or (garbled and self._garbled <= MAX_SHOWN):
            shown = Evidence(line=line.number, text=scrub(line.text.strip()))
            self._shown = [shown, *self._shown] if garbled else [*self._shown, shown]
            del self._shown[MAX_SHOWN:]

    # -- streams and runs ----------------------------------------------------------------------------------------

    def _pod(self, source: str) -> _Pod:
        found = self._pods.get(source)
        if found is None:
            source = source if len(self._pods) < MAX_STREAMS else ""
            found = self._pods.setdefault(source, _Pod())
        return found

    def _key(self, line: Line) -> tuple[str, str]:
        key = (line.source, line.rank)
        return key if key in self._collective or len(self._collective) < MAX_STREAMS else ("", "")

    def _table(self, line: Line) -> CollectiveReader:
        key = self._key(line)
        reader = self._collective.get(key)
        if reader is None:
            reader = self._collective[key] = CollectiveReader(self.where)
            self._perftest[key] = PerftestReader(self.where)
        return reader

    def _perf(self, line: Line) -> PerftestReader:
        self._table(line)
        return self._perftest[self._key(line)]

    def _close(self, line: Line, run: Run | None) -> None:
        if run is not None:
            self._add(line.source, run)
            pod = self._pod(line.source)
            pod.network, pod.bound = NetworkReader(), True

    def _add(self, source: str, run: Run) -> None:
        if len(self.runs) >= MAX_RUNS:
            raise DocumentError(
                f"more than {MAX_RUNS} runs", where=self.where, remedy="give the logs one by one, or a part of this one"
            )
        pod = self._pod(source)
        self.runs.append(run)
        self._networks.append(pod.network)
        pod.run_indexes.append(len(self.runs) - 1)

    def finish(self) -> tuple[Run, ...]:
        ends = [(source, reader.finish()) for (source, _), reader in self._collective.items()]
        ends += [(source, reader.finish()) for (source, _), reader in self._perftest.items()]
        for source, run in ends:
            if run is not None:
                self._add(source, run)
        self._adopt_lonely_networks()
        runs = []
        for run, network in _in_order(self.runs, self._networks):
            test = run.test or (self._mentioned if run.tool in ("nccl-tests", "rccl-tests") else "")
            runs.append(msgspec.structs.replace(run, network=network.finish(), test=test))
        return tuple(runs)

    def _adopt_lonely_networks(self) -> None:
        """NCCL's lines of pods without a table: part of the only run there is, or a log of NCCL alone."""
        lonely = [
            pod.network
            for pod in self._pods.values()
            if not pod.run_indexes and (pod.network.lines or pod.network.signs)
        ]
        if not lonely:
            return
        if len(self.runs) == 1:
            for network in lonely:
                self._networks[0].take_over(network)
        else:
            first, *others = lonely
            for network in others:
                first.take_over(network)
            self.runs.append(Run(label="", tool="nccl", source=self.where, line=1, complete=False))
            self._networks.append(first)

    @property
    def unread(self) -> Unread:
        return Unread(garbled=self._garbled, other=self._other, shown=tuple(self._shown))


def _in_order(runs: list[Run], networks: list[NetworkReader]) -> list[tuple[Run, NetworkReader]]:
    return sorted(zip(runs, networks, strict=True), key=lambda pair: pair[0].line)


def parse_log(stream: Readable, where: str) -> tuple[tuple[Run, ...], Unread]:
    """All runs of a log, in its order, and what could not be read. DocumentError if there is no run at all."""
    log = Log(where)
    log.read(stream)
    runs = log.finish()
    if not runs:
        raise _nothing_found(log)
    return runs, log.unread


def _nothing_found(log: Log) -> DocumentError:
    if not log.lines:
        return DocumentError(
            "empty", where=log.where, remedy="give the log of the launcher pod: kubectl logs JOB-launcher-…"
        )
    if log.nuls:
        what = f"no benchmark result in {log.lines} lines; {log.nuls} of them hold NUL bytes: a binary or damaged file?"
    else:
        what = f"no benchmark result in {log.lines} lines"
    shown = "".join(f"\n  line {one.line}: {one.text[:120]}" for one in log.unread.shown[:3])
    return DocumentError(
        what + shown,
        where=log.where,
        remedy="known are nccl-tests, rccl-tests, perftest, ibv_rc_pingpong, sockperf and logs of NCCL_DEBUG=INFO",
    )
