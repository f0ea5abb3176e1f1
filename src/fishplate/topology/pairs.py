"""Which one GPU belongs to a NIC, where exactly one does.

NUMA equality says nothing about which of several NICs is nearest. The catalogue knows the pairs of some machines from
their published topology files; elsewhere a shared PCIe switch tells. Where two GPUs are equally near there is no pair.
"""

from collections.abc import Mapping, Sequence

import msgspec

from fishplate.topology.inventory import Gpu, Nic
from fishplate.topology.relations import NEARNESS, Pcie, relate_gpu_and_nic


def pair_nics(nics: Sequence[Nic], gpus: Sequence[Gpu], known: Mapping[str, str]) -> tuple[Nic, ...]:
    """The same NICs with their GPU set where they have one. `known` maps NIC to GPU by PCI address."""
    present = {gpu.pci.address for gpu in gpus}

    def pair(nic: Nic) -> str:
        if nic.pci is None or not nic.is_rdma:
            return ""
        if nic.pci.address in known:
            return known[nic.pci.address] if known[nic.pci.address] in present else ""
        return _nearest(nic, gpus)

    return tuple(msgspec.structs.replace(nic, paired_gpu=pair(nic)) for nic in nics)


def _nearest(nic: Nic, gpus: Sequence[Gpu]) -> str:
    relations = sorted(((relate_gpu_and_nic(gpu, nic), gpu) for gpu in gpus), key=lambda item: NEARNESS[item[0]])
    # Only a shared switch makes a pair; sharing a host bridge or a NUMA node is alignment, not ownership.
    near = [(relation, gpu) for relation, gpu in relations if relation in (Pcie.PIX, Pcie.PXB)]
    if not near or (len(near) > 1 and near[0][0] == near[1][0]):
        return ""
    return near[0][1].pci.address
