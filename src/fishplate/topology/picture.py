"""An inventory as a document: what `fishplate inspect -o json` prints. docs/inspect.md describes its stable form."""

import msgspec

from fishplate.findings import Finding
from fishplate.topology.alignment import Alignment, align_all
from fishplate.topology.inventory import CharDevice, Fact, Host, Inventory, Nic, NumaNode
from fishplate.topology.relations import Relation, gpu_labels, nic_labels, relate_all


class Picture(Fact, frozen=True, kw_only=True, omit_defaults=False):
    host: Host
    numa_nodes: tuple[NumaNode, ...]
    gpus: list[dict[str, object]]
    nics: list[dict[str, object]]
    other_interfaces: list[dict[str, object]]
    relations: tuple[Relation, ...]
    alignment: tuple[Alignment, ...]
    rdma_cm: CharDevice | None
    problems: tuple[Finding, ...]


def draw(inventory: Inventory) -> Picture:
    gpus, nics = gpu_labels(inventory), nic_labels(inventory.rdma_nics)
    return Picture(
        host=inventory.host,
        numa_nodes=inventory.numa_nodes,
        gpus=[_labelled(gpus[gpu.pci.address], gpu) for gpu in inventory.gpus],
        nics=[_labelled(nics[nic.id], nic) for nic in inventory.rdma_nics],
        other_interfaces=[_plain(nic) for nic in inventory.nics if not nic.is_rdma],
        relations=relate_all(inventory),
        alignment=align_all(inventory),
        rdma_cm=inventory.rdma_cm,
        problems=inventory.problems,
    )


def _labelled(label: str, thing: Fact) -> dict[str, object]:
    return {"label": label} | _plain(thing)


def _plain(thing: Fact | Nic) -> dict[str, object]:
    plain = msgspec.to_builtins(thing)
    assert isinstance(plain, dict)
    return plain
