"""Causes of a run that works and is slow: which NICs carry the data, and how it gets to them from the GPU."""

from collections.abc import Iterator

from fishplate.bench.case import Case, Named
from fishplate.bench.results import Evidence

# Few channels are how NCCL answers a NIC beyond its distance limit; 8 and 16 were seen with one and two near ones.
_FAR_CHANNELS = 2
_NEAR_ONE_NIC = 0.1

_TOO_FAR = "GPUDirect RDMA is off because GPU and NIC are too far apart: data goes through host memory"
_ALIGN = (
    "take the NIC from the GPU's NUMA node (`fishplate claim new --align numa`); on the same node"
    " NCCL_NET_GDR_LEVEL=PHB or a topology file allows it"
)


def mixed_link_layers(case: Case) -> Iterator[Named]:
    shown = case.sign("hcas")
    if shown and {"IB", "RoCE"} <= {hca.layer for hca in case.run.network.hcas}:
        ethernet = next(hca.name for hca in case.run.network.hcas if hca.layer == "RoCE")
        yield Named(
            f"NCCL uses {ethernet}, which is Ethernet, beside the InfiniBand NICs",
            shown,
            f"keep it out: NCCL_IB_HCA=^={ethernet} (on Azure it is the accelerated NIC of the VM)",
        )


def nics_missing(case: Case) -> Iterator[Named]:
    shown, found = case.sign("hcas"), len(case.run.network.hcas)
    if shown and case.context.nics and 0 < found < case.context.nics:
        setting = case.run.network.settings.get("NCCL_IB_HCA")
        remedy = (
            f"NCCL_IB_HCA is {setting}: list all devices of the claim, with = for exact names"
            if setting
            else "compare `ls /dev/infiniband` in the pod with its claim; look at the port state of the others"
        )
        yield Named(f"NCCL sees {found} of {case.context.nics} NICs", shown, remedy)


def one_nic_used(case: Case) -> Iterator[Named]:
    path, nics = case.path("NET/IB"), case.nics
    if path is None or nics is None or nics < 2 or len(path.devices) != 1:
        return
    if case.run.network.merged.get(str(path.devices[0]), 1) > 1:
        return
    yield Named(
        f"every channel goes through one NIC of {nics}",
        path.evidence[0],
        "in a VM NCCL does not see the PCIe tree: give it NCCL_TOPO_FILE; see NCCL_IB_HCA; all NICs must be alike",
    )


def gpudirect_too_far(case: Case) -> Iterator[Named]:
    path = case.path("NET/IB")
    if path is None and case.context.gdr is False and case.context.align == "none":
        channels = case.run.network.coll_channels
        said = "GPU and NIC on different NUMA nodes, GPUDirect RDMA off" + (
            f", {channels} channels" if channels else ""
        )
        yield Named(_TOO_FAR, Evidence(line=0, text=f"as the study says: {said}"), _ALIGN)
        return
    if path is None or path.gdr:
        return
    far = case.sign("too-far")
    few = case.run.network.coll_channels or path.channels
    if far is None and case.context.align != "none" and few > _FAR_CHANNELS:
        return
    why = "" if far else f", with {few} channels" if few <= _FAR_CHANNELS else ""
    yield Named(f"{_TOO_FAR}{why}", far or path.evidence[0], _ALIGN)


def gpudirect_forbidden(case: Case) -> Iterator[Named]:
    path, found = case.path("NET/IB"), case.setting("NCCL_NET_GDR_LEVEL")
    if path is not None and not path.gdr and found and found[0].upper() in ("0", "LOC"):
        yield Named("GPUDirect RDMA is switched off", found[1], "set NCCL_NET_GDR_LEVEL=PHB, or leave it out")


def gpudirect_off(case: Case) -> Iterator[Named]:
    """Off, and nothing says that distance or a setting is why."""
    path = case.path("NET/IB")
    if path is None or path.gdr or any(gpudirect_too_far(case)) or any(gpudirect_forbidden(case)):
        return
    shown = case.sign("gdr-hca-off")
    yield Named(
        "GPUDirect RDMA is off: data goes through host memory",
        shown or path.evidence[0],
        "load nvidia-peermem or use DMA-BUF (NCCL_DMABUF_ENABLE=1); then see what NCCL says about distance",
    )


def data_direct_off(case: Case) -> Iterator[Named]:
    nic = case.size.nic if case.size is not None else None
    found = case.setting("NCCL_IB_DATA_DIRECT")
    if nic is not None and nic.pcie_gbps is not None and found and found[0] == "0":
        yield Named(
            f"Data Direct is off, so that the PCIe path ({nic.pcie_gbps:g} Gb/s) binds and not the NIC"
            f" ({nic.rate_gbps:g} Gb/s)",
            found[1],
            "try NCCL_IB_DATA_DIRECT=1 with all NICs of the node; with one NIC keep what is faster",
        )


def rate_of_one_nic(case: Case) -> Iterator[Named]:
    """From the number alone: the weakest evidence, and named as such."""
    ceiling, rate, nics = case.ceiling, case.rate, case.nics
    if ceiling is None or rate is None or nics is None or nics < 2 or case.path("NET/IB") or case.path("NET/Socket"):
        return
    one = ceiling.ring / nics
    if abs(rate - one) <= _NEAR_ONE_NIC * one:
        yield Named(
            f"the rate is that of one NIC of {nics}: perhaps only one is used",
            Evidence(line=case.rate_line, text=f"{rate:.2f} GB/s; one NIC carries {one:.1f} GB/s"),
            "run with NCCL_DEBUG=INFO: the channel lines say which NICs are used",
        )
