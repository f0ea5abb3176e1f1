"""DRANET's published templates for AKS, made from the catalogue instead of copied.

kubernetes-sigs/dranet, examples/azure_aks_examples: four for GB300, three for MI300X. They mean what the published ones
mean, the misaligned ones included: those were written to be measured. `fishplate lint` says what is wrong with them.
"""

from fishplate.dra.intent_classes import GPU_DRIVERS, NIC_CLASS
from fishplate.dra.intent_templates import PLACEMENT_GROUP, RDMA, equals, nic_request, request, template
from fishplate.errors import InputError, UnknownNameError
from fishplate.hardware.pci_address import address_key
from fishplate.hardware.size import Layout, Place, Size
from fishplate.k8s.claim import DeviceRequest, ResourceClaimTemplate

EXAMPLES = {"gb300": "Standard_ND128isr_GB300_v6", "mi300x": "Standard_ND96isr_MI300X_v5"}
# The placement group of the published template; on another cluster it matches nothing.
PUBLISHED_FABRIC = "c6c749e8-a38b-470e-8c94-2a7d00001bf0"
BUS_ID = "resource.kubernetes.io/pciBusID"
_NUMA_NODE = "dra.net/numaNode"
_RDMA_DEVICE = "dra.net/rdmaDevice"


def example_size(name: str) -> str:
    if name.lower() not in EXAMPLES:
        raise UnknownNameError(
            f"no published example is called {name!r}",
            nearest=tuple(EXAMPLES),
            remedy=f"known examples: {', '.join(EXAMPLES)}",
        )
    return EXAMPLES[name.lower()]


def write_examples(size: Size, *, fabric: str = PUBLISHED_FABRIC) -> tuple[ResourceClaimTemplate, ...]:
    """The published templates for this size."""
    if size.layout is None or size.gpu is None:
        raise InputError(f"nothing is published for {size.name}", remedy=f"known examples: {', '.join(EXAMPLES)}")
    if size.gpu.vendor == "amd":
        return _nic_templates(size.layout)
    return _pair_templates(size.layout, GPU_DRIVERS[size.gpu.vendor], fabric)


def _pair_templates(layout: Layout, gpu_class: str, fabric: str) -> tuple[ResourceClaimTemplate, ...]:
    """One GPU, the first, with NICs of its NUMA node or of another."""
    gpu, nics = _by_address(layout.gpus)[0], _by_address(layout.nics)
    near = [index for index, nic in enumerate(nics) if nic.numa == gpu.numa]
    far = [index for index, nic in enumerate(nics) if nic.numa != gpu.numa]
    if gpu.numa is None or not near or not far:
        raise InputError("a machine whose NICs all sit on one NUMA node has no aligned and unaligned ones")
    chosen = request("gpu", gpu_class, 1, equals(BUS_ID, gpu.address))
    local = nic_request(len(near), equals(_NUMA_NODE, gpu.numa))
    same_fabric = request("nic", NIC_CLASS, 1, equals(PLACEMENT_GROUP, fabric), RDMA)
    return (
        template("1nic-aligned", [chosen, _named_nic(near[0])]),
        template("1nic-unaligned", [chosen, _named_nic(far[0])]),
        template(f"{len(near)}nic-aligned", [chosen, local]),
        template("ib-same-fabric", [same_fabric]),
    )


def _named_nic(index: int) -> DeviceRequest:
    return request("nic", NIC_CLASS, 1, equals(_RDMA_DEVICE, f"mlx5_{index}"))


def _nic_templates(layout: Layout) -> tuple[ResourceClaimTemplate, ...]:
    """NICs only: those of the first NUMA node, those of the second, all."""
    numas = sorted({nic.numa for nic in layout.nics if nic.numa is not None})
    counts = [sum(nic.numa == numa for nic in layout.nics) for numa in numas]
    words = ("same-numa", "cross-numa")
    by_numa = [
        template(f"{number}nic-{word}", [nic_request(number, equals(_NUMA_NODE, numa))])
        for numa, number, word in zip(numas, counts, words, strict=False)
    ]
    total = len(layout.nics)
    return (*by_numa, template(f"{total}nic-all", [nic_request(total)]))


def _by_address(places: tuple[Place, ...]) -> list[Place]:
    return sorted(places, key=lambda place: address_key(place.address))
