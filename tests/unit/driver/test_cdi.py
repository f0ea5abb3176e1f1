import json
from pathlib import Path

import pytest

from fishplate.driver.cdi import SpecDirectory, claim_of, device_id, spec_of
from fishplate.driver.records import Claim, Held
from fishplate.errors import OutsideError
from fishplate.topology.inventory import CharDevice

UID = "8f3c2d1e-0000-4000-8000-000000000001"


def held(number: int, mode: int = 0o666) -> Held:
    node = CharDevice(path=f"/dev/infiniband/uverbs{number}", kind="uverbs", major=231, minor=192 + number, mode=mode)
    return Held(
        request="nic/first", device=f"pci-010{number + 1}-00-00-0", pool="n", rdma=(f"mlx5_{number}",), nodes=(node,)
    )


def claim(*, nccl: bool = False) -> Claim:
    return Claim(uid=UID, namespace="ns", name="c", nccl=nccl, held=(held(0), held(1, 0o600)))


def test_each_device_has_its_own_entry_with_the_hosts_numbers_and_mode() -> None:
    spec = spec_of("dra.net", claim())
    assert spec.kind == "k8s.dra.net/claim"
    assert [device.name for device in spec.devices] == [
        f"{UID}_nic.first_pci-0101-00-00-0",
        f"{UID}_nic.first_pci-0102-00-00-0",
    ]
    second = spec.devices[1].container_edits.device_nodes[0]
    seen = (second.path, second.type, second.major, second.minor, second.file_mode)
    assert seen == ("/dev/infiniband/uverbs1", "c", 231, 193, 0o600)


def test_the_id_leads_back_to_the_claim_and_only_ours_do() -> None:
    one = claim()
    name = device_id("dra.net", one, one.held[0])
    assert claim_of("dra.net", name) == UID
    assert claim_of("other.net", name) is None
    assert claim_of("dra.net", "nvidia.com/gpu=all") is None


def test_nccl_is_told_exact_names_when_one_request_holds_all() -> None:
    edits = [device.container_edits.env for device in spec_of("dra.net", claim(nccl=True)).devices]
    assert edits == [("NCCL_IB_HCA==mlx5_0,mlx5_1",)] * 2
    assert spec_of("dra.net", claim()).devices[0].container_edits.env == ()


def test_the_file_is_whole_json_that_the_runtime_may_read(tmp_path: Path) -> None:
    directory = SpecDirectory(str(tmp_path / "cdi"), "dra.net")
    directory.write(claim())
    (path,) = (tmp_path / "cdi").iterdir()
    assert path.name == f"k8s.dra.net-claim_{UID}.json"
    assert json.loads(path.read_text())["cdiVersion"] == "0.5.0"
    assert path.stat().st_mode & 0o777 == 0o644
    assert directory.claims() == {UID}


def test_the_same_content_is_not_written_again(tmp_path: Path) -> None:
    directory = SpecDirectory(str(tmp_path), "dra.net")
    directory.write(claim())
    (path,) = tmp_path.iterdir()
    before = path.stat()
    directory.write(claim())
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    directory.write(claim(nccl=True))
    assert "NCCL_IB_HCA" in path.read_text()


def test_removing_twice_is_fine_and_other_files_stay(tmp_path: Path) -> None:
    other = tmp_path / "nvidia.json"
    other.write_text("{}")
    directory = SpecDirectory(str(tmp_path), "dra.net")
    directory.write(claim())
    directory.remove(UID)
    directory.remove(UID)
    assert list(tmp_path.iterdir()) == [other]


def test_half_written_files_are_cleared(tmp_path: Path) -> None:
    scratch = tmp_path / f".k8s.dra.net-claim_{UID}.json.tmp"
    scratch.write_text("{")
    SpecDirectory(str(tmp_path), "dra.net").clear_remains()
    assert not scratch.exists()


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(OutsideError, match="CDI spec cannot be written"):
        SpecDirectory(str(blocked), "dra.net").write(claim())
