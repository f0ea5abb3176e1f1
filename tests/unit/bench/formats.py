"""Writes benchmark output as the programs print it, for tests: from their printf formats, with numbers that agree.

Sources of the formats: src/common.cu and src/util.cu of NVIDIA/nccl-tests, the same of ROCm/rccl-tests,
src/perftest_parameters.h of linux-rdma/perftest, and the texts of NVIDIA/nccl's transports.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

GIB = 1 << 30
MIB = 1 << 20
WIDTHS = {"float": 4, "half": 2, "bfloat16": 2, "double": 8, "int8": 1, "int32": 4, "f8e4m3": 1}


def factor(test: str, ranks: int) -> float:
    if test == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return 1.0 if test in ("broadcast", "reduce", "sendrecv") else (ranks - 1) / ranks


class Device(NamedTuple):
    host: str
    device: int
    bus: str
    gpu: str
    pid: int = 77


def devices(hosts: int, per_host: int, gpu: str = "NVIDIA GB300", name: str = "nccl-test-worker-{}") -> list[Device]:
    return [
        Device(name.format(host), device, f"{8 + device:04x}:06:00", gpu, 70 + device)
        for host in range(hosts)
        for device in range(per_host)
    ]


def time_text(value: float) -> str:
    """At most seven characters; beyond that the exponent form of recent releases."""
    if value >= 1e7:
        return f"{value:.1e}"
    return f"{value:.0f}" if value >= 10_000 else f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def bandwidth_text(value: float) -> str:
    return f"{value:.2f}" if value < 1000 else f"{value:.1f}" if value < 10_000 else f"{value:.0e}"


class Measured(NamedTuple):
    """What one half of a row prints."""

    time: str
    algbw: str
    busbw: str
    wrong: str


def measure(size: int, busbw: float, test: str, ranks: int, wrong: str) -> Measured:
    """Times come first, as in the program; the bandwidths follow from the unrounded time."""
    share = factor(test, ranks)
    algbw = busbw / share if share else 5.0
    time = size / algbw / 1e3
    return Measured(time_text(time), bandwidth_text(algbw), bandwidth_text(busbw if share else 0.0), wrong)


class Table(NamedTuple):
    """How to print a table; the defaults are those of nccl-tests 2.19."""

    test: str = "all_reduce"
    type: str = "float"
    redop: str = "sum"
    root: int = -1
    wrong: str = "0"
    has_root: bool = True
    wrong_name: str = "#wrong"
    halves: int = 2
    blank_first: bool = False
    timestamp: str = ""
    per_iteration: bool = False
    time_name: str = "time"


def header(table: Table) -> list[str]:
    half = f"  {table.time_name:>7}  {'algbw':>6}  {'busbw':>6}  {table.wrong_name:>6}"
    units = f"  {'(us)':>7}  {'(GB/s)':>6}  {'(GB/s)':>6}  {'':>6}"
    if table.per_iteration:
        half += f"  {'i_min':>7}  {'i_max':>7}  {'i_p99':>7}  {'i_cv%':>7}"
        units += f"  {'(us)':>7}  {'(us)':>7}  {'(us)':>7}  {'(%)':>7}"
    base = f"# {'size':>10}  {'count':>12}  {'type':>8}  {'redop':>6}" + (f"  {'root':>6}" if table.has_root else "")
    under = f"# {'(B)':>10}  {'(elements)':>12}  {'':>8}  {'':>6}" + (f"  {'':>6}" if table.has_root else "")
    stamp = "  timestamp" if table.timestamp else ""
    names = "out-of-place                       in-place" if table.halves == 2 else "in-place"
    return [f"#{'':>62}{names}", base + half * table.halves + stamp, under + units * table.halves]


def row(table: Table, size: int, halves: Sequence[Measured], ranks: int = 2) -> str:
    count = size // WIDTHS[table.type]
    if table.test in ("all_gather", "alltoall"):
        count //= ranks
    text = f"{size:>12}  {count:>12}  {table.type:>8}  {table.redop:>6}" + (
        f"  {table.root:>6}" if table.has_root else ""
    )
    for index, half in enumerate(halves):
        if table.blank_first and index == 0:
            text += " " * 33
            continue
        text += f"  {half.time:>7}  {half.algbw:>6}  {half.busbw:>6}  {half.wrong:>6}"
        if table.per_iteration:
            text += f"  {half.time:>7}  {half.time:>7}  {half.time:>7}  {'1.25':>7}"
    return text + (f" {table.timestamp}" if table.timestamp else "")


def sizes(low: int, high: int) -> list[int]:
    found = []
    while low <= high:
        found.append(low)
        low *= 2
    return found


class Job(NamedTuple):
    """A whole run of a collective test."""

    ranks: Sequence[Device]
    busbw: Callable[[int], float]
    low: int = 512 * MIB
    high: int = 8 * GIB
    table: Table = Table()
    check: int = 0
    banner: Sequence[str] = ("# nccl-tests version 2.19.6 nccl-headers=23007 nccl-library=23007",)
    starting: bool = True
    group: bool = True
    after_devices: Sequence[str] = ()
    between_rows: Sequence[str] = ()
    footer: bool = True
    asterisks: bool = False
    cycles: int = 1
    bounds: int = 0
    noise: Callable[[int, int], float] = lambda _size, _cycle: 1.0


def settings_line(job: Job) -> str:
    return (
        f"# nThread 1 nGpus 1 minBytes {job.low} maxBytes {job.high} step: 2(factor) warmup iters: 1 iters: 20"
        f" agg iters: 1 validation: {job.check} graph: 0"
    )


def write_job(job: Job) -> list[str]:
    table = job.table._replace(wrong=job.table.wrong if job.check else "N/A")
    lines = [*job.banner]
    if job.starting:
        lines.append(f"# Collective test starting: {table.test}_perf")
    lines += [settings_line(job), "#", "# Using devices"]
    for number, one in enumerate(job.ranks):
        group = " Group  0" if job.group else ""
        lines.append(
            f"#  Rank {number:>2}{group} Pid {one.pid:>6} on {one.host:>10} device {one.device:>2} [{one.bus}]"
            f" {one.gpu}"
        )
    lines += [*job.after_devices, "#", *header(table)]
    values: list[float] = []
    for cycle in range(job.cycles):
        for number, size in enumerate(sizes(job.low, job.high)):
            busbw = job.busbw(size) * job.noise(size, cycle)
            halves = [measure(size, busbw * share, table.test, len(job.ranks), table.wrong) for share in (1.0, 0.998)]
            halves = halves[: table.halves]
            lines.append(row(table, size, halves, len(job.ranks)))
            values += [float(half.busbw) for half in halves[table.blank_first :]]
            if number < len(job.between_rows):
                lines.append(job.between_rows[number])
    if job.asterisks:
        lines.append("# Errors with asterisks indicate errors that have exceeded the maximum threshold.")
    if job.footer:
        state = "FAILED" if job.bounds else "OK"
        lines += [
            f"# Out of bounds values : {job.bounds} {state}",
            f"# Avg bus bandwidth    : {sum(values) / len(values):g} ",
        ]
        lines += ["#", f"# Collective test concluded: {table.test}_perf", "#"] if job.starting else ["#"]
    return lines


# -- NCCL ----------------------------------------------------------------------------------------------------------


def nccl(host: str, text: str, *, rank: int = 0, kind: str = "INFO") -> str:
    return f"{host}:{70 + rank}:{90 + rank} [{rank}] NCCL {kind} {text}"


def using(host: str, hcas: Iterable[str], layer: str = "IB", *, tail: str = " [RO]; OOB eth0:10.244.1.5<0>") -> str:
    listed = " ".join(f"[{index}]{name}:1/{layer}" for index, name in enumerate(hcas))
    return nccl(host, f"NET/IB : Using {listed}{tail}")


def channels(host: str, count: int, transport: str, *, peer: int = 1, devices: Sequence[int] = (0,)) -> list[str]:
    """`transport` has %d where the device's number goes."""
    return [
        nccl(
            host, f"Channel {number:02d}/0 : 0[0] -> {peer}[0] [send] via {transport % devices[number % len(devices)]}"
        )
        for number in range(count)
    ]


