"""`fishplate bench compare`: runs against runs, like with like."""

from typing import TYPE_CHECKING

import click

from fishplate.cli.bench_inputs import context_options, files_argument, load_study, make_context, published_option
from fishplate.cli.output import console, emit, output_option
from fishplate.errors import UsageError

if TYPE_CHECKING:
    from fishplate.bench.compare import Comparison


@click.command()
@files_argument(required=False)
@context_options
@published_option
@click.option(
    "--fail-slower",
    type=click.FloatRange(min=0),
    metavar="PERCENT",
    help="Exit with 1 if a run is slower than the first by more than this, beyond the noise.",
)
@output_option("table", "json")
def compare(
    files: tuple[str, ...],
    size: str | None,
    nodes: int | None,
    gpus: int | None,
    nics: int | None,
    nic_rate: float | None,
    align: str | None,
    over: str | None,
    published: str | None,
    fail_slower: float | None,
    output: str,
) -> int:
    """Compare runs; what is unlike is refused, what is uncertain is marked.

    Runs of one LABEL are repeats, and their spread is the noise. Options hold for all files; a results file knows its
    own. Exit code 1 if nothing could be compared, or with --fail-slower.

    \b
    fishplate bench compare before=a1.log before=a2.log after=b1.log after=b2.log
    fishplate bench compare study.json --fail-slower 5
    fishplate bench compare --published gb300
    """
    from fishplate.bench.compare import compare_all

    study = load_study(files, published, make_context(size, nodes, gpus, nics, nic_rate, align, over))
    if len({run.label for run in study.runs}) < 2:
        raise UsageError(
            "there is one kind of run only", remedy="give two files, or tell repeats apart with LABEL=FILE"
        )
    found = compare_all(study.runs)
    if output == "json":
        emit({"comparisons": found, "unread": study.unread}, output)
    else:
        _print(found)
    slower = fail_slower is not None and any(_is_slower(one, study.runs[0].label, fail_slower) for one in found)
    return 1 if slower or all(one.ratio is None for one in found) else 0


def _is_slower(one: "Comparison", baseline: str, percent: float) -> bool:
    if one.ratio is None or one.left != baseline or one.beyond_noise is False:
        return False
    latency = one.unit == "us"
    return (1 / one.ratio if latency else one.ratio) > 1 + percent / 100


def _print(found: "tuple[Comparison, ...]") -> None:
    from rich.text import Text

    out = console()
    for one in found:
        out.print(Text(one.what if one.ratio is not None else f"{one.left} and {one.right}: {one.what}", style="bold"))
        for row in one.sizes:
            out.print(f"  {row.bytes:>14} B  {row.left:>10.2f} / {row.right:<10.2f} = {row.ratio:.2f}")
        for mark in one.marks:
            out.print(Text(f"  note: {mark}", style="dim"))
