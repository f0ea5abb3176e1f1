"""Which attribute can line up GPUs and NICs: one that both drivers publish, truly the same on both sides.

`matchAttribute` fails closed: a device that lacks the attribute, or has it with another type, is never picked, and the
pod waits for ever without a reason. So an attribute is chosen only after looking at the devices, never by the name or
version of a driver.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from fishplate.dra.intent_published import Offered, OfferedNode, Published

NUMA_NODE = "resource.kubernetes.io/numaNode"
AMD_NUMA_NODE = "gpu.amd.com/numaNode"
NIC_NUMA_NODE = "dra.net/numaNode"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
NVIDIA_UUID = "gpu.nvidia.com/uuid"
NUMA_KEYS = (NUMA_NODE, AMD_NUMA_NODE, NIC_NUMA_NODE)
UNKNOWN_NUMA_NODE = -1
_MEMORY_ONLY = (
    "GPUs of Grace boards may name the NUMA node of their own memory, a memory-only node without CPUs and NICs"
)


class Need(NamedTuple):
    gpus: int
    nics: int


class Judgement(NamedTuple):
    """Whether constraints can rely on the attribute; `why` holds the reason against it, or for it.

    `short` is set where the attribute is sound and only the counts are too high: then another attribute of the same
    kind would not help.
    """

    key: str
    usable: bool
    why: str
    warnings: tuple[str, ...] = ()
    short: bool = False


def judge(key: str, published: Published, need: Need) -> Judgement:
    for reason in (_missing(key, published, need), _unlike(key, published), _disjoint(key, published, need)):
        if reason:
            return Judgement(key, False, reason)
    if not any(fits(node, key, need) for node in published.nodes):
        return Judgement(key, False, describe_largest(key, published), short=True)
    both = "The NICs publish" if need.gpus == 0 else "GPUs and NICs both publish"
    return Judgement(key, True, f"{both} {key}", tuple(_warnings(key, published, need)))


def count_values(devices: Sequence[Offered], key: str) -> Counter[object]:
    return Counter(device.value(key) for device in devices if device.value(key) is not None)


def fits(node: OfferedNode, key: str, need: Need) -> bool:
    """Whether some value has enough of both."""
    gpus, nics = count_values(node.gpus, key), count_values(node.nics, key)
    return any(gpus[value] >= need.gpus and nics[value] >= need.nics for value in {*gpus, *nics})


def describe_largest(key: str, published: Published) -> str:
    """What one value of the attribute holds at most, on the node that has most of it."""
    best: tuple[int, int, object] = (0, 0, "")
    for node in published.nodes:
        gpus, nics = count_values(node.gpus, key), count_values(node.nics, key)
        for value in sorted({*gpus, *nics}, key=str):
            found = (gpus[value], nics[value], value)
            if found[0] + found[1] > best[0] + best[1]:
                best = found
    what = "NUMA node" if key in NUMA_KEYS else f"value of {key}"
    return f"no {what} has that many; one has at most {count(best[0], 'GPU')} and {count(best[1], 'NIC')}"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# -- reasons against an attribute --------------------------------------------------------------------------------


def _missing(key: str, published: Published, need: Need) -> str:
    sides = [("GPU", published.gpu_driver, published.gpus)] if need.gpus else []
    sides += [("NIC", "dra.net", published.nics)] if need.nics else []
    for noun, driver, devices in sides:
        without = [device for device in devices if key not in device.attributes]
        if len(without) == len(devices):
            return f"{driver} of this release publishes no {_name(key, devices)}"
        if without:
            return f"{len(without)} of {count(len(devices), noun)} lack {key}, {without[0].name} for one"
    return ""


def _name(key: str, devices: Sequence[Offered]) -> str:
    """`NUMA node` where the driver has none under any name; else the name that is missing."""
    has_another = any(other in device.attributes for device in devices for other in NUMA_KEYS)
    return "NUMA node" if key in NUMA_KEYS and not has_another else key


def _unlike(key: str, published: Published) -> str:
    kinds = {_kind(device, key) for device in (*published.gpus, *published.nics)} - {""}
    if "list" in kinds:
        return f"{key} is a list on some devices, and kube-scheduler matches lists only from 1.37, behind an alpha gate"
    if len(kinds) > 1:
        return f"{key} has different types: {' and '.join(sorted(kinds))}; values of different types never match"
    return ""


def _kind(device: Offered, key: str) -> str:
    attribute = device.attributes.get(key)
    if attribute is None:
        return ""
    kinds = {"int": attribute.int_, "bool": attribute.bool_, "string": attribute.string, "version": attribute.version}
    return next((name for name, value in kinds.items() if value is not None), "list")


def _disjoint(key: str, published: Published, need: Need) -> str:
    if not need.gpus or not need.nics or any(_overlap(node, key) for node in published.nodes):
        return ""
    gpus, nics = count_values(published.gpus, key), count_values(published.nics, key)
    if key == PCIE_ROOT:
        return "no GPU shares a PCIe root with a NIC; on Azure every device has a PCI domain of its own"
    said = f"{key} is {_list(gpus)} on the GPUs and {_list(nics)} on the NICs, so no pair would ever match"
    if key not in NUMA_KEYS:
        return said
    if set(gpus) == {UNKNOWN_NUMA_NODE}:
        return f"{said}; -1 means that the kernel does not know the GPU's NUMA node"
    return f"{said}; {_MEMORY_ONLY}"


def _overlap(node: OfferedNode, key: str) -> bool:
    return bool(count_values(node.gpus, key).keys() & count_values(node.nics, key).keys())


def _list(values: Counter[object]) -> str:
    shown = sorted(values, key=lambda value: (isinstance(value, str), value))
    return ", ".join(map(str, shown[:8])) + (", …" if len(shown) > 8 else "")


# -- warnings ----------------------------------------------------------------------------------------------------


def _warnings(key: str, published: Published, need: Need) -> list[str]:
    warnings = []
    gpus = published.gpus if need.gpus else []
    unknown = sum(device.value(key) == UNKNOWN_NUMA_NODE for device in gpus)
    if key in NUMA_KEYS and unknown:
        warnings.append(
            f"{count(unknown, 'GPU')} of {len(gpus)} say NUMA node -1, which means unknown: no NIC matches them"
        )
    alone = sum(
        gpu.value(key) not in count_values(node.nics, key) and gpu.value(key) != UNKNOWN_NUMA_NODE
        for node in published.nodes
        for gpu in node.gpus
    )
    if need.gpus and need.nics and alone:
        warnings.append(f"{count(alone, 'GPU')} of {len(gpus)} have no NIC with the same {key}: no claim serves them")
    too_small = sum(not fits(node, key, need) for node in published.nodes)
    if too_small:
        warnings.append(f"{count(too_small, 'node')} of {len(published.nodes)} cannot hold such a claim")
    return warnings
