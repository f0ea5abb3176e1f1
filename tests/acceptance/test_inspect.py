"""What `fishplate inspect` must show, one test for each promise."""

import json
import re
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from fishplate.hardware.catalog import Catalog

Program = Callable[..., CompletedProcess[str]]
GB300 = "Standard_ND128isr_GB300_v6"
LAID_OUT = (GB300, "Standard_ND96isr_MI300X_v5", "Standard_ND96isr_H100_v5", "Standard_HB120rs_v3")


def inspect_json(fishplate: Program, size: str) -> dict[str, Any]:
    answer = fishplate("inspect", "--size", size, "-o", "json")
    assert answer.returncode == 0, answer.stderr
    document: dict[str, Any] = json.loads(answer.stdout)
    return document


def inspect_slices(fishplate: Program, size: str) -> list[dict[str, Any]]:
    answer = fishplate("inspect", "--size", size, "-o", "slice")
    assert answer.returncode == 0, answer.stderr
    return list(yaml.safe_load_all(answer.stdout))


def words(document: dict[str, Any]) -> dict[tuple[str, str], str]:
    return {(relation["a"], relation["b"]): relation["relation"] for relation in document["relations"]}


def test_gb300_prints_the_published_matrix(fishplate: Program) -> None:
    answer = fishplate("inspect", "--size", GB300)
    assert answer.returncode == 0, answer.stderr
    rows = {
        line.split()[0]: line.split()[1:] for line in answer.stdout.splitlines() if re.match(r" ?GPU\d +(X|NV)", line)
    }
    # As `nvidia-smi topo -m` shows it on such a node: published by the AKS team with their DRANET measurements.
    assert rows == {
        "GPU0": ["X", "NV18", "NV18", "NV18", "NODE", "NODE", "SYS", "SYS"],
        "GPU1": ["NV18", "X", "NV18", "NV18", "NODE", "NODE", "SYS", "SYS"],
        "GPU2": ["NV18", "NV18", "X", "NV18", "SYS", "SYS", "NODE", "NODE"],
        "GPU3": ["NV18", "NV18", "NV18", "X", "SYS", "SYS", "NODE", "NODE"],
    }


def test_gb300_json_has_gpus_nics_and_relations(fishplate: Program) -> None:
    document = inspect_json(fishplate, GB300)
    assert [gpu["pci"]["address"] for gpu in document["gpus"]] == [
        "0008:06:00.0",
        "0009:06:00.0",
        "0018:06:00.0",
        "0019:06:00.0",
    ]
    assert [nic["pci"]["address"] for nic in document["nics"]] == [f"010{n}:00:00.0" for n in (1, 2, 3, 4)]
    relations = words(document)
    assert relations["GPU0", "GPU3"] == "NV18"
    for gpu in range(4):
        for nic in range(4):
            assert relations[f"GPU{gpu}", f"NIC{nic}"] == ("NODE" if gpu // 2 == nic // 2 else "SYS")


def test_gb300_slice_has_the_published_devices_and_attributes(fishplate: Program) -> None:
    (slice_,) = inspect_slices(fishplate, GB300)
    assert (slice_["apiVersion"], slice_["kind"]) == ("resource.k8s.io/v1", "ResourceSlice")
    assert slice_["spec"]["driver"] == "dra.net"
    devices = slice_["spec"]["devices"]
    assert [device["name"] for device in devices] == [f"pci-010{n}-00-00-0" for n in (1, 2, 3, 4)]
    attributes = [device["attributes"] for device in devices]
    assert [a["dra.net/rdmaDevice"] for a in attributes] == [{"string": f"mlx5_{n}"} for n in range(4)]
    assert [a["dra.net/numaNode"] for a in attributes] == [{"int": n} for n in (0, 0, 1, 1)]
    assert [a["dra.net/rdma"] for a in attributes] == [{"bool": True}] * 4
    # What aligns a NIC with either vendor's GPU by one template.
    for a in attributes:
        assert a["resource.kubernetes.io/numaNode"] == a["gpu.amd.com/numaNode"] == a["dra.net/numaNode"]
        assert a["resource.kubernetes.io/pciBusID"] == a["dra.net/pciAddress"]
        assert a["resource.kubernetes.io/pcieRoot"]["string"] == f"pci{a['dra.net/pciAddress']['string'][:4]}:00"


def test_slices_of_every_size_with_a_layout_keep_the_limits_of_the_api(fishplate: Program, catalog: Catalog) -> None:
    laid_out = [size.name for size in catalog.rdma_sizes() if size.layout and not size.constrained_from]
    assert len(laid_out) >= 12
    for size in laid_out:
        for slice_ in inspect_slices(fishplate, size):
            assert_within_limits(slice_)


def assert_within_limits(slice_: dict[str, Any]) -> None:
    """The limits of resource.k8s.io/v1, written down once more here: the code's own constants would prove nothing."""
    spec = slice_["spec"]
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", slice_["metadata"]["name"])
    assert len(slice_["metadata"]["name"]) <= 253
    assert spec["pool"]["resourceSliceCount"] >= 1
    assert len(spec["devices"]) <= 128
    names = [device["name"] for device in spec["devices"]]
    assert len(set(names)) == len(names)
    for device in spec["devices"]:
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", device["name"])
        assert len(device["attributes"]) <= 32
        assert list(device["attributes"]) == sorted(device["attributes"])
        for name, value in device["attributes"].items():
            domain, _, key = name.partition("/")
            assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", domain)
            assert len(domain) <= 63
            assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,31}", key)
            assert len(value) == 1
            ((kind, content),) = value.items()
            assert type(content) is {"int": int, "bool": bool, "string": str}[kind]
            assert kind != "string" or len(str(content).encode()) <= 64


