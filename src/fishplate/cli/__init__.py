"""The command line: one group of click commands, each imported only when it is called.

`fishplate --help` must not import what it does not need: the list of commands and their one-line texts stands here.
"""

import contextlib
import importlib
import io
import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from fishplate import __version__
from fishplate.errors import FishplateError

_COMMANDS = {
    "bench": "Judge and compare benchmarks; what the hardware could do.",
    "capacity": "How many such pods fit, per fabric.",
    "catalog": "The hardware known; explains VM-size names.",
    "cel": "Try a selector on devices: its cost, and which clause failed.",
    "claim": "ResourceClaimTemplates from intent; the published examples.",
    "completion": "A completion script for your shell.",
    "demo": "The whole story on simulated hosts.",
    "driver": "The node driver: publish NICs, prepare claims, hand them over.",
    "explain": "What a claim or pod would get where, and why not.",
    "inspect": "GPUs, RDMA NICs and how they relate.",
    "lint": "Claims and pods: every known trap, with its rule.",
}


class LazyGroup(click.Group):
    """Commands live in `fishplate.cli.<name>`, as a click command called `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = importlib.import_module(f"fishplate.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], _COMMANDS, n=1)
            hint = f" Did you mean {near[0]}?" if near else " See `fishplate --help`."
            raise click.UsageError(f"{error.message}{hint}", ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, "--version", prog_name="fishplate")
def cli() -> None:
    """Line up GPUs and RDMA NICs on Kubernetes, and prove it.

    Exit codes: 0 good, 1 a negative verdict, 2 bad input or usage, 3 the outside world failed.
    """


def main() -> NoReturn:
    """The entry point: no error that we know of ever shows a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no × still gets its table
    try:
        code = _run()
        sys.stdout.flush()
    except FishplateError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:
        _close_quietly()  # the reader went away, as `| head` does
        sys.exit(141)
    except OSError as error:
        click.echo(f"error: {error}", err=True)  # a full disk behind standard output, for one
        _close_quietly()
        sys.exit(3)
    sys.exit(code)


def _run() -> int:
    """As click's own `main` does, which would answer a reader that went away with 1: a negative verdict, here."""
    if "_FISHPLATE_COMPLETE" in os.environ:
        cli.main(prog_name="fishplate")
    name = "kubectl fishplate" if Path(sys.argv[0]).name == "kubectl-fishplate" else "fishplate"
    try:
        with cli.make_context(name, sys.argv[1:]) as context:
            result = cli.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    return result if isinstance(result, int) else 0


def _close_quietly() -> None:
    """What is left in the buffer cannot be written either; Python must not try again while it shuts down."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
