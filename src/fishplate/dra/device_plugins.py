"""Extended resources by which device plugins hand out the hardware that claims hand out too.

A plugin and a DRA driver on one node know nothing of each other and may hand out one device twice.
"""

from typing import Literal

Hardware = Literal["gpu", "nic", ""]


def hardware_of(resource: str) -> Hardware:
    """What an extended resource stands for. The shared RDMA plugin names NICs below rdma/, NVIDIA's SR-IOV and
    host-device plugins below nvidia.com/ (`nvidia.com/hostdev`); AMD names partitions (`amd.com/cpx_nps4`) as well."""
    domain, _, name = resource.partition("/")
    if domain == "rdma":
        return "nic"
    if domain == "amd.com" or (domain == "nvidia.com" and name.startswith(("gpu", "mig-"))):
        return "gpu"
    return "nic" if domain == "nvidia.com" else ""


def is_plugin_resource(resource: str) -> bool:
    return bool(hardware_of(resource))
