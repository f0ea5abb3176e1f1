"""What a benchmark run left behind, as plain values; also the form of a results file (docs/bench.md).

A run holds everything that a later judge needs: the figures, who took part, what NCCL said about its paths, what could
not be read, and what the person who ran it knows (`Context`). Figures are kept as printed, with the rounding that the
print brought along, because consistency checks must not blame a program for its number format.
"""

from typing import Literal

import msgspec

SCHEMA = "fishplate.bench/v1"

Tool = Literal["nccl-tests", "rccl-tests", "perftest", "rc_pingpong", "sockperf", "nccl", "published"]
Align = Literal["", "numa", "none"]
Over = Literal["infiniband", "roce", "ipoib", "ethernet", "nvlink"]


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The manners all Structs of a results file share."""


class Evidence(Part, frozen=True, kw_only=True):
    """A line of the log, scrubbed of secrets."""

    line: int
    text: str


class Half(Part, frozen=True, kw_only=True):
    """Out-of-place or in-place. The slacks are relative: how far rounding alone may move the two ratios we check."""

    time_us: float
    algbw: float
    busbw: float
    wrong: float | None = None
    """Wrong elements; None when nothing was checked."""
    flagged: bool = False
    """An asterisk stood beside a number: rccl-tests' mark for errors beyond the threshold."""
    time_is_cpu: bool = False
    """The column said cputime, from which no bandwidth follows."""
    time_slack: float = 0.0
    busbw_slack: float = 0.0


class Row(Part, frozen=True, kw_only=True):
    """One size of a collective test."""

    line: int
    bytes: int
    count: int = 0
    type: str = ""
    redop: str = ""
    root: int | None = None
    out_of_place: Half | None = None
    in_place: Half | None = None

    @property
    def halves(self) -> tuple[Half, ...]:
        return tuple(half for half in (self.out_of_place, self.in_place) if half is not None)

    @property
    def busbw(self) -> float:
        """The better half: both go the same way over the wire, and the worse one is the noise of the first touch."""
        return max(half.busbw for half in self.halves)


class Figure(Part, frozen=True, kw_only=True):
    """One number with the name that the catalogue's expectations use for it."""

    metric: str
    value: float
    unit: str
    bytes: int | None = None
    line: int = 0
    note: str = ""


class Rank(Part, frozen=True, kw_only=True):
    rank: int
    host: str
    pid: int = 0
    device: int = 0
    bus: str = ""
    gpu: str = ""


class Hca(Part, frozen=True, kw_only=True):
    name: str
    port: int
    layer: str


class Path(Part, frozen=True, kw_only=True):
    """Channels that one kind of transport carries: `NET/IB`, `NET/Socket`, `P2P`, `SHM`."""

    transport: str
    channels: int
    """Distinct channel numbers."""
    lines: int
    gdr: int = 0
    devices: tuple[int, ...] = ()
    evidence: tuple[Evidence, ...] = ()


class Network(Part, frozen=True, kw_only=True):
    """What NCCL or RCCL said about its paths (NCCL_DEBUG=INFO)."""

    lines: int = 0
    version: str = ""
    networks: tuple[str, ...] = ()
    """Names behind `Using network`: IB, IBext_v11, Socket."""
    hcas: tuple[Hca, ...] = ()
    merged: dict[str, int] = {}
    """Virtual device index → physical devices behind it, for those of more than one."""
    paths: tuple[Path, ...] = ()
    coll_channels: int | None = None
    ranks: int | None = None
    nodes: int | None = None
    settings: dict[str, str] = {}
    errors: dict[str, int] = {}
    """Completion status code → how often."""
    warnings: int = 0
    signs: dict[str, tuple[Evidence, ...]] = {}
    """First lines of each kind that matters to a cause."""


class Settings(Part, frozen=True, kw_only=True):
    """How the test was called, as far as it printed it."""

    min_bytes: int | None = None
    max_bytes: int | None = None
    iterations: int | None = None
    warmup: int | None = None
    aggregate: int | None = None
    checked: bool | None = None
    graph: bool | None = None
    gpus_per_process: int | None = None
    threads: int | None = None
    device: str = ""
    link: str = ""
    queue_pairs: int | None = None
    gpu_memory: bool = False
    bidirectional: bool = False


class Context(Part, frozen=True, kw_only=True):
    """What the log does not say and the person does: the machine, what each worker was given, how it was placed."""

    size: str = ""
    nodes: int | None = None
    gpus: int | None = None
    nics: int | None = None
    nic_gbps: float | None = None
    """The NIC's line rate, for machines that no catalogue knows."""
    align: Align = ""
    gdr: bool | None = None
    over: Over = "infiniband"
    note: str = ""


class Unread(Part, frozen=True, kw_only=True):
    """Lines that nobody read. `garbled` ones look like results or NCCL lines and cannot be read as such."""

    garbled: int = 0
    other: int = 0
    shown: tuple[Evidence, ...] = ()


class Run(Part, frozen=True, kw_only=True):
    label: str
    tool: Tool
    test: str = ""
    version: str = ""
    source: str = ""
    """The file it came from."""
    line: int = 0
    settings: Settings = Settings()
    ranks: tuple[Rank, ...] = ()
    rows: tuple[Row, ...] = ()
    rows_left_out: int = 0
    figures: tuple[Figure, ...] = ()
    average: float | None = None
    peak: float | None = None
    """Only where a publication gives it without the row it came from."""
    out_of_bounds: int | None = None
    complete: bool = True
    """Whether the end of the test's own output was seen."""
    headless: bool = False
    """The table's header was missing; the documented layout was taken, row by row, where its numbers agree."""
    refused_header: str = ""
    """Names in the table's header that nobody knows; its rows were not read."""
    network: Network = Network()
    failures: tuple[Evidence, ...] = ()
    """Lines in which the test itself says that it failed."""
    environment: dict[str, str] = {}
    context: Context = Context()
    sources: tuple[str, ...] = ()
    """For published runs: where the figures stand."""

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(rank.host for rank in self.ranks))


class Study(Part, frozen=True, kw_only=True, tag_field="schema", tag=SCHEMA):
    """A results file. Its form is always written, and no other form is read."""

    name: str = ""
    taken: str = ""
    """When, as ISO 8601; empty when nobody knows."""
    notes: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()
    unread: Unread = Unread()
