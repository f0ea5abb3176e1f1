"""`fishplate completion`: the script that teaches a shell to complete our commands."""

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print a completion script for SHELL.

    \b
    bash:  fishplate completion bash > ~/.local/share/bash-completion/completions/fishplate
    zsh:   fishplate completion zsh > "${fpath[1]}/_fishplate"
    fish:  fishplate completion fish > ~/.config/fish/completions/fishplate.fish
    """
    from fishplate.cli import cli

    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(cli, {}, "fishplate", "_FISHPLATE_COMPLETE").source())
