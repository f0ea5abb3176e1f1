"""The judge: consistency first, then the rate, then the causes. Three outcomes: good, bad, cannot tell.

The verdict of a run is about its speed. It is bad when the run failed, computed wrong values, ran elsewhere than asked
or was too slow; good when nothing of that is so and its rate reaches the limit; cannot tell otherwise, and the reason
says what would have to be known. A number that contradicts another one yields no verdict at all.

Causes are named for runs that are not good. A good run still says what bounds it, where the log shows it.
"""

from collections.abc import Sequence

import msgspec

from fishplate.bench.case import Case
from fishplate.bench.causes import CONCLUSIVE, FATAL, PREFIX, find_causes
from fishplate.bench.ceiling import Ceiling
from fishplate.bench.compare import Comparison, compare_all
from fishplate.bench.consistency import BLOCKING, check_run, place
from fishplate.bench.rate import Rate, RowRate, rate_run
from fishplate.bench.results import Context, Part, Run, Study, Unread
from fishplate.bench.whereabouts import complete_context
from fishplate.findings import Finding, Verdict
from fishplate.hardware.catalog import Catalog, Size

SCHEMA = "fishplate.judgement/v1"
# Limits that a healthy run may show: they say what bounds it, not that anything is wrong.
_BOUNDS = frozenset({f"{PREFIX}data-direct-off"})


class RunJudgement(Part, frozen=True, kw_only=True):
    label: str
    place: str
    tool: str
    test: str
    verdict: Verdict
    why: str
    value: float | None = None
    unit: str = ""
    bytes: int | None = None
    basis: str = ""
    percent: float | None = None
    limit: float | None = None
    source: str = ""
    ceiling: Ceiling | None = None
    checked: bool | None = None
    """Whether the results were checked for correctness; None where a test has nothing to check."""
    ranks: int = 0
    hosts: tuple[str, ...] = ()
    context: Context = Context()
    rows: tuple[RowRate, ...] = ()
    findings: tuple[Finding, ...] = ()
    causes: tuple[Finding, ...] = ()


class Judgement(Part, frozen=True, kw_only=True, tag_field="schema", tag=SCHEMA):
    name: str = ""
    verdict: Verdict
    runs: tuple[RunJudgement, ...]
    comparisons: tuple[Comparison, ...] = ()
    unread: Unread = Unread()
    notes: tuple[str, ...] = ()


def judge_study(study: Study, catalog: Catalog) -> Judgement:
    runs = tuple(judge_run(run, catalog, siblings=study.runs) for run in study.runs)
    verdicts = {run.verdict for run in runs}
    overall = next((one for one in (Verdict.BAD, Verdict.CANNOT_TELL) if one in verdicts), Verdict.GOOD)
    if overall is Verdict.GOOD and study.unread.garbled:
        overall = Verdict.CANNOT_TELL
    return Judgement(
        name=study.name,
        verdict=overall,
        runs=runs,
        comparisons=compare_all(study.runs) if len({run.label for run in study.runs}) > 1 else (),
        unread=study.unread,
        notes=study.notes,
    )


def judge_run(run: Run, catalog: Catalog, *, siblings: Sequence[Run] = ()) -> RunJudgement:
    context = complete_context(run)
    size = _find_size(context, catalog)
    findings = check_run(run, context)
    rate = rate_run(run, context, size, catalog.sources_of(size) if size is not None else {})
    others = tuple(other for other in siblings if other is not run and other.source == run.source)
    causes = find_causes(_case(run, context, size, rate, others))
    verdict, why = _decide(findings, rate, causes)
    if verdict is Verdict.GOOD:
        causes = tuple(_as_bound(cause) for cause in causes if cause.id in _BOUNDS)
    return RunJudgement(
        label=run.label,
        place=place(run, run.line),
        tool=run.tool,
        test=run.test,
        verdict=verdict,
        why=why,
        value=rate.value,
        unit=rate.unit if rate.value is not None else "",
        bytes=rate.bytes,
        basis=rate.basis,
        percent=None if rate.percent is None else round(rate.percent, 1),
        limit=rate.limit,
        source=_explain_source(rate.source, size, catalog),
        ceiling=rate.ceiling,
        checked=_was_checked(run),
        ranks=len(run.ranks) or run.network.ranks or 0,
        hosts=run.hosts,
        context=context,
        rows=rate.rows,
        findings=(*findings, *_rate_findings(run, rate)),
        causes=causes,
    )


