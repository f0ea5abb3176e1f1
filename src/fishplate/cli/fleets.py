"""Where commands get slices and nodes from: files, standard input, or a fleet made of the catalogue."""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
import msgspec

from fishplate.cli.sizes import complete_fleet
from fishplate.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fishplate.dra.world import Node
    from fishplate.k8s.claim import DeviceClass, ResourceClaim
    from fishplate.k8s.kueue import Topology
    from fishplate.k8s.node import Node as KubernetesNode
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
        "--fleet",
        metavar="SIZE=N[,…]",
        shell_complete=complete_fleet,
        help="A made-up fleet of these VM sizes, as their drivers would publish it.",
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
    """Nodes and what they publish; where that is known also classes, claims that hold devices, Kueue's topologies, and
    by node the GPU and RDMA resources that device plugins offer."""

    nodes: "tuple[Node, ...]"
    slices: "tuple[ResourceSlice, ...]"
    classes: "tuple[DeviceClass, ...]" = ()
    claims: "tuple[ResourceClaim, ...]" = ()
    topologies: "tuple[Topology, ...]" = ()
    plugins: "Mapping[str, frozenset[str]]" = MappingProxyType({})


# What a file of slices may hold besides them.
_KINDS = {
    "ResourceSlice": "fishplate.k8s.resource.ResourceSlice",
    "DeviceClass": "fishplate.k8s.claim.DeviceClass",
    "ResourceClaim": "fishplate.k8s.claim.ResourceClaim",
    "Node": "fishplate.k8s.node.Node",
    "Topology": "fishplate.k8s.kueue.Topology",
}


class _Item(msgspec.Struct):
    kind: str = ""


class _List(msgspec.Struct):
    kind: str = ""
    items: list[_Item] = []


class _RawList(msgspec.Struct):
    items: list[msgspec.Raw] = []


def parse_gates(text: str) -> dict[str, bool]:
    gates = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if value not in ("true", "false"):
            raise UsageError(f"feature gate {part!r} has no value", remedy="write NAME=true or NAME=false")
        gates[name.strip()] = value == "true"
    return gates


def load_files(paths: tuple[Path, ...]) -> Source:
    """What `kubectl get resourceslices,nodes,resourceclaims -A -o json` writes, or any part of it that has slices."""
    from fishplate.errors import DocumentError
    from fishplate.k8s.claim import DeviceClass, ResourceClaim
    from fishplate.k8s.kueue import Topology
    from fishplate.k8s.manifests import read_text
    from fishplate.k8s.node import Node
    from fishplate.k8s.resource import ResourceSlice

    found: dict[type[object], list[Any]] = {}
    for path in paths:
        for value in _read_objects(*read_text(path)):
            found.setdefault(type(value), []).append(value)
    slices = tuple(found.get(ResourceSlice, ()))
    if not slices:
        remedy = "`kubectl get resourceslices -o json` writes such a file"
        raise DocumentError("no ResourceSlice in it", where=", ".join(map(str, paths)), remedy=remedy)
    return Source(
        nodes_from(found[Node]) if Node in found else nodes_named(slices),
        slices,
        tuple(found.get(DeviceClass, ())),
        tuple(one for one in found.get(ResourceClaim, ()) if one.status.allocation is not None),
        tuple(found.get(Topology, ())),
        {one.metadata.name: frozenset(offered_by_plugins(one)) for one in found.get(Node, ())},
    )


def _read_objects(text: str, where: str) -> "Iterable[object]":
    """A fleet's JSON list of slices takes the fast way: its YAML parse would take minutes."""
    from fishplate.k8s.bulk import decode_slices
    from fishplate.k8s.manifests import parse_manifests

    if text.lstrip()[:1] == "{":
        try:
            listed = msgspec.json.decode(text, type=_List)
        except msgspec.DecodeError:
            listed = _List()
        kinds = {item.kind or listed.kind.removesuffix("List") for item in listed.items}
        if kinds == {"ResourceSlice"}:
            return decode_slices(text.encode(), where=where)
        if kinds and "ResourceSlice" in kinds and kinds <= _KINDS.keys():
            return _decode_mixed(text, where)
    return [manifest.value for manifest in parse_manifests(text, where, kinds=list(_KINDS))]


def _decode_mixed(text: str, where: str) -> "Iterable[object]":
    from fishplate.errors import DocumentError

    values = []
    try:
        for raw in msgspec.json.decode(text, type=_RawList).items:
            module, _, name = _KINDS[msgspec.json.decode(raw, type=_Item).kind].rpartition(".")
            values.append(msgspec.json.decode(raw, type=getattr(importlib.import_module(module), name)))
    except msgspec.DecodeError as error:
        remedy = "give the output of kubectl get -o json"
        raise DocumentError(f"not a list of Kubernetes objects: {error}", where=where, remedy=remedy) from error
    return values


def nodes_named(slices: "Iterable[ResourceSlice]") -> "tuple[Node, ...]":
    """The nodes that slices name; of their labels nothing else is known."""
    from fishplate.dra.world import Node

    names = dict.fromkeys(one.spec.node_name for one in slices if one.spec.node_name)
    return tuple(Node(name=name, labels={"kubernetes.io/hostname": name}) for name in names)


def nodes_from(found: "Iterable[KubernetesNode]", *, cordoned: bool = False) -> "tuple[Node, ...]":
    """Node objects as the allocator takes them; the scheduler passes over those that are cordoned."""
    from fishplate.dra.world import Node

    return tuple(
        Node(name=one.metadata.name, labels=one.metadata.labels)
        for one in found
        if cordoned or not one.spec.unschedulable
    )


def offered_by_plugins(node: "KubernetesNode") -> "Iterator[str]":
    """GPU and RDMA resources that a device plugin offers on the node."""
    from fishplate.dra.device_plugins import is_plugin_resource

    for name, amount in node.status.allocatable.items():
        if is_plugin_resource(name) and str(amount) != "0":
            yield name


def load_source(slices: tuple[Path, ...], fleet: str | None) -> Source:
    if fleet is not None and slices:
        raise UsageError("--slices and --fleet exclude each other", remedy="give one of them")
    if fleet is not None:
        from fishplate.hardware.catalog import load_catalog
        from fishplate.sim.fleet import make_fleet, parse_fleet

        made = make_fleet(parse_fleet(fleet), load_catalog())
        return Source(made.nodes, made.slices)
    if not slices:
        raise UsageError("no devices to look at", remedy="give --slices FILE or --fleet SIZE=N")
    return load_files(slices)
