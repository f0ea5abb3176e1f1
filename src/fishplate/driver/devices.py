"""From an allocated device to what a container gets of it: device nodes, by the host's own numbers and modes.

A verbs node is enough to use a NIC. `umad` and `issm` let a process talk to the fabric's management and are handed out
only where the claim asks and the operator allows. The connection manager's node is shared by all and goes along.
"""

import msgspec

from fishplate.driver.records import Held
from fishplate.errors import InputError
from fishplate.k8s.claim import DeviceRequestAllocationResult
from fishplate.topology.inventory import CharDevice, CharKind, Host, Inventory, Nic

_PLAIN: frozenset[CharKind] = frozenset({"uverbs", "ucm"})
_MANAGEMENT: frozenset[CharKind] = frozenset({"umad", "issm"})


def hold_device(result: DeviceRequestAllocationResult, inventory: Inventory, *, management: bool) -> Held:
    nic = _find(result.device, inventory)
    if nic.excluded:
        raise InputError(f"device {result.device} is not offered: {nic.excluded}")
    _check_namespace_mode(inventory.host)
    return Held(
        request=result.request,
        device=result.device,
        pool=result.pool,
        rdma=tuple(device.name for device in nic.rdma),
        nodes=_nodes(nic, inventory.rdma_cm, management=management),
        admin=bool(result.admin_access),
        share_id=result.share_id or "",
        management=management,
        interface=nic.interface is not None,
    )


def renew(held: Held, inventory: Inventory) -> Held:
    """The same device by today's numbers; raises where it is gone."""
    nic = _find(held.device, inventory)
    return msgspec.structs.replace(
        held,
        rdma=tuple(device.name for device in nic.rdma),
        nodes=_nodes(nic, inventory.rdma_cm, management=held.management),
    )


def _find(device: str, inventory: Inventory) -> Nic:
    nic = next((nic for nic in inventory.nics if nic.id == device), None)
    if nic is None:
        raise InputError(
            f"device {device} is not on this node",
            remedy="was its driver unloaded or the card reset? `fishplate inspect` on the node shows what is there",
        )
    return nic


def _check_namespace_mode(host: Host) -> None:
    if host.rdma_netns == "exclusive":
        raise InputError(
            "RDMA devices of this node belong to one network namespace each (exclusive mode); a pod cannot use them",
            remedy="set the mode on the node: `rdma system set netns shared`",
        )


def _nodes(nic: Nic, rdma_cm: CharDevice | None, *, management: bool) -> tuple[CharDevice, ...]:
    if not nic.rdma:
        raise InputError(
            f"device {nic.id} has no RDMA device",
            remedy="this release hands out RDMA devices and does not move network interfaces: select dra.net/rdma",
        )
    wanted = _PLAIN | _MANAGEMENT if management else _PLAIN
    nodes = [node for device in nic.rdma for node in device.char_devices if node.kind in wanted]
    for device in nic.rdma:
        if not any(node.kind == "uverbs" for node in device.char_devices):
            raise InputError(
                f"device {nic.id}: {device.name} has no verbs node",
                remedy="load ib_uverbs on the node: `modprobe ib_uverbs`",
            )
    if rdma_cm is not None:
        nodes.append(rdma_cm)
    missing = [node.path for node in nodes if node.mode is None]
    if missing:
        raise InputError(
            f"device {nic.id}: {', '.join(missing)} is not in the node's /dev",
            remedy="is the host's /dev/infiniband mounted into the driver's pod, and does udev run?",
        )
    return tuple(nodes)
