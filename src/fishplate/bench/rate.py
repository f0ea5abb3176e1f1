"""How fast a run was, and how that compares: with a publisher's limits where they fit, else with the ceiling.

A limit fits only if it speaks of the same thing: test, size, number of nodes, the whole machine, the same medium. Where
one fits, it decides, because somebody measured healthy machines for it. Between a publisher's warning and failure
nobody knows, and so do we. Rows below `judged_from_bytes` are bound by latency and get a percentage but no verdict.
"""

import statistics
from collections.abc import Mapping
from typing import NamedTuple

from fishplate.bench.busbw import infer_test
from fishplate.bench.ceiling import Ceiling, find_ceiling, load_model, rate_nic
from fishplate.bench.consistency import largest_rows
from fishplate.bench.results import Context, Figure, Part, Run
from fishplate.errors import InputError
from fishplate.findings import Verdict
from fishplate.hardware.catalog import Expectation, Size

_SWEEP_FROM = 256 * 1024 * 1024  # an average over larger sizes only says something about bandwidth
_TOO_GOOD = 1.05
_NODE_BOUND = {"allreduce_busbw_node"}
_WHOLE_MACHINE = {"allreduce_busbw", *_NODE_BOUND}


class RowRate(Part, frozen=True, kw_only=True):
    bytes: int
    busbw: float
    percent: float | None = None
    verdict: Verdict | None = None
    """None for sizes that are bound by latency, and without a ceiling."""
    line: int = 0


class Rate(NamedTuple):
    """`value` is what the verdict is about; `why` says what it was held against, or why it could not be."""

    verdict: Verdict
    value: float | None = None
    unit: str = "GB/s"
    bytes: int | None = None
    line: int = 0
    basis: str = ""
    limit: float | None = None
    percent: float | None = None
    why: str = ""
    source: str = ""
    remedy: str = ""
    ceiling: Ceiling | None = None
    rows: tuple[RowRate, ...] = ()
    too_good: bool = False


def rate_run(run: Run, context: Context, size: Size | None, sources: Mapping[str, str] = {}) -> Rate:
    """`sources` explain the keys of the catalogue file that `size` comes from."""
    if run.refused_header:
        return Rate(
            Verdict.CANNOT_TELL, why="its table could not be read", remedy="see what is not known in its header"
        )
    if run.rows or run.average is not None or run.peak is not None:
        return _rate_collective(run, context, size, sources)
    if run.figures:
        return _rate_figures(run, context, size)
    return Rate(Verdict.CANNOT_TELL, why="there is no result in it", remedy="see the causes and what could not be read")


# -- collectives ---------------------------------------------------------------------------------------------------


def _rate_collective(run: Run, context: Context, size: Size | None, sources: Mapping[str, str]) -> Rate:
    value, size_bytes, line, basis = _headline(run)
    ceiling, why_not = _try_ceiling(run, context, size, sources)
    rows = _rate_rows(run, ceiling)
    limit = _find_limit(run, context, size)
    found = Rate(Verdict.CANNOT_TELL, value, "GB/s", size_bytes, line, basis, ceiling=ceiling, rows=rows)
    if limit is not None:
        row = next(row for row in run.rows if row.bytes == limit.message_bytes or limit.message_bytes is None)
        return _hold_against(found._replace(value=row.busbw, bytes=row.bytes, line=row.line, basis="row"), limit)
    if ceiling is None:
        return found._replace(why=why_not.what, remedy=why_not.remedy)
    percent = 100 * value / ceiling.busbw
    found = found._replace(limit=ceiling.good_from, percent=percent, source="; ".join(ceiling.sources))
    if not _tells(run, basis, value, ceiling):
        why = f"the largest size is {size_bytes} B" if size_bytes else "an average over small sizes"
        return found._replace(why=f"{why}, and bandwidth shows from 1 GiB on", remedy="run with -e 8G")
    if value > ceiling.busbw * _TOO_GOOD:
        why = f"{value:.4g} GB/s is more than this network can carry ({ceiling.busbw:.4g} GB/s)"
        remedy = "see whether --size, --nics and --nodes are right, and whether the data went over NVLink instead"
        return found._replace(why=why, remedy=remedy, too_good=True)
    verdict = Verdict.GOOD if value >= ceiling.good_from else Verdict.BAD
    return found._replace(verdict=verdict, why=_say_share(value, ceiling))


