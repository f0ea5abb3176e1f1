"""The ceiling: the most busbw that a machine's network can give a collective. A model, and called one.

    one NIC          min(line rate, PCIe path to a GPU of its NUMA node)
    one node         the sum of its NICs, B
    plain ring       every byte of busbw passes the NICs once:                     busbw ≤ B
    in-node first    the node adds up before it sends (NVLink SHARP), so that m
                     nodes send 2(m−1)/m of the data, with N ranks altogether:     busbw ≤ B · (N−1)/N · m/(m−1)

The second exceeds the first by up to 2 (two nodes) and is then bounded by the links inside the node. With one GPU to a
node both are B. `good_from` is 85 % of the plain ring: no healthy published run lies below it.

What the model leaves out, it refuses: transfers inside one node, multi-node NVLink, TCP, and collectives whose root is
the bottleneck. The judge uses published figures there, or says that it cannot tell.
"""

import functools
from collections.abc import Mapping
from importlib import resources

import msgspec
import yaml

from fishplate.bench.results import Align, Context, Part
from fishplate.errors import InputError
from fishplate.hardware.catalog import Size


class GpuModel(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    in_node_first: bool = False
    in_node_busbw: float | None = None
    staged_gbps: float | None = msgspec.field(default=None, name="stagedGBps")
    sources: tuple[str, ...] = ()


class Model(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    sources: dict[str, str]
    judged_from_bytes: int
    good_from: float
    good_from_source: str
    gpus: dict[str, GpuModel]


class Ceiling(Part, frozen=True, kw_only=True):
    """GB/s. `steps` say how it comes about, in order."""

    busbw: float
    ring: float
    good_from: float
    line_rate: float
    """The sum of the NICs by their names alone, whatever else binds."""
    test: str
    nodes: int
    gpus: int
    nics: int
    align: Align
    steps: tuple[str, ...]
    sources: tuple[str, ...] = ()


class NicRate(msgspec.Struct, frozen=True, kw_only=True):
    """GB/s of one NIC: by its name, and as it can be used."""

    line: float
    usable: float
    steps: tuple[str, ...]
    sources: tuple[str, ...] = ()


@functools.cache
def load_model() -> Model:
    text = resources.files("fishplate.bench").joinpath("data", "model.yaml").read_text(encoding="utf-8")
    return msgspec.convert(yaml.safe_load(text), Model)


def rate_nic(
    size: Size | None, context: Context, *, data_direct: bool = False, sources: Mapping[str, str] = {}
) -> NicRate:
    """What one NIC carries to and from a GPU, or to host memory, as `context` places it."""
    if context.nic_gbps is not None:
        line = context.nic_gbps / 8
        return NicRate(line=line, usable=line, steps=(f"one NIC: {context.nic_gbps:g} Gb/s, as given = {line:g} GB/s",))
    if size is None or size.nic is None:
        raise InputError("the machine is not known", remedy="give its --size, or --nic-rate for one of no catalogue")
    nic = size.nic
    line = usable = nic.rate_gbps / 8
    steps = [f"one NIC: {nic.model}, {nic.rate_gbps:g} Gb/s = {line:g} GB/s (catalogue)"]
    found = tuple(sources.get(key, key) for key in size.sources)
    if nic.pcie_gbps is not None and not data_direct:
        usable = min(line, nic.pcie_gbps / 8)
        steps.append(f"its PCIe path to a GPU: {nic.pcie_gbps:g} Gb/s = {usable:.1f} GB/s, which binds (catalogue)")
    elif nic.pcie_gbps is not None:
        steps.append("its PCIe path is left out: Data Direct gives the NIC a path of its own")
    if context.align == "none" and size.gpu is not None:
        usable, step, more = _stage(size.gpu.model, usable)
        steps.append(step)
        found = (*found, *more)
    return NicRate(line=line, usable=usable, steps=tuple(steps), sources=found)


def _stage(gpu: str, usable: float) -> tuple[float, str, tuple[str, ...]]:
    model = load_model()
    known = model.gpus.get(gpu)
    if known is None or known.staged_gbps is None:
        return usable, f"across NUMA nodes: what that costs on {gpu} is not published, so nothing is taken off", ()
    staged = min(usable, known.staged_gbps)
    step = f"across NUMA nodes, through host memory: {staged:g} GB/s (measured, not derived)"
    return staged, step, tuple(model.sources[key] for key in known.sources if key.startswith("dranet"))


def find_ceiling(
    size: Size | None,
    context: Context,
    *,
    test: str = "all_reduce",
    data_direct: bool = False,
    sources: Mapping[str, str] = {},
) -> Ceiling:
    """InputError, with the reason, where the model does not reach. `sources` explain the catalogue's keys."""
    nodes, gpus, nics = context.nodes or 2, context.gpus or 1, context.nics or 1
    if nodes < 2:
        raise InputError("the model is about the network between nodes", remedy="give at least 2 --nodes")
    nic = rate_nic(size, context, data_direct=data_direct, sources=sources)
    node = nic.usable * nics
    steps = [*nic.steps, f"one node: {nics} × {nic.usable:.4g} = {node:.4g} GB/s"]
    gpu = load_model().gpus.get(size.gpu.model) if size is not None and size.gpu is not None else None
    busbw, more = _collective(test, node, nodes, gpus, gpu)
    ring = min(node, busbw)
    model = load_model()
    keys = (*(gpu.sources if gpu is not None and gpus > 1 else ()), model.good_from_source)
    return Ceiling(
        busbw=busbw,
        ring=ring,
        good_from=model.good_from * ring,
        line_rate=nic.line * nics,
        test=test,
        nodes=nodes,
        gpus=gpus,
        nics=nics,
        align=context.align,
        steps=(*steps, *more),
        sources=tuple(dict.fromkeys((*nic.sources, *(model.sources[key] for key in keys)))),
    )


def _collective(test: str, node: float, nodes: int, gpus: int, gpu: GpuModel | None) -> tuple[float, tuple[str, ...]]:
    ranks = nodes * gpus
    if test == "alltoall":
        busbw = node * (ranks - 1) / (gpus * (ranks - gpus))
        step = (
            f"alltoall: {gpus} ranks share the node's NICs, {ranks - gpus} of {ranks} parts leave it: {busbw:.4g} GB/s"
        )
        return busbw, (step,)
    if test == "sendrecv" and gpus > 1:
        raise InputError("sendrecv with several GPUs to a node mostly stays inside it", remedy="use one GPU to a node")
    if test not in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "sendrecv"):
        raise InputError(f"no ceiling is known for {test or 'an unnamed test'}", remedy="judge an all_reduce instead")
    if gpus == 1 or test in ("broadcast", "reduce", "sendrecv"):
        return node, (f"{test}: every byte of busbw passes the NICs once: {node:.4g} GB/s",)
    if gpu is None or not gpu.in_node_first:
        return node, (f"plain ring: busbw is at most the sum of the NICs: {node:.4g} GB/s",)
    busbw = node * (ranks - 1) / ranks * nodes / (nodes - 1)
    steps = [f"the node adds up first: {node:.4g} × {ranks - 1}/{ranks} × {nodes}/{nodes - 1} = {busbw:.4g} GB/s"]
    if gpu.in_node_busbw is not None and gpu.in_node_busbw < busbw:
        busbw = gpu.in_node_busbw
        steps.append(f"the links inside the node bind before that: {busbw:g} GB/s (measured, not derived)")
    return busbw, tuple(steps)


def check_placement(size: Size, context: Context) -> None:
    """Refuses what the machine does not have: more devices than it holds, or than one NUMA node can give."""
    gpus, nics = context.gpus or 1, context.nics or 1
    have_gpus = size.gpu.count if size.gpu else 0
    have_nics = size.nic.count if size.nic else 0
    if size.gpu is None and gpus > 1:
        raise InputError(f"{size.name} has no GPUs", remedy="leave --gpus out")
    if (have_gpus and gpus > have_gpus) or nics > have_nics:
        raise InputError(
            f"{size.name} has {have_gpus} GPUs and {have_nics} RDMA NICs", remedy="ask for no more than that"
        )
    if context.align != "numa" or size.layout is None or not size.gpu:
        return
    places: dict[int, list[int]] = {}
    for index, kind in enumerate((size.layout.gpus, size.layout.nics)):
        for place in kind:
            if place.numa is not None:
                places.setdefault(place.numa, [0, 0])[index] += 1
    fits = any(here[0] >= gpus and here[1] >= nics for here in places.values())
    spans = gpus > max((here[0] for here in places.values()), default=0)
    if places and not fits and not spans:
        most = max(here[1] for here in places.values() if here[0] >= gpus)
        raise InputError(
            f"no NUMA node of {size.name} has {gpus} GPUs and {nics} NICs: it has at most {most} NICs",
            remedy="ask for fewer NICs, or --align none",
        )
