"""Rails: a number per NIC that stays with the NIC.

Rail n of one node talks to rail n of the others, so the number must not move when a neighbour is missing, a driver
reloads or names are handed out in another order. In order of trust:

1. the catalogue's layout of the machine, by PCI address: a missing NIC leaves a gap, not a shift;
2. on Azure, the PCI domain: InfiniBand functions sit at 0101:00:00.0, 0102:00:00.0, … on every size;
3. the rank by PCI address among the machine's RDMA functions, whether they work at the moment or not: one that lost
   its driver or went to a VM keeps its number. The node's own uplink has none. VFs share the rail of their PF.
"""

from collections.abc import Iterable, Sequence

import msgspec

from fishplate.hardware.pci_address import address_key
from fishplate.topology.inventory import Nic

_AZURE_FIRST_DOMAIN = 0x0101
_AZURE_LAST_DOMAIN = 0x01FF
_MELLANOX = "15b3"


def number_rails(nics: Sequence[Nic], *, layout: Sequence[str] = (), azure: bool = False) -> tuple[Nic, ...]:
    """The same NICs with their rail set where they have one. `layout` lists NIC addresses in rail order."""
    present = {_rail_address(nic) for nic in nics if nic.pci}
    known = {address: rail for rail, address in enumerate(layout)} if present & set(layout) else {}
    ranks = _rank_by_address(nics)

    def rail(nic: Nic) -> int | None:
        if nic.pci is None or not nic.is_rdma or nic.excluded:
            return None
        if known:
            return known.get(_rail_address(nic))
        if azure:
            return _azure_rail(nic.pci.address) if nic.link_layer == "InfiniBand" else None
        return ranks.get(_rail_address(nic))

    return tuple(msgspec.structs.replace(nic, rail=rail(nic)) for nic in nics)


def _rail_address(nic: Nic) -> str:
    assert nic.pci is not None
    return nic.pci.physfn or nic.pci.address


def _azure_rail(address: str) -> int | None:
    domain = address_key(address)[0]
    return domain - _AZURE_FIRST_DOMAIN if _AZURE_FIRST_DOMAIN <= domain <= _AZURE_LAST_DOMAIN else None


def _rank_by_address(nics: Iterable[Nic]) -> dict[str, int]:
    addresses = {_rail_address(nic) for nic in nics if nic.pci and not nic.uplink and _is_rdma_by_nature(nic)}
    return {address: rank for rank, address in enumerate(sorted(addresses, key=address_key))}


def _is_rdma_by_nature(nic: Nic) -> bool:
    """Also while its driver is away: InfiniBand controllers tell by their class, ConnectX cards by their maker."""
    assert nic.pci is not None
    return nic.is_rdma or nic.pci.class_code.startswith("0207") or nic.pci.vendor == _MELLANOX
