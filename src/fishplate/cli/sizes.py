"""Options and completion that have to do with the catalogue, shared by the commands that take a size."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from fishplate.errors import InputError, UnknownNameError
from fishplate.hardware.catalog import Catalog, Size, load_catalog

_RDMA_LIST = "`fishplate catalog` lists the sizes that are"
F = TypeVar("F", bound=Callable[..., Any])

catalog_option: Callable[[F], F] = click.option(
    "--catalog",
    "catalog_files",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    multiple=True,
    metavar="FILE",
    callback=lambda _ctx, _param, files: tuple(Path("/dev/stdin") if str(one) == "-" else one for one in files),
    help="Your own catalogue file, adding servers to the known ones; - is standard input. May be given several times.",
)


def complete_size(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    start = incomplete.lower()
    names = [size.name for size in load_catalog().rdma_sizes()]
    return [name for name in names if name.lower().startswith((start, f"standard_{start}"))]


def complete_fleet(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The size after the last comma of `SIZE=N,SIZE=N`; its number is the user's."""
    before, comma, last = incomplete.rpartition(",")
    return [] if "=" in last else [f"{before}{comma}{name}=" for name in complete_size(ctx, param, last)]


def complete_profile(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from fishplate.sim.gpu_drivers import profile_names

    return [name for name in profile_names() if name.startswith(incomplete)]


def find_rdma_size(catalog: Catalog, name: str) -> Size:
    """The size of this name; one without RDMA is bad input here, with the reason."""
    try:
        size = catalog.find(name)
    except UnknownNameError as unknown:
        _refuse_by_name(name, unknown)
        raise
    if not size.rdma:
        raise InputError(f"{size.name} is not RDMA-capable: {size.why_not_rdma}", remedy=_RDMA_LIST)
    return size


def _refuse_by_name(name: str, unknown: UnknownNameError) -> None:
    """A name that nobody has in a catalogue may still tell by its letters that it is no RDMA size."""
    from fishplate.hardware.size_name import parse_size_name

    try:
        parsed = parse_size_name(name)
    except UnknownNameError:
        return
    if not parsed.rdma_by_name and not parsed.warnings:
        nearest = f" Nearest: {', '.join(unknown.nearest)}." if unknown.nearest else ""
        raise InputError(
            f"{parsed.name} is not RDMA-capable: its name has no r, and the catalogue does not know it",
            remedy=f"{_RDMA_LIST}.{nearest}",
        ) from unknown
