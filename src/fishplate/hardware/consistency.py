"""Whether what a catalogue file says about one size can be true.

Each rule is a small generator of problems; a problem is the path of the field below the size and a sentence. The rules
run on the built-in files in the tests and on every file a user brings, because a layout with a wrong NUMA node would
make every answer that follows from it quietly wrong.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator

from fishplate.documents import Problem
from fishplate.hardware.pci_address import ADDRESS, ROOT
from fishplate.hardware.size import Entry, Place

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_HEX = re.compile(r"[0-9a-f]{4}")


def _places(entry: Entry) -> Iterator[tuple[tuple[str | int, ...], Place]]:
    if entry.layout:
        for kind, places in (("gpus", entry.layout.gpus), ("nics", entry.layout.nics)):
            for index, place in enumerate(places):
                yield ("layout", kind, index), place


def name_is_plain(entry: Entry) -> Iterator[Problem]:
    """Host names, file names and table cells are made of it."""
    if not _NAME.fullmatch(entry.name):
        yield Problem(
            ("name",), f"{entry.name!r} is no name", "use up to 63 letters, digits, dots, dashes, underscores"
        )


def addresses_are_pci(entry: Entry) -> Iterator[Problem]:
    for path, place in _places(entry):
        bridges = [(("bridges", index), bridge) for index, bridge in enumerate(place.bridges)]
        pair = [(("pair",), place.pair)] if place.pair else []
        for field, address in [(("address",), place.address), *bridges, *pair]:
            if not ADDRESS.match(address):
                yield Problem(
                    (*path, *field),
                    f"{address!r} is not a PCI address",
                    "write domain:bus:device.function in lower-case hex, as in 0101:00:00.0",
                )
        if not ROOT.match(place.root) and ADDRESS.match(place.address):
            yield Problem(
                (*path, "root"), f"{place.root!r} is not a PCI root", "write it as sysfs does, as in pci0101:00"
            )


def addresses_are_unique(entry: Entry) -> Iterator[Problem]:
    seen = Counter(place.address for _, place in _places(entry))
    for path, place in _places(entry):
        if seen[place.address] > 1:
            yield Problem((*path, "address"), f"{place.address} is used {seen[place.address]} times in this layout")


def numa_nodes_exist(entry: Entry) -> Iterator[Problem]:
    for path, place in _places(entry):
        if place.numa is None:
            continue
        if place.numa < 0 or (entry.numa_nodes is not None and place.numa >= entry.numa_nodes):
            nodes = "unknown" if entry.numa_nodes is None else str(entry.numa_nodes)
            yield Problem(
                (*path, "numa"),
                f"NUMA node {place.numa} is out of range (numa_nodes: {nodes})",
                "count from 0; leave numa out where it is not known",
            )


def layout_matches_counts(entry: Entry) -> Iterator[Problem]:
    if not entry.layout:
        return
    for kind, spec, places in (("gpus", entry.gpu, entry.layout.gpus), ("nics", entry.nic, entry.layout.nics)):
        said = spec.count if spec else 0
        if len(places) != said:
            yield Problem(("layout", kind), f"{len(places)} {kind} are placed, but the {kind[:-1]} count is {said}")


def pairs_are_mutual(entry: Entry) -> Iterator[Problem]:
    if not entry.layout:
        return
    gpus, nics = entry.layout.gpus, entry.layout.nics
    for kind, mine, others in (("gpus", gpus, nics), ("nics", nics, gpus)):
        by_address = {place.address: place for place in others}
        for index, place in enumerate(mine):
            if place.pair is None:
                continue
            other = by_address.get(place.pair)
            if other is None:
                yield Problem(("layout", kind, index, "pair"), f"{place.pair} is not a device of the other kind here")
            elif other.pair != place.address:
                yield Problem(
                    ("layout", kind, index, "pair"),
                    f"{place.address} names {place.pair}, which names {other.pair or 'nobody'}: pairs must be mutual",
                )


def rdma_has_a_nic(entry: Entry) -> Iterator[Problem]:
    if entry.rdma and entry.nic is None:
        yield Problem(("nic",), "rdma is true but no nic is given")
    if not entry.rdma and entry.nic is not None:
        yield Problem(("nic",), "a nic is given although rdma is false")
    if not entry.rdma and not entry.why_not_rdma:
        yield Problem(("whyNotRdma",), "rdma is false without a reason", "say in one sentence why not")


def numbers_are_positive(entry: Entry) -> Iterator[Problem]:
    numbers: list[tuple[tuple[str | int, ...], float | None]] = [
        (("vcpus",), entry.vcpus),
        (("memoryGib",), entry.memory_gib),
        (("numaNodes",), entry.numa_nodes),
        (("gpu", "count"), entry.gpu.count if entry.gpu else None),
        (("gpu", "memoryGib"), entry.gpu.memory_gib if entry.gpu else None),
        (("nic", "count"), entry.nic.count if entry.nic else None),
        (("nic", "rateGbps"), entry.nic.rate_gbps if entry.nic else None),
    ]
    for path, number in numbers:
        if number is not None and not 0 < number < math.inf:
            yield Problem(path, f"{number:g} must be above 0 and finite")
    for index, vcpus in enumerate(entry.constrained):
        if vcpus <= 0 or (entry.vcpus is not None and vcpus >= entry.vcpus):
            yield Problem(("constrained", index), f"{vcpus} is not below the full size's {entry.vcpus} vCPUs")


def identifiers_are_hex(entry: Entry) -> Iterator[Problem]:
    ids: list[tuple[str, str, str]] = []
    if entry.gpu:
        ids += [("gpu", "pciVendor", entry.gpu.pci_vendor), ("gpu", "pciDevice", entry.gpu.pci_device)]
    if entry.nic:
        ids += [("nic", "pciVendor", entry.nic.pci_vendor), ("nic", "pciDevice", entry.nic.pci_device)]
        if entry.nic.pci_subsystem:
            ids.append(("nic", "pciSubsystem", entry.nic.pci_subsystem))
    for block, field, value in ids:
        if not _HEX.fullmatch(value):
            yield Problem(
                (block, field), f"{value!r} is not four lower-case hex digits", 'write it quoted, as in "101e"'
            )


RULES: tuple[Callable[[Entry], Iterator[Problem]], ...] = (
    name_is_plain,
    addresses_are_pci,
    addresses_are_unique,
    numa_nodes_exist,
    layout_matches_counts,
    pairs_are_mutual,
    rdma_has_a_nic,
    numbers_are_positive,
    identifiers_are_hex,
)


def check_entry(entry: Entry) -> list[Problem]:
    return [problem for rule in RULES for problem in rule(entry)]


def check_sources(entry: Entry, known: dict[str, str]) -> Iterator[Problem]:
    """Every claim names a source that its file explains."""
    cited: list[tuple[tuple[str | int, ...], str]] = [(("sources", i), key) for i, key in enumerate(entry.sources)]
    if entry.layout:
        cited += [(("layout", "sources", i), key) for i, key in enumerate(entry.layout.sources)]
    if entry.aks:
        cited += [(("aks", "sources", i), key) for i, key in enumerate(entry.aks.sources)]
    cited += [(("expected", i, "source"), expectation.source) for i, expectation in enumerate(entry.expected)]
    for path, key in cited:
        if key not in known:
            yield Problem(path, f"source {key!r} is not explained", "add it to the file's `sources`")
