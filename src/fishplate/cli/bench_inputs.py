"""What the bench commands have in common: files of runs, and what the person knows about them."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fishplate.cli.sizes import complete_size
from fishplate.errors import DocumentError, UsageError

if TYPE_CHECKING:
    from fishplate.bench.results import Context, Study

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--size", metavar="SIZE", shell_complete=complete_size, help="The VM size or server."),
    click.option("--nodes", type=click.IntRange(min=1), help="How many nodes were meant (default: as the log shows)."),
    click.option(
        "--gpus", type=click.IntRange(min=1), help="GPUs of each node that took part (default: from the log)."
    ),
    click.option("--nics", type=click.IntRange(min=1), help="NICs that each worker was given (default: from the log)."),
    click.option(
        "--nic-rate", type=click.FloatRange(min=1), metavar="GBPS", help="Line rate of one NIC in Gb/s, without --size."
    ),
    click.option("--align", type=click.Choice(["numa", "none"]), help="How GPUs and NICs were placed."),
    click.option(
        "--over",
        type=click.Choice(["infiniband", "roce", "ipoib", "ethernet", "nvlink"]),
        help="What the data was meant to go over (default: infiniband).",
    ),
)


published_option: Callable[[F], F] = click.option(
    "--published",
    metavar="NAME",
    help="A published study: a100, gb200, gb300, gb300-racks, h100, mi300x or mi300x-earlier.",
)


def context_options(function: F) -> F:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def files_argument(*, required: bool) -> Callable[[F], F]:
    return click.argument("files", nargs=-1, required=required, metavar="[LABEL=]FILE...")


def make_context(
    size: str | None,
    nodes: int | None,
    gpus: int | None,
    nics: int | None,
    nic_rate: float | None,
    align: str | None,
    over: str | None,
) -> "Context":
    import msgspec

    from fishplate.bench.results import Context

    said = {"size": size, "nodes": nodes, "gpus": gpus, "nics": nics, "nicGbps": nic_rate, "align": align, "over": over}
    return msgspec.convert({name: value for name, value in said.items() if value is not None}, Context)


def load_study(files: tuple[str, ...], published: str | None, context: "Context", name: str = "") -> "Study":
    """All runs of all files; `-` is standard input."""
    from fishplate.bench.study import join_studies, load_published, place_runs, read_runs

    if not files and published is None:
        raise UsageError("nothing to read", remedy="give a log, a results file, - for standard input, or --published")
    if sum(_split_label(one)[1] == "-" for one in files) > 1:
        raise UsageError("standard input can be read once only", remedy="give - once")
    studies = [load_published(published)] if published is not None else []
    for one in files:
        label, path = _split_label(one)
        if path == "-":
            studies.append(read_runs(sys.stdin.buffer, "-", label=label))
            continue
        try:
            with Path(path).open("rb") as stream:
                studies.append(read_runs(stream, path, label=label))
        except OSError as error:
            raise DocumentError(
                f"cannot be read: {error.strerror or error}", where=path, remedy="check the path and its rights"
            ) from error
    return place_runs(join_studies(studies, name=name), context)


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _split_label(text: str) -> tuple[str, str]:
    """`LABEL=FILE`, unless there is a file of just that name."""
    label, equals, path = text.partition("=")
    return (label, path) if equals and "/" not in label and not Path(text).exists() else ("", text)