def _headline(run: Run) -> tuple[float, int | None, int, str]:
    """The median over cycles at the largest size; a publication's peak or average where there are no rows."""
    rows = largest_rows(run.rows)
    if rows:
        return statistics.median(row.busbw for row in rows), rows[0].bytes, rows[0].line, "row"
    if run.peak is not None:
        return run.peak, None, 0, "peak"
    assert run.average is not None
    return run.average, None, 0, "average"


def _tells(run: Run, basis: str, value: float, ceiling: Ceiling) -> bool:
    if basis == "row":
        return largest_rows(run.rows)[0].bytes >= load_model().judged_from_bytes or value >= ceiling.good_from
    return basis == "peak" or value >= ceiling.good_from or (run.settings.min_bytes or 0) >= _SWEEP_FROM


def _rate_rows(run: Run, ceiling: Ceiling | None) -> tuple[RowRate, ...]:
    if ceiling is None:
        return tuple(RowRate(bytes=row.bytes, busbw=row.busbw, line=row.line) for row in run.rows)
    judged = load_model().judged_from_bytes
    return tuple(
        RowRate(
            bytes=row.bytes,
            busbw=row.busbw,
            percent=round(100 * row.busbw / ceiling.busbw, 1),
            verdict=None if row.bytes < judged else Verdict.GOOD if row.busbw >= ceiling.good_from else Verdict.BAD,
            line=row.line,
        )
        for row in run.rows
    )


def _try_ceiling(
    run: Run, context: Context, size: Size | None, sources: Mapping[str, str]
) -> tuple[Ceiling | None, InputError]:
    none = InputError("")
    if size is None and context.nic_gbps is None:
        return None, InputError("nobody said which machine this is", remedy=_guess(run))
    if context.over not in ("infiniband", "roce"):
        return None, InputError(f"there is no ceiling for {context.over}", remedy="only published limits can judge it")
    if "mnnvl" in run.network.signs:
        return None, InputError("the data went over multi-node NVLink", remedy="give --over nvlink to judge it as such")
    if context.nics is None:
        return None, InputError("nobody said how many NICs each worker has", remedy="give --nics")
    # Alignment does not lower the bar: the ceiling is what the same devices could do in the right places.
    placed = Context(nodes=context.nodes, gpus=context.gpus, nics=context.nics, nic_gbps=context.nic_gbps)
    direct = run.network.settings.get("NCCL_IB_DATA_DIRECT") != "0" and "data-direct" in run.network.signs
    try:
        return find_ceiling(size, placed, test=_find_test(run, context), data_direct=direct, sources=sources), none
    except InputError as error:
        return None, error


def _find_test(run: Run, context: Context) -> str:
    """As the log names it, else as its numbers prove it. With one GPU to a node all tests have the same ceiling."""
    if run.test:
        return run.test
    ranks = len(run.ranks) or (context.nodes or 0) * (context.gpus or 0)
    halves = [half for row in largest_rows(run.rows) for half in row.halves if half.algbw and half.busbw_slack < 0.01]
    if halves and ranks and (name := infer_test(halves[0].busbw / halves[0].algbw, ranks, halves[0].busbw_slack)):
        return name
    return "all_reduce" if context.gpus == 1 else ""


def _guess(run: Run) -> str:
    gpu = next((rank.gpu for rank in run.ranks if rank.gpu), "")
    seen = f" (its GPUs are {gpu})" if gpu else ""
    return f"give --size{seen}; the rates of a machine are never guessed from its GPU"


def _say_share(value: float, ceiling: Ceiling) -> str:
    share = value / ceiling.busbw
    text = f"{value:.4g} GB/s is {100 * share:.0f} % of the {ceiling.busbw:.4g} GB/s that this network can carry"
    words = f"{text}, about {_FRACTIONS[near]}" if (near := _near_fraction(share)) else text
    if ceiling.line_rate > ceiling.busbw * 1.01:
        words += f"; {100 * value / ceiling.line_rate:.0f} % of the NICs' line rate"
    return words


_FRACTIONS = {2: "a half", 3: "a third", 4: "a quarter", 5: "a fifth", 6: "a sixth", 8: "an eighth", 10: "a tenth"}


def _near_fraction(share: float) -> int:
    return next((parts for parts in _FRACTIONS if share and abs(share * parts - 1) < 0.05), 0)


# -- published limits ----------------------------------------------------------------------------------------------


