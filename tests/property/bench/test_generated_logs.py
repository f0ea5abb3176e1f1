"""Logs made from the formats at random: what was written is what is read, and damage never invents a number."""

import io
import math
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from fishplate.bench.judge import judge_study
from fishplate.bench.results import Context, Study
from fishplate.bench.study import encode_study, place_runs, read_runs
from fishplate.errors import DocumentError
from fishplate.findings import Verdict
from fishplate.hardware.catalog import load_catalog
from tests.unit.bench.formats import (
    Job,
    Table,
    channels,
    devices,
    measure,
    nccl,
    perftest_bandwidth,
    sizes,
    using,
    write_job,
)

CATALOG = load_catalog()
GB300 = Context(size="Standard_ND128isr_GB300_v6", nics=4)

prefixes = st.sampled_from(
    [
        "",
        "[pod/nccl-test-launcher-x7k2p/launcher] ",
        "2026-03-01T12:13:14.000000001Z ",
        "[pod/nccl-test-launcher-x7k2p/launcher] 2026-03-01T12:13:14Z ",
        "[1,0]<stdout>:",
        "2026-03-01T12:13:14Z stdout F ",
        "\x1b[32m[1,0]<stdout>:\x1b[0m",
        "nccl-test-launcher-x7k2p launcher ",
        "Sun Mar  1 12:13:14 2026<stdout>:",
    ]
)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    test = draw(st.sampled_from(["all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall"]))
    halves = draw(st.sampled_from([1, 2]))
    return Table(
        test=test,
        type=draw(st.sampled_from(["float", "half", "bfloat16", "double", "int8", "f8e4m3"])),
        redop="none" if test in ("all_gather", "alltoall", "broadcast") else "sum",
        has_root=draw(st.booleans()),
        wrong_name=draw(st.sampled_from(["#wrong", "error"])),
        halves=halves,
        blank_first=halves == 2 and draw(st.booleans()),
        timestamp=draw(st.sampled_from(["", "2026-03-01 12:13:14"])),
        per_iteration=draw(st.booleans()),
    )


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    low = 2 ** draw(st.integers(10, 32))
    top = draw(st.floats(0.5, 2000))
    hosts, per_host = draw(st.sampled_from([(2, 1), (2, 4), (8, 1), (4, 8)]))
    ranks = devices(hosts, per_host)
    noise = draw(st.lists(st.sampled_from(["hca", "channel", "chatter"]), max_size=4))
    lines = {
        "hca": using("nccl-test-worker-0", ["mlx5_0", "mlx5_1"]),
        "channel": channels("nccl-test-worker-0", 1, "NET/IB/%d/GDRDMA")[0],
        "chatter": nccl("nccl-test-worker-1", "[Proxy Progress] Device 0 CPU core 7"),
    }
    return Job(
        ranks,
        lambda size: top * size / (size + 4_000_000),
        low=low,
        high=low * 2 ** draw(st.integers(0, 4)),
        table=draw(tables()),
        check=draw(st.sampled_from([0, 1])),
        banner=draw(
            st.sampled_from(
                [
                    (),
                    ("# nccl-tests version 2.19.6 nccl-headers=1 nccl-library=1",),
                    ("rccl-tests: Version develop:5272cd1",),
                ]
            )
        ),
        starting=draw(st.booleans()),
        group=draw(st.booleans()),
        between_rows=[lines[kind] for kind in noise],
        asterisks=draw(st.booleans()),
        cycles=draw(st.sampled_from([1, 1, 3])),
    )


def read(data: bytes) -> Study:
    return read_runs(io.BytesIO(data), "log")


def encode(job: Job, prefix: str = "") -> bytes:
    return "".join(f"{prefix}{line}\n" for line in write_job(job)).encode()


def expected_busbw(job: Job) -> list[list[float]]:
    """What the writer printed, half by half."""
    found = []
    for size in sizes(job.low, job.high) * job.cycles:
        shares = (1.0, 0.998)[: job.table.halves][job.table.blank_first :]
        printed = [measure(size, job.busbw(size) * share, job.table.test, len(job.ranks), "0") for share in shares]
        found.append([float(half.busbw) for half in printed])
    return found


@given(jobs(), prefixes)
@settings(max_examples=150)
def test_what_was_written_is_what_is_read(job: Job, prefix: str) -> None:
    study = read(encode(job, prefix))
    (run,) = study.runs
    assert (study.unread.garbled, study.unread.other) == (0, 0)
    assert [row.bytes for row in run.rows] == sizes(job.low, job.high) * job.cycles
    assert [[half.busbw for half in row.halves] for row in run.rows] == expected_busbw(job)
    assert len(run.ranks) == len(job.ranks)
    assert run.complete
    if job.starting:
        assert run.test == job.table.test


