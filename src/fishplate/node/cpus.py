"""NUMA nodes of the host, and lists of CPUs as the kernel writes them (`0-3,8`)."""

import re

from fishplate.node.tree import Tree
from fishplate.topology.inventory import NumaNode

_NODES = "/sys/devices/system/node"
_MAX_CPU = 65_536


def parse_cpu_list(text: str) -> frozenset[int]:
    """`0-3,8` → {0, 1, 2, 3, 8}. Raises ValueError on anything else."""
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part.strip())
        if match is None:
            raise ValueError(f"not a list of CPUs: {text!r}")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low or high > _MAX_CPU:
            raise ValueError(f"not a list of CPUs: {text!r}")
        cpus.update(range(low, high + 1))
    return frozenset(cpus)


def read_numa_nodes(tree: Tree) -> tuple[NumaNode, ...]:
    nodes = []
    for name in tree.names(_NODES):
        match = re.fullmatch(r"node(\d{1,4})", name)
        if match:
            nodes.append(_read_node(tree, int(match[1])))
    return tuple(sorted(nodes, key=lambda node: node.id))


def _read_node(tree: Tree, number: int) -> NumaNode:
    path = f"{_NODES}/node{number}"
    cpus = tree.text(f"{path}/cpulist") or ""
    try:
        count = len(parse_cpu_list(cpus))
    except ValueError:
        tree.garbled(f"{path}/cpulist", cpus, "a list of CPUs")
        cpus, count = "", 0
    distances = tree.value(f"{path}/distance", lambda text: tuple(int(part) for part in text.split()), "distances")
    memory = _memory(tree, path)
    return NumaNode(id=number, cpus=cpus, cpu_count=count, memory_bytes=memory, distances=distances or ())


def _memory(tree: Tree, path: str) -> int | None:
    match = re.search(r"MemTotal:\s+(\d{1,15}) kB", tree.text(f"{path}/meminfo") or "")
    return int(match[1]) * 1024 if match else None
