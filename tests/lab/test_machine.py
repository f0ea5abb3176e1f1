"""The command line of a node's QEMU, from its shape."""

import itertools
import re
from pathlib import Path

import pytest

from fishplate.errors import UnknownNameError
from lab.machine import Machine, find_shape, qemu_argv, read_shapes, wire_argv
from lab.network import plan_network

SHAPES = sorted(read_shapes())


def _argv(shape: str, index: int = 0, nodes: int = 2) -> list[str]:
    machine = Machine(
        index=index,
        nodes=nodes,
        network=plan_network(index, nodes, len(find_shape(shape).nics)),
        system=Path("/system"),
        tools=Path("/tools.img"),
        payload=Path("/payload.img"),
        api_port=1,
        ssh_port=2,
        kubelet_port=3,
    )
    return qemu_argv(machine, find_shape(shape))


def _devices(argv: list[str]) -> list[dict[str, str]]:
    values = [argv[i + 1] for i, word in enumerate(argv) if word == "-device"]
    return [{"driver": v.split(",")[0], **dict(p.split("=", 1) for p in v.split(",")[1:])} for v in values]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_gpu_and_nic_has_a_pcie_root_of_its_own_on_its_numa_node(shape: str) -> None:
    devices, wanted = _devices(_argv(shape)), find_shape(shape)
    roots = {d["id"]: int(d["numa_node"]) for d in devices if d["driver"] == "pxb-pcie"}
    ports = {d["id"]: d["bus"] for d in devices if d["driver"] == "pcie-root-port"}
    gpus = [d["bus"] for d in devices if d["driver"] == "edu"]
    nics = [d["bus"] for d in devices if d["driver"] == "virtio-net-pci" and d["bus"] in ports]
    assert [roots[ports[b]] for b in gpus] == list(wanted.gpus)
    assert [roots[ports[b]] for b in nics] == list(wanted.nics)
    assert len({ports[b] for b in gpus + nics}) == len(roots) == len(gpus) + len(nics)


@pytest.mark.parametrize("shape", SHAPES)
def test_bus_numbers_leave_room_below_each_root_and_stay_below_256(shape: str) -> None:
    numbers = sorted(int(d["bus_nr"]) for d in _devices(_argv(shape)) if d["driver"] == "pxb-pcie")
    assert all(later - earlier >= 2 for earlier, later in itertools.pairwise(numbers))
    assert numbers[-1] + 1 < 256


@pytest.mark.parametrize("shape", SHAPES)
def test_no_two_devices_share_a_slot_of_the_first_root(shape: str) -> None:
    slots = [d.get("addr") for d in _devices(_argv(shape)) if d["bus"] == "pcie.0"]
    assert None not in slots
    assert len(set(slots)) == len(slots)
    assert all(int(str(slot), 16) < 0x1F for slot in slots)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_guest_reaches_the_api_server_and_its_peers_only(index: int) -> None:
    argv = _argv("gb300", index, 3)
    netdevs = [argv[i + 1] for i, word in enumerate(argv) if word == "-netdev"]
    users = [n for n in netdevs if n.startswith("user,")]
    assert len(users) == 1
    assert "restrict=on" in users[0]
    assert re.findall(r"guestfwd=[^,]*", users[0]) == [
        f"guestfwd=tcp:10.77.{index}.100:6443-cmd:socat - TCP:127.0.0.1:1"
    ]
    assert all(f.startswith("hostfwd=tcp:127.0.0.1:") for f in re.findall(r"hostfwd=[^,]*", users[0]))
    others = [n for n in netdevs if not n.startswith("user,")]
    assert all(n.startswith("hubport,") or "type=unix" in n for n in others)


def test_both_ends_of_a_wire_name_each_other() -> None:
    hub = [w for w in wire_argv("rdma0", 1, 0, 3) if w.startswith("dgram")]
    ends = [w for i in (1, 2) for w in wire_argv("rdma0", 1, i, 3) if w.startswith("dgram")]

    def paths(text: str) -> tuple[str, str]:
        found = dict(re.findall(r"(local|remote)\.path=([^,]*)", text))
        return found["local"], found["remote"]

    assert [paths(h) for h in hub] == [paths(e)[::-1] for e in ends]


def test_addresses_differ_between_nodes_and_rails_have_networks_of_their_own() -> None:
    networks = [plan_network(i, 3, 4) for i in range(3)]
    macs = [link.mac for n in networks for link in (n.mgmt, n.pod, *n.rdma)]
    assert len(set(macs)) == len(macs)
    rails = [{n.rdma[k].address.rsplit(".", 1)[0] for n in networks} for k in range(4)]
    assert all(len(r) == 1 for r in rails)
    assert len(set.union(*rails)) == 4


def test_unknown_shape_names_the_known_ones() -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_shape("gb200")
    assert set(caught.value.nearest) == set(SHAPES)
