"""Whether a run's numbers can be true together, and whether the run was the one that was meant.

Every check is a small function that yields findings. They come before any verdict on speed: a table whose rows do not
follow from each other was edited, mixed or misread, and nothing may be concluded from it. Such contradictions are
`cannot-tell`; a run that failed, that computed wrong values or that ran somewhere else than asked is `bad`.

`BLOCKING` names the checks after which a rate says nothing; the others are remarks beside it.
"""

from collections.abc import Callable, Iterator

from fishplate.bench.busbw import factor, recover_ranks
from fishplate.bench.results import Context, Figure, Row, Run
from fishplate.bench.table import algbw_agrees
from fishplate.findings import Finding, Verdict

_AVERAGE_SLACK = 0.002
_TRUSTED_SLACK = 0.01  # a ratio of two numbers printed with fewer digits tells too little about ranks
_FIGURE_SLACK = 0.02

BLOCKING = frozenset(
    {
        *("bench.algbw", "bench.rank-count", "bench.average", "bench.foreign-rows", "bench.unknown-header"),
        *("bench.message-rate", "bench.pingpong", "bench.cut"),
    }
)


def place(run: Run, line: int = 0) -> str:
    """`file:line`, as an editor takes it."""
    return f"{run.source or run.label}:{line}" if line else run.source or run.label


def check_algbw(run: Run, _context: Context) -> Iterator[Finding]:
    odd = [row for row in run.rows if not all(algbw_agrees(row, half) for half in row.halves)]
    if odd:
        row = odd[0]
        half = next(half for half in row.halves if not algbw_agrees(row, half))
        yield Finding(
            id="bench.algbw",
            place=place(run, row.line),
            what=f"size / time is not algbw in {len(odd)} of {len(run.rows)} rows",
            evidence=f"{row.bytes} B / {half.time_us:g} us = {row.bytes / half.time_us / 1e3:.2f}, not {half.algbw:g}",
            remedy="the table was changed, mixed with another or misread; take the log again",
            verdict=Verdict.CANNOT_TELL,
        )


def check_rank_count(run: Run, _context: Context) -> Iterator[Finding]:
    ranks = len(run.ranks) or run.network.ranks
    if not ranks:
        return
    wanted = factor(run.test, ranks)
    for row in run.rows:
        for half in row.halves:
            if wanted is None or half.busbw_slack > _TRUSTED_SLACK or not half.algbw:
                continue
            ratio = half.busbw / half.algbw
            if abs(ratio - wanted) <= half.busbw_slack * 1.5 * max(ratio, wanted) + 0.001:
                continue
            range_ = recover_ranks(run.test, ratio, half.busbw_slack)
            fits = f", which fits {_format_range(range_)}" if range_ and range_[0] <= range_[1] else ""
            yield Finding(
                id="bench.rank-count",
                place=place(run, row.line),
                what=f"{ranks} ranks are listed, but busbw / algbw says otherwise",
                evidence=f"{half.busbw:g} / {half.algbw:g} = {ratio:.3f}{fits}; {ranks} ranks give {wanted:.3f}",
                remedy="the table belongs to another run, or to another test than the log names",
                verdict=Verdict.CANNOT_TELL,
            )
            return


def _format_range(found: tuple[int, int]) -> str:
    low, high = found
    return f"{low} ranks" if low == high else f"{low} ranks or more" if high >= 10**9 else f"{low} to {high} ranks"


def check_hosts(run: Run, context: Context) -> Iterator[Finding]:
    hosts = run.hosts if run.rows or run.complete else ()  # a log may end within the list of devices
    if context.nodes and hosts and len(hosts) != context.nodes:
        yield Finding(
            id="bench.hosts",
            place=place(run, run.line),
            what=f"{context.nodes} nodes were meant, the ranks ran on {len(hosts)}",
            evidence=f"hosts: {', '.join(hosts[:4])}{' …' if len(hosts) > 4 else ''}",
            remedy="see where the ranks were started: mpirun's --hostfile, -np, the slots of each worker",
            verdict=Verdict.BAD,
        )


def check_results(run: Run, _context: Context) -> Iterator[Finding]:
    wrong = [row for row in run.rows if any(half.wrong or half.flagged for half in row.halves)]
    if wrong or run.out_of_bounds:
        line = wrong[0].line if wrong else 0
        yield Finding(
            id="bench.wrong-results",
            place=place(run, line),
            what="the collective computed wrong values",
            evidence=f"{len(wrong)} rows with wrong elements, {run.out_of_bounds or 0} values out of bounds",
            remedy="stop trusting this machine: run each node alone with -c 1, then pairs, and look for ECC errors",
            verdict=Verdict.BAD,
        )


def check_validation(run: Run, _context: Context) -> Iterator[Finding]:
    if (
        run.rows
        and run.settings.checked is not True
        and all(half.wrong is None for row in run.rows for half in row.halves)
    ):
        yield Finding(
            id="bench.unchecked",
            place=place(run, run.rows[0].line),
            what="the results were not checked, so that only the speed is known",
            evidence="#wrong is N/A in every row; `Out of bounds values : 0 OK` means nothing then",
            remedy="run one size with -c 1",
            verdict=Verdict.CANNOT_TELL,
        )


