"""An explanation for people: a screenful that can be acted on."""

from typing import TYPE_CHECKING

from rich.markup import escape

from fishplate.cli.explain import reasons_of
from fishplate.cli.output import console

if TYPE_CHECKING:
    from rich.console import Console

    from fishplate.dra.explain import Explanation, Story

_WORDS = {
    "allocated": "[bold green]fits[/bold green]",
    "does-not-fit": "[bold red]does not fit[/bold red]",
    "error": "[bold red]the scheduler gives up with an error[/bold red]",
    "unknown": "[bold yellow]cannot tell[/bold yellow]",
}
_MAX_STORIES, _MAX_NAMES, _MAX_REASONS = 6, 3, 6


def print_explanation(subject: str, explanation: "Explanation", notes: list[str]) -> None:
    out = console()
    counts: dict[str, int] = {}
    for story in explanation.stories:
        counts[story.outcome] = counts.get(story.outcome, 0) + len(story.nodes)
    total = sum(counts.values())
    fitting = counts.get("allocated", 0)
    out.print(f"[bold]{escape(subject)}[/bold]: {_WORDS[explanation.outcome]}, on {fitting} of {total} nodes")
    for note in notes:
        out.print(f"  {note}", markup=False)
    for story in explanation.stories[:_MAX_STORIES]:
        _print_story(out, story)
    hidden = explanation.stories[_MAX_STORIES:]
    if hidden:
        nodes = sum(len(story.nodes) for story in hidden)
        out.print(f"\n… and {nodes} nodes in {len(hidden)} more groups; -o json has them all", style="dim")
    for change in explanation.changes:
        out.print("\n[green]would fit[/green] after one change: " + escape(change.text))
    for warning in explanation.warnings:
        out.print(f"\n[yellow]warning[/yellow]: `{escape(warning.expression)}` fails on {warning.devices} devices")
        out.print(
            f"  {warning.message}, on {warning.example} for one; the scheduler gives up when it gets there",
            markup=False,
        )


def _print_story(out: "Console", story: "Story") -> None:
    names = ", ".join(story.nodes[:_MAX_NAMES]) + ("" if len(story.nodes) <= _MAX_NAMES else ", …")
    count = len(story.nodes)
    out.print(f"\n{count} node{'s' if count != 1 else ''} ({escape(names)}): {_WORDS[story.outcome]}")
    if story.proximity is not None:
        _print_allocation(out, story)
        return
    reasons = reasons_of(story)
    for reason in reasons[:_MAX_REASONS]:
        place = f"{reason['request']}: " if "request" in reason else ""
        devices = f" ({reason['devices']} devices, {reason['example']} for one)" if "devices" in reason else ""
        out.print(f"  {place}{reason['text']}{devices}", markup=False)
    if len(reasons) > _MAX_REASONS:
        out.print(f"  … {len(reasons) - _MAX_REASONS} more reasons", style="dim")
    for change in story.changes[:_MAX_REASONS]:
        out.print("  [green]would fit[/green] after one change: " + escape(change.text))


def _print_allocation(out: "Console", story: "Story") -> None:
    for result in story.results:
        given: dict[str, list[str]] = {}
        for device in result.devices.results:
            given.setdefault(device.request, []).append(f"{device.driver}/{device.device}")
        for request, names in given.items():
            out.print(f"  {request}: {', '.join(names)}", markup=False)
    proximity = story.proximity
    assert proximity is not None
    for pair in proximity.pairs[:_MAX_REASONS]:
        style = "red" if pair.relation == "SYS" else "green"
        need = "GPUDirect by default" if pair.gpudirect == "default" else f"GPUDirect with {pair.gpudirect}"
        out.print(f"  {pair.gpu} – {pair.nic}: [{style}]{pair.relation}[/{style}]  {need if pair.gpudirect else ''}")
    if len(proximity.fabrics) > 1:
        out.print(f"  the NICs are on {len(proximity.fabrics)} fabrics", style="red")
    if len(story.fabrics) > 1:
        out.print(f"  the nodes are on {len(story.fabrics)} fabrics; pods on different ones share no InfiniBand")
    elif story.fabrics and len(story.nodes) > 1:
        out.print(f"  the nodes share the fabric {story.fabrics[0]}", markup=False)
