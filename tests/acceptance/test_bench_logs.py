"""`fishplate bench judge` on logs in every dialect: right numbers, right verdict, right cause.

tests/data/bench/logs holds them, expected.jsonl beside them what must come out. A file `cause-X.log` shows the cause X,
`cause-X-not*.log` holds its words and must not name it.
"""

from pathlib import Path

import msgspec
import pytest

from fishplate.bench.causes import PREFIX, RULES
from fishplate.bench.judge import Judgement, judge_study
from fishplate.bench.results import Context, Study
from fishplate.bench.study import place_runs, read_runs
from fishplate.hardware.catalog import Catalog

DATA = Path(__file__).parents[1] / "data" / "bench"


class Expect(msgspec.Struct, forbid_unknown_fields=True):
    verdict: str | None = None
    verdicts: list[str] | None = None
    value: float | None = None
    values: list[float] | None = None
    runs: int = 1
    bytes: int | None = None
    percent: float | None = None
    limit: float | None = None
    tool: str | None = None
    test: str | None = None
    version: str | None = None
    ranks: int | None = None
    hosts: int | None = None
    rows: int | None = None
    garbled: int | None = None
    other: int | None = None
    checked: bool | None = None
    findings: list[str] | None = None
    causes: list[str] | None = None


class Sample(msgspec.Struct, forbid_unknown_fields=True):
    file: str
    expect: Expect
    options: Context = Context()


SAMPLES = [msgspec.json.decode(line, type=Sample) for line in (DATA / "expected.jsonl").read_bytes().splitlines()]
each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.file)


def judge(sample: Sample, catalog: Catalog) -> tuple[Study, Judgement]:
    if sample.file not in _judged:
        with (DATA / "logs" / sample.file).open("rb") as stream:
            study = place_runs(read_runs(stream, sample.file), sample.options)
        _judged[sample.file] = study, judge_study(study, catalog)
    return _judged[sample.file]


_judged: dict[str, tuple[Study, Judgement]] = {}


def test_every_log_is_expected_and_there_are_enough() -> None:
    assert sorted(sample.file for sample in SAMPLES) == sorted(path.name for path in (DATA / "logs").iterdir())
    assert len(SAMPLES) >= 60


def test_every_cause_has_a_log_that_shows_it_and_one_that_only_looks_like_it() -> None:
    files = {sample.file: sample.expect.causes or [] for sample in SAMPLES}
    for name, _ in RULES:
        assert f"{PREFIX}{name}" in files[f"cause-{name}.log"]
        assert f"{PREFIX}{name}" not in files[f"cause-{name}-not.log"]


@each_sample
def test_numbers_are_right(sample: Sample, catalog: Catalog) -> None:
    expect, (study, judgement) = sample.expect, judge(sample, catalog)
    assert len(study.runs) == expect.runs
    run, judged = study.runs[0], judgement.runs[0]
    if expect.value is not None:
        assert judged.value == pytest.approx(expect.value, abs=0.06)
    if expect.values is not None:
        assert [one.value for one in judgement.runs] == pytest.approx(expect.values, abs=0.06)
    if expect.percent is not None:
        assert judged.percent == pytest.approx(expect.percent, abs=0.3)
    pairs = (
        (expect.bytes, judged.bytes),
        (expect.limit, judged.limit),
        (expect.tool, run.tool),
        (expect.test, run.test),
        (expect.version, run.version),
        (expect.ranks, judged.ranks),
        (expect.hosts, len(run.hosts)),
        (expect.rows, len(run.rows)),
        (expect.checked, judged.checked),
        (expect.garbled, study.unread.garbled),
        (expect.other, study.unread.other),
    )
    assert [found for wanted, found in pairs if wanted is not None] == [
        wanted for wanted, _ in pairs if wanted is not None
    ]


@each_sample
def test_verdict_is_right(sample: Sample, catalog: Catalog) -> None:
    expect, (_, judgement) = sample.expect, judge(sample, catalog)
    if expect.verdicts is not None:
        assert [run.verdict for run in judgement.runs] == expect.verdicts, [run.why for run in judgement.runs]
    else:
        assert judgement.verdict == expect.verdict, judgement.runs[0].why


@each_sample
def test_findings_and_causes_are_right(sample: Sample, catalog: Catalog) -> None:
    expect, (_, judgement) = sample.expect, judge(sample, catalog)
    for run in judgement.runs:
        if expect.findings is not None:
            assert [finding.id for finding in run.findings] == expect.findings
        if expect.causes is not None:
            assert [cause.id for cause in run.causes] == expect.causes
        for finding in (*run.findings, *run.causes):
            assert finding.what
            assert finding.remedy
            assert finding.place.startswith(sample.file)


@each_sample
def test_a_cause_shows_a_line_that_stands_in_the_log(sample: Sample, catalog: Catalog) -> None:
    _, judgement = judge(sample, catalog)
    lines = (DATA / "logs" / sample.file).read_text(errors="replace").splitlines()
    for cause in judgement.runs[0].causes:
        name = cause.id.rpartition(".")[2]
        number = int(cause.place.rpartition(":")[2]) if ":" in cause.place else 0
        if number and name not in ("one-node", "ranks-alone", "rate-of-one-nic"):
            assert cause.evidence in lines[number - 1]