def check_end(run: Run, _context: Context) -> Iterator[Finding]:
    if run.tool in ("nccl-tests", "rccl-tests") and not run.complete and (run.rows or run.ranks) and not run.failures:
        last = run.rows[-1].line if run.rows else run.line
        yield Finding(
            id="bench.cut",
            place=place(run, last),
            what="the log ends before the test does",
            evidence=f"{len(run.rows)} rows, and no line `# Avg bus bandwidth`",
            remedy="the run hangs, was killed, or the log was cut: wait for its end, or see why it has none",
            verdict=Verdict.CANNOT_TELL,
        )


def check_average(run: Run, _context: Context) -> Iterator[Finding]:
    values = [half.busbw for row in run.rows for half in row.halves]
    if run.average is None or not values or run.rows_left_out:
        return
    mean = sum(values) / len(values)
    if abs(mean - run.average) > _AVERAGE_SLACK * max(mean, run.average) + 0.01:
        yield Finding(
            id="bench.average",
            place=place(run, run.rows[-1].line),
            what="the average printed is not that of the rows",
            evidence=f"{len(values)} values of busbw have the mean {mean:.3f}; printed is {run.average:g}",
            remedy="rows are missing or belong to another run; take the log again, one run to a file",
            verdict=Verdict.CANNOT_TELL,
        )


def check_sweep(run: Run, _context: Context) -> Iterator[Finding]:
    low, high = run.settings.min_bytes, run.settings.max_bytes
    # A test rounds its sizes down to whole elements for each rank, so that the smallest may lie below what was asked.
    odd = [row for row in run.rows if high and low and not low * 0.5 <= row.bytes <= high]
    if odd:
        yield Finding(
            id="bench.foreign-rows",
            place=place(run, odd[0].line),
            what=f"{len(odd)} rows have sizes that this run was not asked for",
            evidence=f"{odd[0].bytes} B; the run goes from {low} to {high} B",
            remedy="two runs are mixed in this log: keep their prefixes, or write each to a file of its own",
            verdict=Verdict.CANNOT_TELL,
        )


def check_header(run: Run, _context: Context) -> Iterator[Finding]:
    if run.refused_header:
        yield Finding(
            id="bench.unknown-header",
            place=place(run, run.line),
            what="the table has a header that nobody here has seen; its rows were not read",
            evidence=f"not known: {run.refused_header}",
            remedy="say which program printed it; columns are never guessed",
            verdict=Verdict.CANNOT_TELL,
        )
    if run.headless:
        yield Finding(
            id="bench.headless",
            place=place(run, run.rows[0].line if run.rows else run.line),
            what="the table's header is missing; the documented columns were taken, where size / time proves them",
            evidence=f"{len(run.rows)} rows prove themselves",
            remedy="give the log from its beginning",
            verdict=Verdict.CANNOT_TELL,
        )


def check_failures(run: Run, _context: Context) -> Iterator[Finding]:
    if run.failures:
        yield Finding(
            id="bench.failed",
            place=place(run, run.failures[0].line),
            what="the test says that it failed",
            evidence=run.failures[0].text,
            remedy="see the causes below; without one, run again with NCCL_DEBUG=INFO",
            verdict=Verdict.BAD,
        )


def check_figures(run: Run, _context: Context) -> Iterator[Finding]:
    """Bandwidth against message rate; the two lines of a ping-pong against each other."""
    rates = {one.bytes: one for one in run.figures if one.metric == "message_rate"}
    for one in run.figures:
        rate = rates.get(one.bytes)
        if (
            one.unit != "Gb/s"
            or one.metric.endswith("_peak")
            or rate is None
            or one.bytes is None
            or rate.value < 0.001
        ):
            continue
        carried = one.bytes * rate.value * 8 / 1e3
        if abs(carried - one.value) > _FIGURE_SLACK * max(carried, one.value) + one.bytes * 8e-6:
            yield _contradiction(
                run,
                "bench.message-rate",
                one,
                f"{one.bytes} B × {rate.value:g} Mpps = {carried:.2f} Gb/s, not {one.value:.2f}",
            )
            return
    yield from _check_pingpong(run)


def _check_pingpong(run: Run) -> Iterator[Finding]:
    rate = next((one for one in run.figures if one.metric == "rc_pingpong_rate"), None)
    time = next((one for one in run.figures if one.metric == "rc_pingpong_time"), None)
    if rate is None or time is None or not rate.bytes or not run.settings.iterations or not rate.value:
        return
    took, said = rate.bytes * 8 / rate.value, time.value * run.settings.iterations
    if abs(took - said) > _FIGURE_SLACK * max(took, said):
        text = f"the rate makes {took:.0f} us; {run.settings.iterations} × {time.value:g} us are {said:.0f}"
        yield _contradiction(run, "bench.pingpong", rate, text)


def _contradiction(run: Run, rule: str, figure: Figure, evidence: str) -> Finding:
    return Finding(
        id=rule,
        place=place(run, figure.line),
        what="two numbers of one row contradict each other",
        evidence=evidence,
        remedy="the output was changed, mixed with another or misread; take it again",
        verdict=Verdict.CANNOT_TELL,
    )


CHECKS: tuple[Callable[[Run, Context], Iterator[Finding]], ...] = (
    check_failures,
    check_results,
    check_hosts,
    check_header,
    check_algbw,
    check_rank_count,
    check_sweep,
    check_average,
    check_figures,
    check_end,
    check_validation,
)


def check_run(run: Run, context: Context) -> tuple[Finding, ...]:
    return tuple(finding for check in CHECKS for finding in check(run, context))


def largest_rows(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """All rows of the largest size: several when the test ran in cycles."""
    most = max((row.bytes for row in rows), default=0)
    return tuple(row for row in rows if row.bytes == most)
