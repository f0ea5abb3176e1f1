"""What `fishplate catalog` must show."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

Program = Callable[..., CompletedProcess[str]]

# name → (family, sub-family, vCPUs, constrained, features, accelerator, fabric, version, RDMA)
NAMES: dict[str, tuple[str, str, int, int | None, str, str, str, int | None, bool]] = {
    "Standard_ND96asr_v4": ("N", "D", 96, None, "asr", "", "", 4, True),
    "Standard_ND96amsr_A100_v4": ("N", "D", 96, None, "amsr", "A100", "", 4, True),
    "Standard_ND96isr_H100_v5": ("N", "D", 96, None, "isr", "H100", "", 5, True),
    "Standard_ND96is_H100_v5": ("N", "D", 96, None, "is", "H100", "", 5, False),
    "Standard_ND96isr_H200_v5": ("N", "D", 96, None, "isr", "H200", "", 5, True),
    "Standard_ND96isrf_H200_v5": ("N", "D", 96, None, "isrf", "H200", "", 5, True),
    "Standard_ND96isr_MI300X_v5": ("N", "D", 96, None, "isr", "MI300X", "", 5, True),
    "Standard_ND96is_MI300X_v5": ("N", "D", 96, None, "is", "MI300X", "", 5, False),
    "Standard_ND128isr_NDR_GB200_v6": ("N", "D", 128, None, "isr", "GB200", "NDR", 6, True),
    "Standard_ND128isr_GB300_v6": ("N", "D", 128, None, "isr", "GB300", "", 6, True),
    "Standard_ND128isrG5_GB300_v6": ("N", "D", 128, None, "isr", "GB300", "", 6, True),
    "Standard_ND40rs_v2": ("N", "D", 40, None, "rs", "", "", 2, True),
    "Standard_ND24rs": ("N", "D", 24, None, "rs", "", "", None, True),
    "Standard_ND24s": ("N", "D", 24, None, "s", "", "", None, False),
    "Standard_NC24rs_v3": ("N", "C", 24, None, "rs", "", "", 3, True),
    "Standard_NC24rs_v2": ("N", "C", 24, None, "rs", "", "", 2, True),
    "Standard_NC24r": ("N", "C", 24, None, "r", "", "", None, True),
    "Standard_NC24r_Promo": ("N", "C", 24, None, "r", "", "", None, True),
    "Standard_NC24ads_A100_v4": ("N", "C", 24, None, "ads", "A100", "", 4, False),
    "Standard_NC96ads_A100_v4": ("N", "C", 96, None, "ads", "A100", "", 4, False),
    "Standard_NC40ads_H100_v5": ("N", "C", 40, None, "ads", "H100", "", 5, False),
    "Standard_NC80adis_H100_v5": ("N", "C", 80, None, "adis", "H100", "", 5, False),
    "Standard_NCC40ads_H100_v5": ("N", "CC", 40, None, "ads", "H100", "", 5, False),
    "Standard_NV36ads_A10_v5": ("N", "V", 36, None, "ads", "A10", "", 5, False),
    "Standard_NG32ads_V620_v1": ("N", "G", 32, None, "ads", "V620", "", 1, False),
    "Standard_HB120rs_v2": ("H", "B", 120, None, "rs", "", "", 2, True),
    "Standard_HB120rs_v3": ("H", "B", 120, None, "rs", "", "", 3, True),
    "Standard_HB120-96rs_v3": ("H", "B", 120, 96, "rs", "", "", 3, True),
    "Standard_HB120-16rs_v3": ("H", "B", 120, 16, "rs", "", "", 3, True),
    "Standard_HB176rs_v4": ("H", "B", 176, None, "rs", "", "", 4, True),
    "Standard_HB176-144rs_v4": ("H", "B", 176, 144, "rs", "", "", 4, True),
    "Standard_HB368rs_v5": ("H", "B", 368, None, "rs", "", "", 5, True),
    "Standard_HB368-336rs_v5": ("H", "B", 368, 336, "rs", "", "", 5, True),
    "Standard_HX176rs": ("H", "X", 176, None, "rs", "", "", None, True),
    "Standard_HX176-24rs": ("H", "X", 176, 24, "rs", "", "", None, True),
    "Standard_HC44rs": ("H", "C", 44, None, "rs", "", "", None, True),
    "Standard_HC44-32rs": ("H", "C", 44, 32, "rs", "", "", None, True),
    "Standard_H16r": ("H", "", 16, None, "r", "", "", None, True),
    "Standard_H16mr": ("H", "", 16, None, "mr", "", "", None, True),
    "Standard_D4s_v5": ("D", "", 4, None, "s", "", "", 5, False),
    "Standard_DC4as_v5": ("D", "C", 4, None, "as", "", "", 5, False),
    "Standard_EC8ads_v5": ("E", "C", 8, None, "ads", "", "", 5, False),
    "Standard_E4-2ds_v4": ("E", "", 4, 2, "ds", "", "", 4, False),
    "Standard_M48ds_1_v3": ("M", "", 48, None, "ds", "", "", 3, False),
    "Standard_D2ps_v5": ("D", "", 2, None, "ps", "", "", 5, False),
    "Standard_L8as_v3": ("L", "", 8, None, "as", "", "", 3, False),
}


def parse(fishplate: Program, name: str) -> dict[str, object]:
    answer = fishplate("catalog", "--parse", name, "-o", "json")
    assert answer.returncode == 0, answer.stderr
    document: dict[str, object] = json.loads(answer.stdout)
    return document


@pytest.mark.parametrize("name", NAMES)
def test_size_names_are_taken_apart(fishplate: Program, name: str) -> None:
    document = parse(fishplate, name)
    family, sub_family, vcpus, constrained, features, accelerator, fabric, version, rdma = NAMES[name]
    assert document["name"] == name
    assert (document["family"], document["subFamily"]) == (family, sub_family)
    assert (document["vcpus"], document["constrainedVcpus"]) == (vcpus, constrained)
    assert document["features"] == list(features)
    assert (document["accelerator"], document["fabric"]) == (accelerator, fabric)
    assert (document["version"], document["rdma"]) == (version, rdma)
    parts = document["parts"]
    assert isinstance(parts, list)
    assert "".join(part["text"] for part in parts) == name
    assert all(part["meaning"] for part in parts)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("nd96isr_h100_v5", "Standard_ND96isr_H100_v5"),
        ("STANDARD_HB120RS_V3", "Standard_HB120rs_v3"),
        ("standard_nd128isr_ndr_gb200_v6", "Standard_ND128isr_NDR_GB200_v6"),
    ],
)
def test_spelling_does_not_matter(fishplate: Program, written: str, meant: str) -> None:
    assert parse(fishplate, written)["name"] == meant


def test_misprinted_name_is_never_silently_without_rdma(fishplate: Program) -> None:
    answer = fishplate("catalog", "--parse", "Standard_HB368_336rsv5", "-o", "json")
    if answer.returncode == 0:
        document = json.loads(answer.stdout)
        assert document["rdma"] is True
        assert document["warnings"]
    else:
        assert answer.returncode == 2


def test_what_is_no_size_name_is_refused(fishplate: Program) -> None:
    answer = fishplate("catalog", "--parse", "Standard_!!", "-o", "json")
    assert answer.returncode == 2
    assert "Traceback" not in answer.stderr


def test_catalogue_lists_every_rdma_series(fishplate: Program) -> None:
    answer = fishplate("catalog", "-o", "json")
    names = {size["name"] for size in json.loads(answer.stdout)["sizes"]}
    rdma = {name for name, expected in NAMES.items() if expected[-1]}
    assert rdma <= names


def test_one_size_tells_where_its_facts_come_from(fishplate: Program) -> None:
    answer = fishplate("catalog", "Standard_ND96isr_H100_v5")
    assert answer.returncode == 0
    assert "azhpc-images" in answer.stdout
    assert "AKSInfinibandSupport must be registered" in answer.stdout


def test_gb300_wants_the_feature_unregistered(fishplate: Program) -> None:
    document = json.loads(fishplate("catalog", "Standard_ND128isr_GB300_v6", "-o", "json").stdout)
    assert document["aks"]["infinibandFeature"] == "unregistered"
