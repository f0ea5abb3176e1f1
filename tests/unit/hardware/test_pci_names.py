import re

import pytest

from fishplate.hardware.pci_names import load_vendors, pci_names


@pytest.mark.parametrize(
    ("vendor", "device", "name"),
    [
        ("15b3", "101e", "ConnectX Family mlx5Gen Virtual Function"),
        ("15b3", "101c", "MT28908 Family [ConnectX-6 Virtual Function]"),
        ("15b3", "1018", "MT27800 Family [ConnectX-5 Virtual Function]"),
        ("15b3", "1021", "MT2910 Family [ConnectX-7]"),
        ("15b3", "1023", "CX8 Family [ConnectX-8]"),
        ("10de", "2330", "GH100 [H100 SXM5 80GB]"),
        ("1002", "74b5", "Aqua Vanjaram [Instinct MI300X VF]"),
        ("1d0f", "efa1", "Elastic Fabric Adapter (EFA)"),
    ],
)
def test_a_device_has_the_name_that_pci_ids_gives_it(vendor: str, device: str, name: str) -> None:
    assert pci_names(vendor, device)[1] == name


def test_identifiers_may_be_written_as_sysfs_writes_them() -> None:
    assert pci_names("0x15b3\n", "0x101E") == pci_names("15b3", "101e")


def test_an_unknown_device_still_has_a_vendor() -> None:
    assert pci_names("10de", "ffff") == ("NVIDIA Corporation", None)


def test_an_unknown_vendor_has_no_names() -> None:
    assert pci_names("dead", "beef") == (None, None)


def test_every_identifier_is_four_small_hex_digits_and_every_name_is_said() -> None:
    for vendor, known in load_vendors().items():
        for identifier, name in [(vendor, known.name), *known.devices.items()]:
            assert re.fullmatch(r"[0-9a-f]{4}", identifier), identifier
            assert name == name.strip() != ""
    assert sum(len(known.devices) for known in load_vendors().values()) >= 100
