"""The published studies, entered as results: what the judge, the comparison and the model say about them."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from fishplate.bench.causes import PREFIX, RULES
from fishplate.bench.ceiling import find_ceiling, rate_nic
from fishplate.bench.compare import Comparison
from fishplate.bench.consistency import BLOCKING
from fishplate.bench.judge import Judgement, judge_study
from fishplate.bench.results import Run
from fishplate.bench.study import load_published, published_names
from fishplate.hardware.catalog import Catalog

Program = Callable[..., CompletedProcess[str]]
DOCS = (Path(__file__).parents[2] / "docs" / "bench.md").read_text()
RUNS = [(name, run) for name in published_names() for run in load_published(name).runs]
each_run = pytest.mark.parametrize(("study", "run"), RUNS, ids=lambda one: one.label if isinstance(one, Run) else one)


def judge(name: str, catalog: Catalog) -> Judgement:
    return judge_study(load_published(name), catalog)


def find(judgement: Judgement, left: str, right: str) -> Comparison:
    return next(one for one in judgement.comparisons if {one.left, one.right} == {left, right})


def test_alignment_is_worth_2_2_on_gb300_at_equal_nic_count(catalog: Catalog) -> None:
    judgement = judge("gb300", catalog)
    found = find(judgement, "1nic-aligned", "1nic-unaligned")
    assert found.ratio == pytest.approx(2.24)
    assert "with 1 NIC each" in found.what
    assert "spread is not known" in found.what
    assert any("follows from the alignment" in mark for mark in found.marks)
    for single in ("1nic-aligned", "1nic-unaligned"):
        other = find(judgement, "2nic-aligned", single)
        assert (other.ratio, "NICs to a node" in other.unlike[0]) == (None, True)


def test_gb300_is_good_where_it_is_aligned_and_says_what_bounds_it(catalog: Catalog) -> None:
    runs = {run.label: run for run in judge("gb300", catalog).runs}
    assert {label: run.verdict.value for label, run in runs.items()} == {
        "1nic-aligned": "good",
        "2nic-aligned": "good",
        "1nic-unaligned": "bad",
    }
    assert [cause.id for cause in runs["1nic-aligned"].causes] == ["bench.bound.data-direct-off"]
    assert runs["1nic-unaligned"].causes[0].id == f"{PREFIX}gpudirect-too-far"


def test_mi300x_with_all_nics_is_a_fifth_of_the_line_rate(catalog: Catalog) -> None:
    judgement = judge("mi300x", catalog)
    run = next(run for run in judgement.runs if run.label == "8nic-all")
    assert run.verdict == "bad"
    assert run.percent == pytest.approx(19.7)
    assert run.ceiling is not None
    assert run.ceiling.line_rate == 400
    assert "about a fifth" in run.why


def test_mi300x_rows_that_are_not_comparable_are_named(catalog: Catalog) -> None:
    judgement = judge("mi300x", catalog)
    for label in ("4nic-same-numa", "4nic-cross-numa"):
        assert find(judgement, "8nic-all", label).ratio is None
    pair = find(judgement, "4nic-same-numa", "4nic-cross-numa")
    assert pair.ratio == pytest.approx(7.96, abs=0.01)
    assert "whether both used GPUDirect RDMA is not known" in pair.marks


def test_the_program_says_it_too(fishplate: Program) -> None:
    gb300 = fishplate("bench", "judge", "--published", "gb300")
    assert gb300.returncode == 1
    assert "2.24×" in gb300.stdout
    assert gb300.stdout.count("not comparable: NICs to a node") == 2
    mi300x = fishplate("bench", "judge", "--published", "mi300x", "-o", "json")
    runs = {run["label"]: run for run in json.loads(mi300x.stdout)["runs"]}
    assert runs["8nic-all"]["percent"] == 19.7
    compared = fishplate("bench", "compare", "--published", "gb300")
    assert compared.returncode == 0
    assert "1nic-aligned is 2.24× 1nic-unaligned" in compared.stdout


# -- the model -----------------------------------------------------------------------------------------------------


def model(run: Run, catalog: Catalog) -> tuple[float, float | None]:
    size = catalog.find(run.context.size) if run.context.size else None
    if run.figures:
        return run.figures[0].value, rate_nic(size, run.context).usable * 8
    value = run.peak if run.peak is not None else run.average
    assert value is not None
    if run.context.over != "infiniband":
        return value, None
    return value, find_ceiling(size, run.context, test=run.test).busbw


def documented() -> dict[tuple[str, str], list[str]]:
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in DOCS.splitlines() if " | " in line]
    return {(row[0], row[1].strip()): row for row in rows if row[0] in published_names()}


@each_run
def test_the_docs_say_how_far_the_model_is_off_and_why(study: str, run: Run, catalog: Catalog) -> None:
    value, ceiling = model(run, catalog)
    row = documented()[study, run.label]
    why = row[5].strip(" |") if len(row) > 5 else ""
    assert row[2] == f"{value:g}"
    if ceiling is None:
        assert (row[3], bool(why)) == ("–", True)
        return
    off = value / ceiling - 1
    assert (row[3], row[4].strip(" |")) == (f"{ceiling:.4g}", f"{100 * off:+.0f} %")
    assert abs(off) <= 0.15 or why


def test_the_docs_list_no_run_that_is_not_there() -> None:
    assert sorted(documented()) == sorted((name, run.label) for name, run in RUNS)


def test_the_docs_name_every_cause_and_every_check() -> None:
    named = set(re.findall(r"^\| `([\w.-]+)` \|", DOCS, re.MULTILINE))
    assert {name for name, _ in RULES} <= named
    assert named >= BLOCKING


@each_run
def test_every_published_run_has_its_source(study: str, run: Run) -> None:
    assert run.sources
    assert all(re.search(r"20\d\d|commit", source) for source in run.sources)