def _find_size(context: Context, catalog: Catalog) -> Size | None:
    return catalog.find(context.size) if context.size else None


def _case(run: Run, context: Context, size: Size | None, rate: Rate, siblings: tuple[Run, ...]) -> Case:
    # Rules that ask how many nodes or NICs were meant need what was said, not what was seen.
    asked = msgspec.structs.replace(context, nodes=run.context.nodes, nics=run.context.nics or context.nics)
    value = rate.value if rate.unit == "GB/s" else None
    return Case(run, asked, size, value, rate.line, rate.ceiling, siblings)


def _decide(findings: tuple[Finding, ...], rate: Rate, causes: tuple[Finding, ...]) -> tuple[Verdict, str]:
    bad = next((finding for finding in findings if finding.verdict is Verdict.BAD), None)
    if bad is not None:
        return Verdict.BAD, bad.what
    names = [cause.id.removeprefix(PREFIX) for cause in causes]
    conclusive = next((cause for cause, name in zip(causes, names, strict=True) if name in CONCLUSIVE), None)
    if conclusive is not None:
        return Verdict.BAD, conclusive.what
    blocked = next((finding for finding in findings if finding.id in BLOCKING), None)
    fatal = next((cause for cause, name in zip(causes, names, strict=True) if name in FATAL), None)
    if fatal is not None and (rate.value is None or blocked is not None):
        return Verdict.BAD, fatal.what
    # A run that was cut short and is slow as far as it went will not have become fast.
    if blocked is not None and not (blocked.id == "bench.cut" and rate.verdict is Verdict.BAD):
        return Verdict.CANNOT_TELL, blocked.what
    return rate.verdict, rate.why


def _rate_findings(run: Run, rate: Rate) -> tuple[Finding, ...]:
    found = []
    if rate.verdict is Verdict.CANNOT_TELL and rate.why:
        found.append(
            Finding(
                id="bench.too-fast" if rate.too_good else "bench.no-verdict",
                place=place(run, rate.line),
                what=rate.why,
                remedy=rate.remedy,
                verdict=Verdict.CANNOT_TELL,
            )
        )
    slow = [row for row in rate.rows if row.verdict is Verdict.BAD]
    if rate.verdict is Verdict.GOOD and slow:
        found.append(
            Finding(
                id="bench.uneven",
                place=place(run, slow[0].line),
                what=f"{len(slow)} sizes of 1 GiB and more stay below the limit, though the largest does not",
                evidence=f"{slow[0].bytes} B: {slow[0].busbw:g} GB/s",
                remedy="repeat the run, with more iterations (-n)",
                verdict=Verdict.CANNOT_TELL,
            )
        )
    if not run.rows and not run.refused_header and (run.average is not None or run.peak is not None):
        found.append(
            Finding(
                id="bench.no-rows",
                place=place(run, run.line),
                what="only a summary is known, no row for each size; an average depends on the sizes it is taken over",
                evidence=f"sizes {run.settings.min_bytes or '?'} to {run.settings.max_bytes or '?'} B",
                remedy="keep the table of the run",
                verdict=Verdict.CANNOT_TELL,
            )
        )
    return tuple(found)


def _was_checked(run: Run) -> bool | None:
    if not run.rows:
        return run.settings.checked
    return any(half.wrong is not None for row in run.rows for half in row.halves)


def _as_bound(cause: Finding) -> Finding:
    return msgspec.structs.replace(cause, id=cause.id.replace(PREFIX, "bench.bound."), verdict=Verdict.GOOD)


def _explain_source(source: str, size: Size | None, catalog: Catalog) -> str:
    return catalog.sources_of(size).get(source, source) if size is not None else source
