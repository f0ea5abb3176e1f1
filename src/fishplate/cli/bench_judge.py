"""`fishplate bench judge`: good, bad or cannot tell, and why."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fishplate.cli.bench_inputs import (
    context_options,
    count,
    files_argument,
    load_study,
    make_context,
    published_option,
)
from fishplate.cli.output import console, emit, output_option, print_table
from fishplate.cli.sizes import catalog_option
from fishplate.errors import OutsideError, UsageError
from fishplate.findings import Verdict
from fishplate.hardware.catalog import load_catalog

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from fishplate.bench.judge import Judgement, RunJudgement
    from fishplate.bench.rate import RowRate
    from fishplate.bench.results import Study, Unread
    from fishplate.findings import Finding

_STYLES = {Verdict.GOOD: "bold green", Verdict.BAD: "bold red", Verdict.CANNOT_TELL: "bold yellow"}
_WORDS = {Verdict.GOOD: "good", Verdict.BAD: "bad", Verdict.CANNOT_TELL: "cannot tell"}


@click.command()
@files_argument(required=False)
@context_options
@published_option
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a results file.")
@click.option("--name", default="", metavar="TEXT", help="The study's name in that file.")
@catalog_option
@output_option("table", "json")
def judge(
    files: tuple[str, ...],
    size: str | None,
    nodes: int | None,
    gpus: int | None,
    nics: int | None,
    nic_rate: float | None,
    align: str | None,
    over: str | None,
    published: str | None,
    save: Path | None,
    name: str,
    catalog_files: tuple[Path, ...],
    output: str,
) -> int:
    """Read benchmark output and say what it is worth.

    Logs of nccl-tests, rccl-tests, perftest, ibv_rc_pingpong, sockperf and of NCCL_DEBUG=INFO, with whatever prefixes;
    their JSON; results files. - is standard input. Exit code 0 if all is good, 1 if anything is bad or cannot be told.

    \b
    kubectl logs job/nccl-test-launcher | fishplate bench judge - --size Standard_ND128isr_GB300_v6 --nics 1
    fishplate bench judge aligned=a.log unaligned=b.log --size Standard_ND128isr_GB300_v6 --save study.json
    fishplate bench judge --published mi300x
    """
    from fishplate.bench.judge import judge_study

    context = make_context(size, nodes, gpus, nics, nic_rate, align, over)
    catalog = load_catalog(catalog_files)
    if size is not None:
        catalog.find(size)
    study = load_study(files, published, context, name)
    judgement = judge_study(study, catalog)
    if save is not None:
        _save(study, save)
    if output == "json":
        emit(judgement, output)
    else:
        _print(judgement)
    return 0 if judgement.verdict is Verdict.GOOD else 1


def _save(study: "Study", path: Path) -> None:
    from fishplate.bench.study import encode_study

    if path.exists():
        raise UsageError(f"{path} is there already", remedy="give --save another name, or move the file away")
    try:
        path.write_bytes(encode_study(study))
    except OSError as error:
        raise OutsideError(f"cannot be written: {error.strerror or error}", where=str(path)) from error
    click.echo(f"results written to {path}", err=True)


# -- for people ----------------------------------------------------------------------------------------------------


def _print(judgement: "Judgement") -> None:
    from rich.text import Text

    out = console()
    for run in judgement.runs:
        _print_run(out, run)
    for one in judgement.comparisons:
        out.print(Text(f"{'≠' if one.ratio is None else '='} {one.left} : {one.right}  {one.what}"))
        for mark in one.marks:
            out.print(Text(f"    note: {mark}", style="dim"))
    if judgement.comparisons:
        out.print()
    for note in judgement.notes:
        out.print(Text(f"note: {note}", style="dim"))
    print_unread(out, judgement.unread)
    out.print(Text.assemble("verdict: ", (_WORDS[judgement.verdict], _STYLES[judgement.verdict])))


def print_unread(out: "Console", unread: "Unread") -> None:
    from rich.text import Text

    if not unread.garbled and not unread.other:
        return
    out.print(f"not read: {unread.garbled} garbled lines, {unread.other} lines of something else")
    for one in unread.shown:
        out.print(Text(f"    line {one.line}: {one.text}", style="dim"))


def _print_run(out: "Console", run: "RunJudgement") -> None:
    from rich.text import Text

    out.print(
        Text.assemble(
            (f"{_WORDS[run.verdict]:<11} ", _STYLES[run.verdict]), (run.label, "bold"), f"  {run.test}  {run.place}"
        )
    )
    out.print(Text(f"  {run.why}"))
    _print_facts(out, run)
    if run.rows:
        print_table(out, _rows(run.rows))
    for finding in run.findings:
        _print_finding(out, finding, " ")
    for number, cause in enumerate(run.causes, start=1):
        _print_finding(out, cause, f"{number}")
    out.print()


def _print_facts(out: "Console", run: "RunJudgement") -> None:
    from rich.text import Text

    where = run.context
    nodes = len(run.hosts) or where.nodes
    facts = [f"{count(run.ranks, 'rank')} on {count(nodes, 'node') if nodes else 'unknown nodes'}"] if run.ranks else []
    facts += [count(where.gpus, "GPU")] if where.gpus else []
    facts += [f"{count(where.nics, 'NIC')} to a node"] if where.nics else []
    facts += [where.size]
    out.print(Text(f"  {', '.join(filter(None, facts))}", style="dim"))
    for step in run.ceiling.steps if run.ceiling else ():
        out.print(Text(f"    {step}", style="dim"))
    if run.source:
        out.print(Text(f"    source: {run.source}", style="dim"))


def _rows(rows: "tuple[RowRate, ...]") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in ("Bytes", "busbw GB/s", "of ceiling", "Verdict"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        percent = "" if row.percent is None else f"{row.percent:.0f} %"
        verdict = "" if row.verdict is None else _WORDS[row.verdict]
        table.add_row(f"{row.bytes}", f"{row.busbw:.2f}", percent, verdict)
    return table


def _print_finding(out: "Console", finding: "Finding", sign: str) -> None:
    from rich.text import Text

    out.print(Text.assemble(f"  {sign} ", (finding.id, _STYLES[finding.verdict]), f"  {finding.what}"))
    if finding.evidence:
        out.print(Text(f"      {finding.place}: {finding.evidence}", style="dim"))
    if finding.remedy:
        out.print(Text(f"      → {finding.remedy}"))
