"""Which one GPU belongs to a NIC, where exactly one does.

NUMA equality says nothing about which of several NICs is nearest. The catalogue knows the pairs of some machines from
their published topology files; elsewhere a shared PCIe switch tells. Where two GPUs are equally near there is no pair.
"""

from collections.abc import Mapping

from fishplate.topology.inventory import Gpu, Inventory, Nic
from fishplate.topology.relations import NEARNESS, Pcie, relate_gpu_and_nic


def paired_gpus(inventory: Inventory, known: Mapping[str, str]) -> dict[str, Gpu]:
    """NIC id → its GPU. `known` maps NIC to GPU by PCI address."""
    by_address = {gpu.pci.address: gpu for gpu in inventory.gpus}
    pairs = {}
    for nic in inventory.rdma_nics:
        if nic.pci and nic.pci.address in known:
            gpu = by_address.get(known[nic.pci.address])
        else:
            gpu = _nearest(inventory, nic)
        if gpu is not None:
            pairs[nic.id] = gpu
    return pairs


def _nearest(inventory: Inventory, nic: Nic) -> Gpu | None:
    relations = sorted(
        ((relate_gpu_and_nic(gpu, nic), gpu) for gpu in inventory.gpus), key=lambda item: NEARNESS[item[0]]
    )
    # Only a shared switch makes a pair; sharing a host bridge or a NUMA node is alignment, not ownership.
    near = [(relation, gpu) for relation, gpu in relations if relation in (Pcie.PIX, Pcie.PXB)]
    if not near or (len(near) > 1 and near[0][0] == near[1][0]):
        return None
    return near[0][1]