@given(jobs())
@settings(max_examples=100)
def test_an_honest_log_contradicts_nothing(job: Job) -> None:
    judgement = judge_study(place_runs(read(encode(job)), GB300), CATALOG)
    odd = {finding.id for run in judgement.runs for finding in run.findings}
    assert not odd & {"bench.algbw", "bench.rank-count", "bench.average", "bench.foreign-rows", "bench.cut"}


@given(jobs(), st.floats(0, 1))
@settings(max_examples=150)
def test_a_log_cut_anywhere_reads_no_row_that_was_not_there(job: Job, where: float) -> None:
    data = encode(job)
    cut = data[: int(len(data) * where)]
    try:
        runs = read(cut).runs
    except DocumentError:
        return
    printed = expected_busbw(job)
    for run in runs:
        assert [[half.busbw for half in row.halves] for row in run.rows] == printed[: len(run.rows)]


@given(jobs(), st.integers(0, 2**32), st.integers(1, 30))
@settings(max_examples=150)
def test_damage_never_makes_a_slow_run_good(job: Job, seed: int, hits: int) -> None:
    """Bytes are struck out at random; what is left may be unreadable, but not better than it was."""
    slow = job._replace(busbw=lambda _size: 5.0)
    data = bytearray(encode(slow))
    chance = random.Random(seed)
    for _ in range(hits):
        del data[chance.randrange(len(data))]
    try:
        judgement = judge_study(place_runs(read(bytes(data)), GB300), CATALOG)
    except DocumentError:
        return
    assert judgement.verdict is not Verdict.GOOD


@given(st.binary(max_size=4000))
@settings(max_examples=300)
def test_any_bytes_are_bad_input_or_judged(data: bytes) -> None:
    try:
        study = read(data)
    except DocumentError:
        return
    judge_study(study, CATALOG)


WORDS = st.sampled_from(
    [
        *("#", "# nThread 1 nGpus 1 minBytes 8 maxBytes 8", "#  Rank  0 Group  0 Pid 1 on h device  0 [0x61] A100"),
        *("# size count type redop root time algbw busbw #wrong time algbw busbw #wrong", "# Avg bus bandwidth : 1"),
        *("8 2 float sum -1 1.0 0.01 0.01 0 1.0 0.01 0.01 0", "8 2 float sum -1", "1.0 0.01 0.01 0 1.0 0.01 0.01 0"),
        *(
            "                    RDMA_Write BW Test",
            " #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]",
        ),
        *(
            " 65536 5000 1.0 1.0 0.001907",
            "sockperf: Summary: Latency is 1.0 usec",
            "8 bytes in 0 seconds = 0 Mbit/sec",
        ),
        *("h:1:2 [0] NCCL INFO Using network Socket", "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] via NET/IB/0"),
        *(
            "[1,0]<stdout>:",
            "[pod/a/b] ",
            "\x00",
            "\x1b[31m",
            "x: Test NCCL failure a:1 'b'",
            "1 iters in 1 seconds = 0 usec/iter",
        ),
    ]
)


@given(st.lists(st.tuples(WORDS, st.sampled_from(["\n", " ", "", "\r\n"])), max_size=30))
@settings(max_examples=400)
def test_any_order_of_known_lines_is_survived(parts: list[tuple[str, str]]) -> None:
    try:
        study = read("".join(word + end for word, end in parts).encode())
    except DocumentError:
        return
    judge_study(place_runs(study, GB300), CATALOG)


@given(jobs())
@settings(max_examples=50)
def test_a_results_file_comes_back_as_it_was(job: Job) -> None:
    study = place_runs(read(encode(job)), GB300)
    assert read(encode_study(study)) == study


@given(
    st.lists(st.tuples(st.integers(1, 26), st.floats(0.5, 900)), min_size=1, max_size=6, unique_by=lambda pair: pair[0])
)
@settings(max_examples=100)
def test_perftest_bandwidths_are_read_in_any_unit(rows: list[tuple[int, float]]) -> None:
    wanted = sorted((2**power, value) for power, value in rows)
    for unit, scale in (("Gb/sec", 1.0), ("MiB/sec", 1048576 * 8 / 1e9)):
        (run,) = read("\n".join(perftest_bandwidth(wanted, unit=unit)).encode()).runs
        found = [figure for figure in run.figures if figure.metric == "ib_write_bw"]
        assert [figure.bytes for figure in found] == [size for size, _ in wanted]
        for figure, (_, value) in zip(found, wanted, strict=True):
            assert math.isclose(figure.value, round(value, 2) * scale, rel_tol=1e-9)