def _find_limit(run: Run, context: Context, size: Size | None) -> Expectation | None:
    if size is None or run.test != "all_reduce":
        return None
    whole = size.gpu is not None and context.gpus == size.gpu.count
    alone = (context.nodes or 0) == 1
    for one in size.expected:
        if one.metric not in _WHOLE_MACHINE or not whole or (one.metric in _NODE_BOUND) != alone:
            continue
        if one.fail_below is None or (one.over != context.over and not alone):
            continue
        if one.nodes not in (None, context.nodes):
            continue
        if not alone and context.nics not in (None, size.nic.count if size.nic else None):
            continue
        if any(row.bytes == one.message_bytes or one.message_bytes is None for row in run.rows):
            return one
    return None


def _hold_against(found: Rate, limit: Expectation) -> Rate:
    value = found.value or 0.0
    found = found._replace(
        source=limit.source, limit=limit.fail_below if limit.fail_below is not None else limit.fail_above
    )
    if found.ceiling is not None:
        found = found._replace(percent=100 * value / found.ceiling.busbw)
    what = f"{value:.4g} {limit.unit} where {limit.test} is published to"
    if limit.fail_above is not None:
        verdict = Verdict.BAD if value > limit.fail_above else Verdict.GOOD
        return found._replace(verdict=verdict, why=f"{what} fail above {limit.fail_above:g}")
    if limit.fail_below is not None and value < limit.fail_below:
        return found._replace(verdict=Verdict.BAD, why=f"{what} fail below {limit.fail_below:g}")
    if limit.warn_below is not None and value < limit.warn_below:
        why = f"{what} fail below {limit.fail_below:g} and warn below {limit.warn_below:g}"
        return found._replace(why=why, remedy="repeat it; transient slowness of a fifth is known")
    return found._replace(verdict=Verdict.GOOD, why=f"{what} fail below {limit.fail_below:g}")


# -- point to point ------------------------------------------------------------------------------------------------


def _rate_figures(run: Run, context: Context, size: Size | None) -> Rate:
    if run.tool == "nccl" or not run.figures:
        return Rate(Verdict.CANNOT_TELL, why="there is no figure in it")
    figures = [one for one in run.figures if one.metric == run.test] or list(run.figures)
    best = max(figures, key=lambda one: (one.bytes or 0, one.value)) if figures[0].unit != "us" else figures[0]
    for one in (best, *run.figures):
        limit = _find_figure_limit(one, run, context, size)
        if limit is not None:
            return _hold_against(Rate(Verdict.CANNOT_TELL, one.value, one.unit, one.bytes, one.line, "row"), limit)
    found = Rate(Verdict.CANNOT_TELL, best.value, best.unit, best.bytes, best.line, "row")
    if best.unit != "Gb/s":
        return found._replace(
            why=f"no limit is published for {best.metric}", remedy="compare it with a run known to be good"
        )
    try:
        nic = rate_nic(size, context)
    except InputError as error:
        return found._replace(why=error.what, remedy=error.remedy)
    ceiling = nic.usable * 8 * (2 if run.settings.bidirectional else 1)
    model = load_model()
    verdict = Verdict.GOOD if best.value >= model.good_from * ceiling else Verdict.BAD
    why = f"{best.value:.1f} Gb/s is {100 * best.value / ceiling:.0f} % of the {ceiling:g} Gb/s of this NIC"
    if best.value > ceiling * _TOO_GOOD:
        return found._replace(why=f"{why}: more than it can carry", remedy="see whether --size is right", too_good=True)
    if (best.bytes or 0) < _LARGE_MESSAGE and verdict is Verdict.BAD:
        return found._replace(why=f"{why}, at {best.bytes} B only", remedy="measure 64 KiB or more")
    return found._replace(verdict=verdict, why=why, limit=model.good_from * ceiling, percent=100 * best.value / ceiling)


_LARGE_MESSAGE = 65_536


def _find_figure_limit(figure: Figure, run: Run, context: Context, size: Size | None) -> Expectation | None:
    if size is None or run.settings.bidirectional:
        return None
    metrics = {figure.metric}
    if run.tool == "perftest":
        metrics = {f"{figure.metric}_gdr"} if run.settings.gpu_memory else {figure.metric, f"{figure.metric}_host"}
    for one in size.expected:
        limits = (one.fail_below, one.fail_above)
        if one.metric not in metrics or all(limit is None for limit in limits):
            continue
        if one.message_bytes not in (None, figure.bytes) and one.unit != "us":
            continue
        if one.unit == figure.unit and (one.over == context.over or run.tool == "perftest"):
            return one
    return None
