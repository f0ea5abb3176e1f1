"""Options and completion that have to do with the catalogue, shared by the commands that take a size."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from fishplate.hardware.catalog import Catalog, Size, load_catalog

F = TypeVar("F", bound=Callable[..., Any])

catalog_option: Callable[[F], F] = click.option(
    "--catalog",
    "catalog_files",
    type=click.Path(dir_okay=False, path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Your own catalogue file, adding servers to the known ones. May be given several times.",
)


def complete_size(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    start = incomplete.lower()
    names = [size.name for size in load_catalog().rdma_sizes()]
    return [name for name in names if name.lower().startswith((start, f"standard_{start}"))]


def find_rdma_size(catalog: Catalog, name: str) -> Size:
    """The size of this name; one without RDMA is bad input here, with the reason."""
    from fishplate.errors import InputError

    size = catalog.find(name)
    if not size.rdma:
        why = size.why_not_rdma or "it has no RDMA-capable NIC"
        raise InputError(
            f"{size.name} is not RDMA-capable: {why}", remedy="`fishplate catalog` lists the sizes that are"
        )
    return size
