"""`fishplate bench`: what a benchmark's output is worth, and what the hardware could do."""

import click

from fishplate.cli.bench_compare import compare
from fishplate.cli.bench_expect import expect
from fishplate.cli.bench_judge import judge


@click.group(name="bench")
def command() -> None:
    """Judge benchmarks against what the hardware can do."""


command.add_command(judge)
command.add_command(compare)
command.add_command(expect)
