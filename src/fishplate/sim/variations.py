"""Ways in which a real machine differs from the textbook one. Each has been seen in the field."""

import msgspec


class Variations(msgspec.Struct, frozen=True, kw_only=True):
    links_down: tuple[int, ...] = ()
    """Rails whose port is down."""
    missing: tuple[int, ...] = ()
    """Rails whose NIC the VM did not get."""
    accelerated_networking: bool = False
    """An Ethernet mlx5 VF below eth0, probed first: it is mlx5_0 and everything else moves up by one."""
    ofed: bool = False
    """OFED instead of the kernel's own driver: IPoIB interfaces exist, and the module tells its version."""
    roce: bool = False
    """The NICs run RoCE and have Ethernet interfaces."""
    netdevs_away: tuple[int, ...] = ()
    """Rails whose interface a pod holds (RoCE): it is not in the host's view."""
    numa_unknown: bool = False
    """Firmware gives no proximity: every numa_node says -1."""
    single_numa: bool = False
    """The machine has one NUMA node, and its kernel says -1 for devices."""
    extra_bridges: int = 0
    """So many bridges between the root and each NIC."""
    gpu_memory_nodes: int = 0
    """NUMA nodes that are GPU memory, without CPUs, as Grace shows them."""


TEXTBOOK = Variations()
