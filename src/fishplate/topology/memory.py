"""What a host says now, completed by what it said before.

While a pod holds a NIC, its netdev (and in exclusive RDMA mode its RDMA device) live in the pod's namespace and vanish
from the host's view. Publishing that would rewrite the slice at every pod start and break selectors on keys that come
and go. A function that is still there and still has its driver keeps the facts last seen.
"""

import msgspec

from fishplate.topology.inventory import Inventory, Netdev, Nic


def remember(before: Inventory, now: Inventory) -> Inventory:
    """`now`, with the netdev and RDMA facts of functions whose own have moved away taken from `before`."""
    known = {nic.id: nic for nic in before.nics}
    return msgspec.structs.replace(now, nics=tuple(_complete(nic, known.get(nic.id)) for nic in now.nics))


def _complete(now: Nic, before: Nic | None) -> Nic:
    if before is None or not _is_same_function(before, now):
        return now
    return msgspec.structs.replace(
        now,
        netdevs=_still(before.netdevs, now.netdevs),
        rdma=now.rdma or before.rdma,
        rail=before.rail if before.rail is not None else now.rail,
        paired_gpu=now.paired_gpu or before.paired_gpu,
    )


def _is_same_function(before: Nic, now: Nic) -> bool:
    """A driver unbound or another card in the same slot is a change to tell, not to hide."""
    return (
        before.pci is not None
        and now.pci is not None
        and bool(now.pci.driver)
        and (before.pci.vendor, before.pci.device, before.pci.driver)
        == (now.pci.vendor, now.pci.device, now.pci.driver)
    )


def _still(before: tuple[Netdev, ...], now: tuple[Netdev, ...]) -> tuple[Netdev, ...]:
    """Those seen now, and those only seen before. One that was renamed keeps its index and is not two."""
    here = {netdev.ifindex for netdev in now} | {netdev.name for netdev in now}
    away = tuple(netdev for netdev in before if not {netdev.ifindex, netdev.name} & here)
    return tuple(sorted((*now, *away), key=lambda netdev: netdev.name))