# -- perftest ------------------------------------------------------------------------------------------------------

RULE = "-" * 87


def perftest_bandwidth(
    rows: Iterable[tuple[int, float]],
    *,
    title: str = "RDMA_Write BW Test",
    unit: str = "Gb/sec",
    device: str = "mlx5_0",
    link: str = "IB",
) -> list[str]:
    """Values in `unit`; the message rate follows from them."""
    lines = [
        RULE,
        f"                    {title}",
        f" Dual-port       : OFF\t\tDevice         : {device}",
        " Number of qps   : 1\t\tTransport type : IB",
        " Connection type : RC\t\tUsing SRQ      : OFF",
        " PCIe relax order: ON",
        " Mtu             : 4096[B]",
        f" Link type       : {link}",
        " Data ex. method : Ethernet",
        RULE,
        " local address: LID 0x07 QPN 0x0219 PSN 0xbdca3b RKey 0x8010100 VAddr 0x0000000228c000",
        " remote address: LID 0x08 QPN 0x0219 PSN 0x309de3 RKey 0x8010100 VAddr 0x00000002035000",
        RULE,
        f" #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]",
    ]
    for size, value in rows:
        bits = value * 1e9 if unit == "Gb/sec" else value * 1024 * 1024 * 8
        lines.append(
            f" {size:<10} {5000:<10}       {value:<7.2f}            {value:<7.2f}           {bits / 8 / size / 1e6:.6f}"
        )
    return [*lines, RULE]


def perftest_latency(rows: Iterable[tuple[int, float]], *, title: str = "RDMA_Read Latency Test") -> list[str]:
    lines = perftest_bandwidth((), title=title)[:-2]
    names = ["t_min", "t_max", "t_typical", "t_avg", "t_stdev"]
    lines.append(
        " #bytes #iterations    "
        + "    ".join(f"{name}[usec]" for name in names)
        + "   99% percentile[usec]   99.9% percentile[usec] "
    )
    for size, value in rows:
        low, high = f"{value - 0.15:.2f}", f"{value + 6:.2f}"
        tail = f"{value:.2f}        \t0.18   \t\t{value + 0.2:.2f}    \t\t{high}   "
        lines.append(f" {size:<7} 1000          {low}           {high}         {value - 0.01:.2f}     \t       {tail}")
    return [*lines, RULE]
