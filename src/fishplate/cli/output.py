"""How commands print: tables for people, JSON and YAML for programs."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

F = TypeVar("F", bound=Callable[..., Any])
_WIDTH_WITHOUT_TERMINAL = 1000  # a pipe has no width; nothing must be folded there


def output_option(*formats: str) -> Callable[[F], F]:
    """`-o FORMAT`, the first one being the default."""
    return click.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], show_default=True, help="How to print."
    )


def console() -> "Console":
    """Standard output as rich knows it: colours and the window's width on a terminal, plain text elsewhere."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with 1, which means a negative verdict here

    out = Output(highlight=False)
    return out if out.is_terminal else Output(highlight=False, width=_WIDTH_WITHOUT_TERMINAL)


def print_table(out: "Console", table: "Table") -> None:
    """As wide as it needs to be: a cell cut to `N…` says nothing, a line folded by the terminal still says all."""
    window = out.width
    wide = out.options.update(max_width=_WIDTH_WITHOUT_TERMINAL)
    out.width = max(window, out.measure(table, options=wide).maximum)
    out.print(table)
    out.width = window


def emit(value: object, output: str) -> None:
    """Print plain values as JSON or YAML."""
    plain = msgspec.to_builtins(value)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode())
        return
    from fishplate.k8s.yaml import dump_yaml

    click.echo(dump_yaml(plain), nl=False)
