"""The command line: one group of click commands, each imported only when it is called.

`fishplate --help` must not import what it does not need: the list of commands and their one-line texts stands here.
"""

import importlib
import sys
from typing import NoReturn

import click

from fishplate import __version__
from fishplate.errors import FishplateError

_COMMANDS = {
    "catalog": "The hardware known; explains VM-size names.",
    "completion": "A completion script for your shell.",
    "demo": "The whole story on simulated hosts.",
    "inspect": "GPUs, RDMA NICs and how they relate, on this host or any size.",
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

            near = difflib.get_close_matches(args[0], _COMMANDS, n=2)
            hint = f" Did you mean {' or '.join(near)}?" if near else " See `fishplate --help`."
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
    try:
        result = cli.main(standalone_mode=False)
    except FishplateError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader went away (`| head`). Python would complain once more while it shuts down.
        sys.stderr.close()
        sys.exit(141)
    sys.exit(result if isinstance(result, int) else 0)
