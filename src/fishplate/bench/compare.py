"""Runs against runs, like with like.

A ratio means something only if one thing changed. Two runs are held against each other field by field: what must be
the same and is not makes them unlike, and no ratio is given; what is not known, or follows from what was changed on
purpose, is marked beside the ratio. Alignment is what one usually wants to compare: a difference there is the subject.

Runs with the same label are repeats of one another. Their spread is the noise, and a ratio carries it: from the worst
of one side over the best of the other, and back. A ratio without repeats says that its spread is not known.
"""

import itertools
import statistics
from collections.abc import Iterator, Sequence

import msgspec

from fishplate.bench.results import Context, Part, Run
from fishplate.bench.whereabouts import complete_context

_ALL_PAIRS_UP_TO = 6
_SETTINGS = ("NCCL_IB_DATA_DIRECT", "NCCL_ALGO", "NCCL_PROTO", "NCCL_IB_QPS_PER_CONNECTION", "NCCL_MNNVL_ENABLE")


class SizeRatio(Part, frozen=True, kw_only=True):
    bytes: int
    left: float
    right: float
    ratio: float


class Comparison(Part, frozen=True, kw_only=True):
    """`left` over `right`. Without a ratio they are unlike, and `unlike` says in what."""

    left: str
    right: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    repeats: tuple[int, int] = (1, 1)
    basis: str = ""
    bytes: int | None = None
    unit: str = "GB/s"
    subject: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    sizes: tuple[SizeRatio, ...] = ()
    what: str = ""

    @property
    def beyond_noise(self) -> bool | None:
        """Whether the ratio is surely not 1; None without repeats."""
        if self.low is None or self.high is None:
            return None
        return not self.low <= 1 <= self.high


def compare_all(runs: Sequence[Run]) -> tuple[Comparison, ...]:
    """Every pair of labels while they are few, else the first against each other one."""
    sides: dict[str, list[Run]] = {}
    for run in runs:
        sides.setdefault(run.label, []).append(run)
    groups = [group for group in sides.values() if any(_has_figures(run) for run in group)]
    if len(groups) <= _ALL_PAIRS_UP_TO:
        return tuple(compare(left, right) for left, right in itertools.combinations(groups, 2))
    return tuple(compare(groups[0], other) for other in groups[1:])


def compare(left: Sequence[Run], right: Sequence[Run]) -> Comparison:
    """All runs of a side are repeats of each other."""
    lefts = [run for run in left if _has_figures(run)]
    rights = [run for run in right if _has_figures(run)]
    names = (left[0].label, right[0].label)
    repeats = (len(lefts), len(rights))
    unlike = [*_find_unlike_repeats(lefts), *_find_unlike_repeats(rights)]
    subject, differences, marks = _hold_together(lefts[0], rights[0])
    unlike += differences
    basis = _common_basis(lefts, rights)
    if basis is None:
        unlike.append("they share no size, nor an average over the same sizes")
    elif not all(map(all, (_samples(lefts, basis), _samples(rights, basis)))):
        unlike.append("a figure is 0, and nothing can be held against that")
    if unlike or basis is None:
        what = f"not comparable: {'; '.join(unlike)}"
        return Comparison(
            left=names[0],
            right=names[1],
            repeats=repeats,
            subject=tuple(subject),
            unlike=tuple(unlike),
            marks=tuple(marks),
            what=what,
        )
    return _measure(names, lefts, rights, basis, tuple(subject), tuple(marks))


def _measure(
    names: tuple[str, str],
    lefts: list[Run],
    rights: list[Run],
    basis: tuple[str, int | None],
    subject: tuple[str, ...],
    marks: tuple[str, ...],
) -> Comparison:
    ours, theirs = _samples(lefts, basis), _samples(rights, basis)
    ratio = statistics.median(ours) / statistics.median(theirs)
    low = high = None
    if len(ours) > 1 or len(theirs) > 1:
        low, high = min(ours) / max(theirs), max(ours) / min(theirs)
    unit = "GB/s" if lefts[0].rows or not lefts[0].figures else _unit(lefts[0], basis)
    found = Comparison(
        left=names[0],
        right=names[1],
        ratio=round(ratio, 3),
        low=None if low is None else round(low, 3),
        high=None if high is None else round(high, 3),
        repeats=(len(lefts), len(rights)),
        basis=basis[0],
        bytes=basis[1],
        unit=unit,
        subject=subject,
        marks=marks,
        sizes=tuple(_size_ratios(lefts, rights)),
    )
    return _with_words(found, statistics.median(ours), statistics.median(theirs), complete_context(lefts[0]).nics)


def _with_words(found: Comparison, ours: float, theirs: float, nics: int | None) -> Comparison:
    spread = (
        "one run each, so its spread is not known"
        if found.low is None
        else f"{found.low:.2f} to {found.high:.2f} over {sum(found.repeats)} runs"
    )
    at = f"at {found.bytes} B" if found.bytes else f"by their {found.basis}s"
    equal = f" with {nics} NIC{'s' if nics > 1 else ''} each" if nics else ""
    about = f" for {', '.join(found.subject)}{equal}" if found.subject else equal
    noise = ", which is within the noise" if found.beyond_noise is False else ""
    figures = f"{ours:.4g} and {theirs:.4g} {found.unit}"
    what = f"{found.left} is {found.ratio:.2f}× {found.right}{about} {at} ({figures}; {spread}){noise}"
    return msgspec.structs.replace(found, what=what)


# -- likeness ------------------------------------------------------------------------------------------------------


