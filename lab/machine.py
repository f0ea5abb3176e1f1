"""QEMU's command line for one node of a shape: two NUMA nodes, and a PCIe root of its own for every device.

Every device has an explicit place. QEMU would put one without a place on the first expander bus it finds, and then
refuse to start. Expander n owns bus numbers FIRST_BUS + STRIDE*n and up: one for itself, one below its root port.
"""

import tomllib
from pathlib import Path

import msgspec

from fishplate.errors import UnknownNameError
from lab import HERE
from lab.network import API_PORT, KUBELET_PORT, Link, NodeNetwork

FIRST_BUS, STRIDE = 0x10, 8
_FIRST_EXPANDER_SLOT = 8


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """`nics` and `gpus` hold the NUMA node of each device, in bus order; `gpu_driver` is a profile
    of `fishplate.sim.gpu_drivers`."""

    cpus: tuple[tuple[int, ...], ...]
    memory_mib: int
    nics: tuple[int, ...]
    gpus: tuple[int, ...]
    gpu_driver: str = ""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What a node's QEMU needs to know besides its shape."""

    index: int
    nodes: int
    network: NodeNetwork
    system: Path
    tools: Path
    payload: Path
    api_port: int
    ssh_port: int
    kubelet_port: int


def read_shapes(path: Path = HERE / "shapes.toml") -> dict[str, Shape]:
    return msgspec.convert(tomllib.loads(path.read_text()), dict[str, Shape])


def find_shape(name: str) -> Shape:
    shapes = read_shapes()
    if name not in shapes:
        raise UnknownNameError(f"no shape is called {name}", nearest=tuple(shapes), where="lab/shapes.toml")
    return shapes[name]


def _processor_argv(shape: Shape) -> list[str]:
    total = sum(len(c) for c in shape.cpus)
    share = shape.memory_mib // len(shape.cpus)
    argv = ["-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", f"{share * len(shape.cpus)}M"]
    argv += ["-smp", f"{total},sockets={len(shape.cpus)},cores={total // len(shape.cpus)},threads=1"]
    for i, cpus in enumerate(shape.cpus):
        argv += ["-object", f"memory-backend-ram,id=ram{i},size={share}M"]
        argv += ["-numa", f"node,nodeid={i},{','.join(f'cpus={c}' for c in cpus)},memdev=ram{i}"]
    return argv


def _disk_argv(machine: Machine) -> list[str]:
    argv: list[str] = []
    # The root disk is shared by all labs: writes go to a file that QEMU has deleted before it starts.
    disks = (
        (machine.system / "root.img", "snapshot=on"),
        (machine.tools, "readonly=on"),
        (machine.payload, "readonly=on"),
    )
    for i, (path, how) in enumerate(disks):
        argv += ["-drive", f"file={path},if=none,id=disk{i},format=raw,{how}"]
        argv += ["-device", f"virtio-blk-pci,drive=disk{i},bus=pcie.0,addr={3 + i:#x}"]
    return argv


def _management_argv(machine: Machine) -> list[str]:
    """`restrict=on` cuts the guest off; what is forwarded by name is all that passes."""
    n = machine.network
    forward = [
        f"hostfwd=tcp:127.0.0.1:{machine.ssh_port}-{n.address}:22",
        f"hostfwd=tcp:127.0.0.1:{machine.kubelet_port}-{n.address}:{KUBELET_PORT}",
        f"guestfwd=tcp:{n.api}:{API_PORT}-cmd:socat - TCP:127.0.0.1:{machine.api_port}",
    ]
    user = ["user", "id=mgmt", "restrict=on", "ipv6=off", f"net={n.range}", f"host={n.gateway}", *forward]
    return ["-netdev", ",".join(user), *_nic_argv(n.mgmt, "mgmt", "pcie.0,addr=0x6")]


def _nic_argv(link: Link, netdev: str, bus: str) -> list[str]:
    # Without a speed, Soft-RoCE cannot tell a rate and the kernel complains at every query.
    speed = "speed=100000,duplex=full"
    return ["-device", f"virtio-net-pci,netdev={netdev},mac={link.mac},{speed},romfile=,bus={bus}"]


def _cable(name: str, here: str, there: str) -> str:
    """One end of a wire: packets between two sockets in the state directory, QEMU's working directory."""
    ends = f"local.type=unix,local.path={name}-{here},remote.type=unix,remote.path={name}-{there}"
    return f"dgram,id={name}-{here},{ends}"


def wire_argv(name: str, hub: int, index: int, nodes: int) -> list[str]:
    """A network between all nodes, under the id NAME: node 0 is the hub, every other node has a wire to it."""
    if index:
        return ["-netdev", _cable(name, str(index), f"0.{index}").replace(f"id={name}-{index}", f"id={name}")]
    argv = ["-netdev", f"hubport,id={name},hubid={hub}"]
    for other in range(1, nodes):
        argv += ["-netdev", _cable(name, f"0.{other}", str(other))]
        argv += ["-netdev", f"hubport,id={name}-port{other},hubid={hub},netdev={name}-0.{other}"]
    return argv


def _root_argv(number: int, numa: int) -> list[str]:
    expander = f"pxb-pcie,id=root{number},bus_nr={FIRST_BUS + STRIDE * number},numa_node={numa},bus=pcie.0"
    port = f"pcie-root-port,id=port{number},bus=root{number},chassis={number + 1},io-reserve=0"
    return ["-device", f"{expander},addr={_FIRST_EXPANDER_SLOT + number:#x}", "-device", port]


def _device_argv(machine: Machine, shape: Shape) -> list[str]:
    """GPUs and NICs in turn, each below a root of its own on its NUMA node."""
    argv: list[str] = []
    number = 0
    for i in range(max(len(shape.nics), len(shape.gpus))):
        if i < len(shape.gpus):
            argv += [*_root_argv(number, shape.gpus[i]), "-device", f"edu,id=gpu{i},bus=port{number}"]
            number += 1
        if i < len(shape.nics):
            link = machine.network.rdma[i]
            argv += wire_argv(link.name, 1 + i, machine.index, machine.nodes)
            argv += [*_root_argv(number, shape.nics[i]), *_nic_argv(link, link.name, f"port{number}")]
            number += 1
    return argv


def qemu_argv(machine: Machine, shape: Shape) -> list[str]:
    name = machine.network.name
    command_line = f"console=ttyS0 lab.node={name} quiet mitigations=off net.ifnames=0 panic=-1"
    argv = ["qemu-system-x86_64", "-name", name, "-nodefaults", "-display", "none", "-no-user-config"]
    argv += [*_processor_argv(shape), "-kernel", str(machine.system / "vmlinuz")]
    argv += ["-initrd", str(machine.system / "first-stage.cpio"), "-append", command_line]
    argv += ["-serial", f"file:logs/{name}.console.log", "-qmp", f"unix:{name}.qmp,server=on,wait=off"]
    argv += ["-device", "virtio-rng-pci,bus=pcie.0,addr=0x2", *_disk_argv(machine), *_management_argv(machine)]
    argv += [
        *wire_argv("pod0", 0, machine.index, machine.nodes),
        *_nic_argv(machine.network.pod, "pod0", "pcie.0,addr=0x7"),
    ]
    return argv + _device_argv(machine, shape)