def test_mi300x_has_eight_and_eight_with_the_first_four_nics_on_numa_0(fishplate: Program) -> None:
    document = inspect_json(fishplate, "Standard_ND96isr_MI300X_v5")
    assert len(document["gpus"]) == len(document["nics"]) == 8
    numa = {nic["pci"]["address"]: nic["pci"]["numaNode"] for nic in document["nics"]}
    assert numa == {f"010{n}:00:00.0": 0 if n <= 4 else 1 for n in range(1, 9)}
    relations = words(document)
    assert relations["GPU0", "GPU7"] == "XGMI"
    (slice_,) = inspect_slices(fishplate, "Standard_ND96isr_MI300X_v5")
    assert [device["name"] for device in slice_["spec"]["devices"]] == [f"pci-010{n}-00-00-0" for n in range(1, 9)]


def test_h100_shows_the_pairs_of_the_published_topology_file(fishplate: Program) -> None:
    document = inspect_json(fishplate, "Standard_ND96isr_H100_v5")
    pairs = {nic["pci"]["address"][:4]: nic["pairedGpu"][:4] for nic in document["nics"]}
    assert pairs == {
        "0101": "0001",
        "0102": "0002",
        "0103": "0003",
        "0104": "0008",
        "0105": "0009",
        "0106": "000a",
        "0107": "000b",
        "0108": "000c",
    }
    assert {nic["pci"]["numaNode"] for nic in document["nics"][:4]} == {0}
    assert {nic["pci"]["numaNode"] for nic in document["nics"][4:]} == {1}


def test_hb120rs_v3_has_no_gpu_and_one_nic(fishplate: Program) -> None:
    document = inspect_json(fishplate, "Standard_HB120rs_v3")
    assert document["gpus"] == []
    assert [nic["pci"]["address"] for nic in document["nics"]] == ["0101:00:00.0"]
    table = fishplate("inspect", "--size", "Standard_HB120rs_v3")
    assert "GPU" not in table.stdout
    assert "mlx5_0" in table.stdout


def test_inspect_without_arguments_works_on_this_machine(fishplate: Program) -> None:
    table = fishplate("inspect")
    document = fishplate("inspect", "-o", "json")
    assert (table.returncode, document.returncode) == (0, 0), table.stderr + document.stderr
    nics = json.loads(document.stdout)["nics"]
    assert ("No RDMA device found" in table.stdout) == (not nics)


@pytest.mark.parametrize("size", LAID_OUT)
def test_yaml_says_the_same_as_json(fishplate: Program, size: str) -> None:
    answer = fishplate("inspect", "--size", size, "-o", "yaml")
    assert yaml.safe_load(answer.stdout) == inspect_json(fishplate, size)