def _hold_together(left: Run, right: Run) -> tuple[list[str], list[str], list[str]]:
    """What was changed on purpose, what makes them unlike, and what is to be marked."""
    ours, theirs = complete_context(left), complete_context(right)
    subject = [] if ours.align == theirs.align else [f"alignment ({_align(ours)} against {_align(theirs)})"]
    unlike = [*_must_be_equal(left, right, ours, theirs)]
    marks = [*_may_differ(left, right, ours, theirs)]
    gdr = _gdr(left, ours), _gdr(right, theirs)
    if gdr[0] is None or gdr[1] is None:
        if gdr != (None, None) or left.tool == "published":
            marks.append("whether both used GPUDirect RDMA is not known")
    elif gdr[0] != gdr[1]:
        if "none" in (ours.align, theirs.align) and ours.align != theirs.align:
            marks.append("GPUDirect RDMA was on with one and off with the other, which follows from the alignment")
        else:
            unlike.append(f"GPUDirect RDMA {_on(gdr[0])} and {_on(gdr[1])}")
    return subject, unlike, marks


def _must_be_equal(left: Run, right: Run, ours: Context, theirs: Context) -> Iterator[str]:
    fields = (
        ("test", left.test, right.test),
        ("nodes", ours.nodes, theirs.nodes),
        ("GPUs to a node", ours.gpus, theirs.gpus),
        ("NICs to a node", ours.nics, theirs.nics),
        ("medium", ours.over, theirs.over),
        ("memory", left.settings.gpu_memory, right.settings.gpu_memory),
        ("direction", left.settings.bidirectional, right.settings.bidirectional),
    )
    for name, one, other in fields:
        if one != other and one not in (None, "") and other not in (None, ""):
            yield f"{name} {one} and {other}"


def _may_differ(left: Run, right: Run, ours: Context, theirs: Context) -> Iterator[str]:
    if (ours.nodes is None) != (theirs.nodes is None) or (ours.nics is None) != (theirs.nics is None):
        yield "nodes or NICs to a node are not known for one of them"
    settings = left.settings, right.settings
    fields = (
        ("machine", ours.size, theirs.size),
        ("program", left.tool, right.tool),
        ("its version", left.version, right.version),
        ("NCCL", left.network.version, right.network.version),
        ("iterations", settings[0].iterations, settings[1].iterations),
        ("warm-up", settings[0].warmup, settings[1].warmup),
        ("CUDA graphs", settings[0].graph, settings[1].graph),
        ("type", left.rows[0].type if left.rows else "", right.rows[0].type if right.rows else ""),
        *((name, _setting(left, name), _setting(right, name)) for name in _SETTINGS),
    )
    for name, one, other in fields:
        if one != other and one not in (None, "") and other not in (None, ""):
            yield f"{name}: {one} and {other}"


def _find_unlike_repeats(runs: list[Run]) -> list[str]:
    first = runs[0]
    for run in runs[1:]:
        _, unlike, _ = _hold_together(first, run)
        if unlike:
            return [f"the runs called {first.label} are not repeats of each other: {'; '.join(unlike)}"]
    return []


def _setting(run: Run, name: str) -> str:
    return run.network.settings.get(name, run.environment.get(name, ""))


def _gdr(run: Run, context: Context) -> bool | None:
    if context.gdr is not None:
        return context.gdr
    path = next((path for path in run.network.paths if path.transport == "NET/IB"), None)
    return bool(path.gdr) if path is not None else None


def _on(value: bool) -> str:
    return "on" if value else "off"


def _align(context: Context) -> str:
    return {"numa": "one NUMA node", "none": "across NUMA nodes", "": "not said"}[context.align]


# -- figures -------------------------------------------------------------------------------------------------------


def _has_figures(run: Run) -> bool:
    return bool(run.rows or run.figures or run.average is not None or run.peak is not None)


def _common_basis(lefts: list[Run], rights: list[Run]) -> tuple[str, int | None] | None:
    """The largest size that all have; else the peak, else the average over the same sizes."""
    runs = [*lefts, *rights]
    common = set.intersection(*({size for size, _ in _points(run)} for run in runs))
    if common:
        return "row", max(common)
    if any(run.rows or run.figures for run in runs):
        return None
    sweeps = {(run.settings.min_bytes, run.settings.max_bytes) for run in runs}
    if all(run.peak is not None for run in runs) and len(sweeps) == 1:
        return "peak", None
    return ("average", None) if all(run.average is not None for run in runs) and len(sweeps) == 1 else None


def _points(run: Run) -> list[tuple[int, float]]:
    if run.rows:
        return [(row.bytes, row.busbw) for row in run.rows]
    return [(one.bytes or 0, one.value) for one in run.figures if one.metric == run.test or run.tool != "perftest"]


def _samples(runs: list[Run], basis: tuple[str, int | None]) -> list[float]:
    if basis[0] == "peak":
        return [run.peak for run in runs if run.peak is not None]
    if basis[0] == "average":
        return [run.average for run in runs if run.average is not None]
    return [value for run in runs for size, value in _points(run) if size == basis[1]]


def _size_ratios(lefts: list[Run], rights: list[Run]) -> Iterator[SizeRatio]:
    ours = [point for run in lefts for point in _points(run)]
    theirs = [point for run in rights for point in _points(run)]
    for size in sorted({size for size, _ in ours} & {size for size, _ in theirs}):
        left = statistics.median(value for at, value in ours if at == size)
        right = statistics.median(value for at, value in theirs if at == size)
        if right:
            yield SizeRatio(bytes=size, left=left, right=right, ratio=round(left / right, 3))


def _unit(run: Run, basis: tuple[str, int | None]) -> str:
    return next((one.unit for one in run.figures if (one.bytes or 0) == basis[1]), "")
