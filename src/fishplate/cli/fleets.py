"""Where commands get slices and nodes from: files, standard input, or a fleet made of the catalogue."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from fishplate.errors import UsageError

if TYPE_CHECKING:
    from fishplate.dra.world import Node
    from fishplate.k8s.claim import DeviceClass
    from fishplate.k8s.resource import ResourceSlice

F = TypeVar("F", bound=Callable[..., Any])


def source_options(function: F) -> F:
    """`--slices FILE` and `--fleet SIZE=N[,…]`."""
    function = click.option(
        "--slices",
        type=click.Path(path_type=Path, allow_dash=True),
        multiple=True,
        metavar="FILE",
        help="ResourceSlices in YAML or JSON (kubectl get resourceslices -o json); - is standard input.",
    )(function)
    return click.option(
        "--fleet", metavar="SIZE=N[,…]", help="A made-up fleet of these VM sizes, as their drivers would publish it."
    )(function)


def scheduler_options(function: F) -> F:
    """`--kubernetes MINOR` and `--feature-gates A=true,…`."""
    function = click.option(
        "--kubernetes",
        "minor",
        type=click.Choice(["1.34", "1.35", "1.36", "1.37"]),
        default="1.36",
        show_default=True,
        help="Whose scheduler to follow, with its default feature gates.",
    )(function)
    return click.option("--feature-gates", "gates", metavar="NAME=true,…", default="", help="Gates that differ.")(
        function
    )


class Source(NamedTuple):
    """Nodes and what they publish."""

    nodes: "tuple[Node, ...]"
    slices: "tuple[ResourceSlice, ...]"


def parse_gates(text: str) -> dict[str, bool]:
    gates = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if value not in ("true", "false"):
            raise UsageError(f"feature gate {part!r} has no value", remedy="write NAME=true or NAME=false")
        gates[name.strip()] = value == "true"
    return gates


def load_published(
    paths: tuple[Path, ...],
) -> "tuple[tuple[ResourceSlice, ...], tuple[DeviceClass, ...]]":
    """ResourceSlices, and DeviceClasses where the files hold some. A fleet's JSON list takes the fast way."""
    from fishplate.errors import DocumentError
    from fishplate.k8s.bulk import decode_slices
    from fishplate.k8s.claim import DeviceClass
    from fishplate.k8s.manifests import parse_manifests, read_text
    from fishplate.k8s.resource import ResourceSlice

    slices: list[ResourceSlice] = []
    classes: list[DeviceClass] = []
    for path in paths:
        text, where = read_text(path)
        if text.lstrip()[:1] == "{" and '"DeviceClass"' not in text and '"items"' in text[:4096]:
            slices += decode_slices(text.encode(), where=where)
            continue
        for manifest in parse_manifests(text, where, kinds=["ResourceSlice", "DeviceClass"]):
            if isinstance(manifest.value, ResourceSlice):
                slices.append(manifest.value)
            elif isinstance(manifest.value, DeviceClass):
                classes.append(manifest.value)
    if not slices:
        remedy = "`kubectl get resourceslices -o json` writes such a file"
        raise DocumentError("no ResourceSlice in it", where=", ".join(map(str, paths)), remedy=remedy)
    return tuple(slices), tuple(classes)


def load_source(slices: tuple[Path, ...], fleet: str | None) -> Source:
    from fishplate.dra.world import Node

    if fleet is not None and slices:
        raise UsageError("--slices and --fleet exclude each other", remedy="give one of them")
    if fleet is not None:
        from fishplate.hardware.catalog import load_catalog
        from fishplate.sim.fleet import make_fleet, parse_fleet

        made = make_fleet(parse_fleet(fleet), load_catalog())
        return Source(made.nodes, made.slices)
    if not slices:
        raise UsageError("no devices to look at", remedy="give --slices FILE or --fleet SIZE=N")
    loaded, _ = load_published(slices)
    names = dict.fromkeys(one.spec.node_name for one in loaded if one.spec.node_name)
    return Source(tuple(Node(name=name, labels={"kubernetes.io/hostname": name}) for name in names), loaded)
