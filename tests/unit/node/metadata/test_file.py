import asyncio
import os
from pathlib import Path

import pytest

from fishplate.errors import DocumentError, OutsideError
from fishplate.node.metadata.facts import DeviceId, NodeFacts
from fishplate.node.metadata.file import FileProvider, parse_facts

TEXT = """
fabric: island-3
nvlinkDomain: rack-17
node:
  site.example.com/island: island-3
  site.example.com/spine: 4
devices:
  "0000:1A:00.0": {site.example.com/leaf: sw-12, site.example.com/rail: true}
  "00-11-AA-FF-BB-22": {site.example.com/leaf: sw-9}
  eth7: {site.example.com/leaf: sw-8}
"""


def read(provider: FileProvider) -> NodeFacts:
    return asyncio.run(provider.attributes(()))


def problems(text: str) -> str:
    with pytest.raises(DocumentError) as caught:
        parse_facts(text, "facts.yaml")
    return str(caught.value)


def test_devices_are_found_by_address_mac_and_name() -> None:
    facts = parse_facts(TEXT, "facts.yaml")
    assert (facts.fabric, facts.nvlink_domain) == ("island-3", "rack-17")
    node = {"site.example.com/island": "island-3", "site.example.com/spine": 4}
    by_address = facts.of_device(DeviceId(pci_address="0000:1a:00.0", name="eth7"))
    assert by_address == node | {"site.example.com/leaf": "sw-12", "site.example.com/rail": True}
    assert facts.of_device(DeviceId(mac="00:11:aa:ff:bb:22")) == node | {"site.example.com/leaf": "sw-9"}
    assert facts.of_device(DeviceId(name="eth7")) == node | {"site.example.com/leaf": "sw-8"}
    assert facts.of_device(DeviceId(name="eth8")) == node


def test_json_will_do_and_an_empty_file_says_nothing() -> None:
    assert parse_facts('{"node": {"a.example/b": 1}}', "f").node == {"a.example/b": 1}
    assert not parse_facts("# nothing yet\n", "f").node


def test_every_mistake_is_told_with_its_line() -> None:
    text = (
        "node:\n  island: x\n  dra.net/rdma: true\n  resource.kubernetes.io/numaNode: 0\n  a.example/long: "
        + "x" * 65
        + "\n  a.example/big: 9223372036854775808\n  A.example/x: 1\n  a.example/9: 1\n"
    )
    said = problems(text)
    for expected in (
        "line 2: node.island: the name has no domain; write it as example.com/name",
        "line 3: node.dra.net/rdma: the name is measured on the node itself and cannot be set",
        "line 4: node.resource.kubernetes.io/numaNode: the name is measured",
        "line 5: node.a.example/long: the value is longer than 64 bytes",
        "line 6: node.a.example/big: the value is no 64-bit integer",
        "line 7: node.A.example/x: the name has a domain that is no DNS name",
        "line 8: node.a.example/9: the name does not end in an identifier",
    ):
        assert expected in said


def test_unknown_fields_and_types_are_refused() -> None:
    assert "did you mean fabric?" in problems("fabrik: x\n")
    assert "node.a.example/b" in problems("node: {a.example/b: [1]}\n")
    assert "more than one document" in problems("fabric: a\n---\nfabric: b\n")
    assert "not YAML" in problems("node: {\n")


def test_one_device_under_two_spellings_is_refused() -> None:
    said = problems('devices:\n  "0000:1A:00.0": {}\n  "0000:1a:00.0": {}\n')
    assert "line 3: devices.0000:1a:00.0: the same device as '0000:1A:00.0'" in said


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "facts.yaml"
    path.write_text("fabric: a\n")
    provider = FileProvider(str(path))
    first = read(provider)
    assert (first.fabric, read(provider) is first) == ("a", True)
    other = tmp_path / "new.yaml"
    other.write_text("fabric: b\n")
    os.replace(other, path)  # noqa: PTH105
    assert read(provider).fabric == "b"


def test_a_file_that_goes_bad_or_away_is_an_outside_error(tmp_path: Path) -> None:
    path = tmp_path / "facts.yaml"
    path.write_text("fabrik: a\n")
    provider = FileProvider(str(path))
    with pytest.raises(OutsideError, match=r"facts\.yaml:1: one problem"):
        read(provider)
    path.unlink()
    with pytest.raises(OutsideError, match="No such file"):
        read(provider)
    path.write_text("fabric: a\n")
    assert read(provider).fabric == "a"


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "facts.yaml"
    path.write_text("#" * (1 << 20) + "\n")
    with pytest.raises(OutsideError, match="larger than"):
        read(FileProvider(str(path)))
