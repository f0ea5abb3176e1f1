"""The last resort: a template for each NUMA node, with its GPUs and NICs picked by selectors.

GPUs are picked by their NUMA node where the driver publishes one that the NICs know too, if under another name; else by
PCI address, and somebody must know where each address sits.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from fishplate.dra.intent_attributes import NIC_NUMA_NODE, NUMA_KEYS, NUMA_NODE, count, count_values
from fishplate.dra.intent_published import Offered, OfferedNode, Published
from fishplate.dra.intent_templates import equals, is_one_of, nic_request, request, template
from fishplate.errors import InputError
from fishplate.k8s.claim import ResourceClaimTemplate

if TYPE_CHECKING:
    from fishplate.dra.intent import Intent

# In the order of the releases that use them, newest first.
BUS_ID_KEYS = ("resource.kubernetes.io/pciBusID", "gpu.nvidia.com/pcieBusID", "gpu.amd.com/pciAddr")


class _GpuPlaces(NamedTuple):
    """How a selector finds the GPUs of a NUMA node, and how that is said in words."""

    expressions: dict[int, str]
    how: str
    warnings: tuple[str, ...]
    of: Mapping[str, int]
    key: str


def per_numa_templates(
    intent: "Intent", published: Published, gpu_numa: Mapping[str, int]
) -> tuple[tuple[ResourceClaimTemplate, ...], str, tuple[str, ...]]:
    """The templates, how they find their devices, and warnings."""
    nic_key = _nic_key(published)
    places = _place_gpus(published, nic_key, gpu_numa) if intent.gpus else _GpuPlaces({}, "", (), {}, "")
    nodes = sorted({int(value) for value in count_values(published.nics, nic_key) if isinstance(value, int)})
    useful = [numa for numa in nodes if any(_fits(one, numa, nic_key, places, intent) for one in published.nodes)]
    if not useful:
        raise InputError(_shortage(intent, published, nic_key, places, nodes), remedy="ask for fewer, or --align none")
    templates = tuple(
        template(
            f"{intent.template_name}-numa{numa}",
            [
                *([request("gpu", published.gpu_driver, intent.gpus, places.expressions[numa])] if intent.gpus else []),
                nic_request(intent.nics, equals(nic_key, numa), fabric=intent.fabric),
            ],
        )
        for numa in useful
    )
    return templates, f"{places.how}NICs are picked by {nic_key}.", places.warnings


def _nic_key(published: Published) -> str:
    for key in (NUMA_NODE, NIC_NUMA_NODE):
        if all(isinstance(nic.value(key), int) for nic in published.nics):
            return key
    without = next(nic for nic in published.nics if not isinstance(nic.value(NIC_NUMA_NODE), int))
    raise InputError(
        f"NIC {without.name} is published without a NUMA node: nothing can be aligned with it",
        remedy="the firmware gives no NUMA node for it; use --align none",
    )


def _place_gpus(published: Published, nic_key: str, gpu_numa: Mapping[str, int]) -> _GpuPlaces:
    nics = {value for value in count_values(published.nics, nic_key) if isinstance(value, int)}
    for key in NUMA_KEYS:
        values = [gpu.value(key) for gpu in published.gpus]
        if all(isinstance(value, int) for value in values) and nics & set(values):
            expressions = {numa: equals(key, numa) for numa in nics}
            return _GpuPlaces(expressions, f"GPUs are picked by {key}. ", (), {}, key)
    return _place_by_address(published, gpu_numa)


def _place_by_address(published: Published, gpu_numa: Mapping[str, int]) -> _GpuPlaces:
    key = next((key for key in BUS_ID_KEYS if all(key in gpu.attributes for gpu in published.gpus)), "")
    if not key:
        raise InputError(
            f"{published.gpu_driver} of this release publishes neither a usable NUMA node nor a PCI address:"
            " no selector can tell its GPUs apart by place",
            remedy="use a newer GPU driver, or --align none",
        )
    by_numa: dict[int, set[str]] = defaultdict(set)
    lost = set()
    for gpu in published.gpus:
        address = str(gpu.value(key))
        if address in gpu_numa:
            by_numa[gpu_numa[address]].add(address)
        else:
            lost.add(address)
    if not by_numa:
        raise InputError(
            "where the GPUs sit is not published, and not known otherwise",
            remedy="name the machine with --for SIZE, or use a GPU driver that publishes NUMA nodes",
        )
    warnings = (f"{count(len(lost), 'GPU')} at places nobody knows: {', '.join(sorted(lost)[:4])}",) if lost else ()
    expressions = {numa: is_one_of(key, sorted(addresses)) for numa, addresses in by_numa.items()}
    how = f"GPUs are picked by {key}, their NUMA nodes being those of the machine's known layout. "
    return _GpuPlaces(expressions, how, warnings, gpu_numa, key)


def _numa_of(gpu: Offered, places: _GpuPlaces) -> object:
    value = gpu.value(places.key)
    return places.of.get(str(value)) if places.of else value


def _fits(node: OfferedNode, numa: int, nic_key: str, places: _GpuPlaces, intent: "Intent") -> bool:
    gpus, nics = _count(node, numa, nic_key, places)
    return gpus >= intent.gpus and nics >= intent.nics and (not intent.gpus or numa in places.expressions)


def _count(node: OfferedNode, numa: int, nic_key: str, places: _GpuPlaces) -> tuple[int, int]:
    gpus = sum(_numa_of(gpu, places) == numa for gpu in node.gpus) if places.key else 0
    return gpus, sum(nic.value(nic_key) == numa for nic in node.nics)


def _shortage(intent: "Intent", published: Published, nic_key: str, places: _GpuPlaces, nodes: list[int]) -> str:
    counts = [_count(node, numa, nic_key, places) for node in published.nodes for numa in nodes]
    gpus, nics = max(counts, key=sum, default=(0, 0))
    wanted = f"{count(intent.gpus, 'GPU')} and {count(intent.nics, 'NIC')}"
    return f"{wanted} on one NUMA node: one has at most {count(gpus, 'GPU')} and {count(nics, 'NIC')}"
