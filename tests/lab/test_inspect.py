"""`fishplate inspect` on a real kernel, against what the kernel's own tools say; its slices at the real API server."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest
import yaml

from fishplate.hardware.catalog import load_catalog
from lab.bare import SLICES, create_all
from lab.guest import Node
from lab.machine import find_shape
from lab.session import Lab

pytestmark = pytest.mark.lab

RAILS = len(find_shape("gb300").nics)


@pytest.fixture(params=[0, 1], ids=["node-0", "node-1"])
def node(two_nodes: Lab, request: pytest.FixtureRequest) -> Node:
    number = request.param
    assert isinstance(number, int)
    return two_nodes.node(number)


def inspect(node: Node) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(node.run("fishplate inspect -o json").stdout)
    return document


def rdma_devices(document: dict[str, Any]) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """RDMA device → itself and its NIC."""
    return {device["name"]: (device, nic) for nic in document["nics"] for device in nic["rdma"]}


def test_inspect_finds_no_problem_on_a_real_kernel(node: Node) -> None:
    document = inspect(node)
    assert document["problems"] == []
    assert len(document["nics"]) == RAILS
    assert [one["id"] for one in document["numaNodes"]] == [0, 1]


def test_inspect_agrees_with_rdma_link(node: Node) -> None:
    devices = rdma_devices(inspect(node))
    links = json.loads(node.run("rdma -j link").stdout)
    assert len(links) == len(devices) == RAILS
    for link in links:
        device, nic = devices[link["ifname"]]
        port = next(port for port in device["ports"] if port["number"] == link["port"])
        assert port["state"] == link["state"]
        assert port["physState"].lower() == link["physical_state"].replace("_", "").lower()
        netdev = next(netdev for netdev in nic["netdevs"] if netdev["name"] == link["netdev"])
        assert netdev["ifindex"] == link["netdev_index"]
        assert device["netdevs"] == [link["netdev"]]
        assert device["soft"] is True


def test_inspect_agrees_with_lspci_on_the_tree(node: Node) -> None:
    tree = node.run("lspci -t").stdout
    for nic in inspect(node)["nics"]:
        pci = nic["pci"]
        root = pci["root"].removeprefix("pci")
        (bridge,) = pci["bridges"]
        _, bus, place = pci["address"].split(":")
        assert bridge.startswith(root)
        assert re.search(rf"\[{root}\]-+{re.escape(bridge.split(':')[2])}-\[{bus}\]-+{re.escape(place)}", tree), tree


def test_inspect_agrees_with_lspci_on_every_function(node: Node) -> None:
    """Vendor, device, class and driver of every network function, RDMA or not."""
    document = inspect(node)
    ours = {
        one["pci"]["address"]: (
            one["pci"]["classCode"][:4],
            one["pci"]["vendor"],
            one["pci"]["device"],
            one["pci"]["driver"],
        )
        for one in (*document["nics"], *document["otherInterfaces"])
        if "pci" in one
    }
    theirs = {}
    for record in node.run("lspci -D -n -k -vmm").stdout.strip().split("\n\n"):
        facts = dict(line.split(":\t", 1) for line in record.splitlines())
        if facts["Class"].startswith("02"):
            theirs[facts["Slot"]] = (facts["Class"], facts["Vendor"], facts["Device"], facts["Driver"])
    assert ours == theirs


def test_inspect_agrees_with_ibv_devinfo(node: Node) -> None:
    devices = rdma_devices(inspect(node))
    seen = set()
    for block in node.run("ibv_devinfo").stdout.split("hca_id:")[1:]:
        name = block.split()[0]
        facts = dict(re.findall(r"^\s*(\w+):\s+(\S+)", block, re.MULTILINE))
        device, _ = devices[name]
        (port,) = device["ports"]
        assert device["nodeGuid"] == facts["node_guid"]
        assert device["sysImageGuid"] == facts["sys_image_guid"]
        assert len(device["ports"]) == int(facts["phys_port_cnt"])
        assert f"PORT_{port['state']}" == facts["state"]
        assert port["linkLayer"] == facts["link_layer"]
        assert (port.get("lid", 0), port.get("smLid", 0)) == (int(facts["port_lid"]), int(facts["sm_lid"]))
        seen.add(name)
    assert seen == set(devices)


def test_inspect_agrees_with_the_kernels_numa_files(node: Node) -> None:
    kernel = {
        line.split("/")[0]: int(line.rpartition(":")[2])
        for line in node.run("cd /sys/bus/pci/devices && grep -H . */numa_node").stdout.splitlines()
    }
    nics = inspect(node)["nics"]
    assert {nic["pci"]["address"]: nic["pci"]["numaNode"] for nic in nics} == {
        nic["pci"]["address"]: kernel[nic["pci"]["address"]] for nic in nics
    }
    assert {nic["pci"]["numaSource"] for nic in nics} == {"kernel"}
    assert [nic["pci"]["numaNode"] for nic in nics] == list(find_shape("gb300").nics)
    assert [nic["rail"] for nic in nics] == list(range(RAILS))


def test_inspect_agrees_with_the_device_nodes(node: Node) -> None:
    for device, _ in rdma_devices(inspect(node)).values():
        for char in device["charDevices"]:
            said = node.run(f"stat -c '%t %T %a' {char['path']}").stdout.split()
            assert [int(said[0], 16), int(said[1], 16), int(said[2], 8)] == [char["major"], char["minor"], char["mode"]]


def test_the_nodes_own_interfaces_are_not_offered(node: Node) -> None:
    """What the guest needs to live carries its default route, or is no business of pods."""
    document = inspect(node)
    routes = json.loads(node.run("ip -j route show default").stdout)
    uplinks = {route["dev"] for route in routes}
    for one in (*document["nics"], *document["otherInterfaces"]):
        if {netdev["name"] for netdev in one["netdevs"]} & uplinks:
            assert "default route" in one["excluded"]


def laid_out() -> list[str]:
    return [size.name for size in load_catalog().rdma_sizes() if size.layout]


def test_the_api_server_takes_the_slices_of_every_size_and_gives_them_back_unchanged(control_plane: Lab) -> None:
    """With strict field validation, so that nothing is dropped in silence."""
    sizes = laid_out()
    slices: list[dict[str, Any]] = []
    for size in sizes:
        argv = [sys.executable, "-m", "fishplate", "inspect", "--size", size, "-o", "slice"]
        slices += yaml.safe_load_all(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    assert len(slices) >= len(sizes) >= 30
    created: list[dict[str, Any]] = list(create_all(control_plane.api, SLICES, slices))
    try:
        for sent, answered in zip(slices, created, strict=True):
            stored: dict[str, Any] = control_plane.api.request("GET", f"{SLICES}/{sent['metadata']['name']}")
            assert answered["spec"] == stored["spec"] == sent["spec"]
    finally:
        for sent in slices:
            control_plane.api.request("DELETE", f"{SLICES}/{sent['metadata']['name']}")


def test_the_api_server_takes_the_slice_of_a_real_node(two_nodes: Lab, node: Node) -> None:
    (sent,) = yaml.safe_load_all(node.run("fishplate inspect -o slice").stdout)
    assert sent["spec"]["nodeName"] == node.name
    (answered,) = create_all(two_nodes.api, SLICES, [sent])
    two_nodes.api.request("DELETE", f"{SLICES}/{sent['metadata']['name']}")
    spec: Any = answered["spec"]
    assert spec == sent["spec"]
    offered = [d["attributes"] for d in spec["devices"] if d["attributes"]["dra.net/rdma"]["bool"]]
    assert [a["dra.net/rdmaDevice"]["string"] for a in offered] == [f"rxe_rdma{i}" for i in range(RAILS)]
