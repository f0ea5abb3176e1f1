import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishplate.errors import UnknownNameError
from fishplate.hardware.size_name import load_grammar, parse_size_name

# name as written | canonical | family+sub | vCPUs | constrained | features | accelerator | fabric | memory | version
REGULAR = """
Standard_ND96asr_v4              | =                            | N D  | 96  |     | asr  |        |     |    | 4
Standard_ND96amsr_A100_v4        | =                            | N D  | 96  |     | amsr | A100   |     |    | 4
Standard_ND96isr_H100_v5         | =                            | N D  | 96  |     | isr  | H100   |     |    | 5
standard_nd96ISR_h100_V5         | Standard_ND96isr_H100_v5     | N D  | 96  |     | isr  | H100   |     |    | 5
ND96isr_H200_v5                  | Standard_ND96isr_H200_v5     | N D  | 96  |     | isr  | H200   |     |    | 5
Standard_ND96isrf_H200_v5        | =                            | N D  | 96  |     | isrf | H200   |     |    | 5
Standard_ND96isr_MI300X_v5       | =                            | N D  | 96  |     | isr  | MI300X |     |    | 5
nd96isr_mi300x_v5                | Standard_ND96isr_MI300X_v5   | N D  | 96  |     | isr  | MI300X |     |    | 5
Standard_ND128isr_NDR_GB200_v6   | =                            | N D  | 128 |     | isr  | GB200  | NDR |    | 6
Standard_ND128isr_GB300_v6       | =                            | N D  | 128 |     | isr  | GB300  |     |    | 6
Standard_ND40rs_v2               | =                            | N D  | 40  |     | rs   |        |     |    | 2
Standard_ND24rs                  | =                            | N D  | 24  |     | rs   |        |     |    |
Standard_NC24rs_v3               | =                            | N C  | 24  |     | rs   |        |     |    | 3
Standard_NC24r                   | =                            | N C  | 24  |     | r    |        |     |    |
Standard_H16mr                   | =                            | H    | 16  |     | mr   |        |     |    |
Standard_HB120rs_v2              | =                            | H B  | 120 |     | rs   |        |     |    | 2
Standard_HB120-96rs_v3           | =                            | H B  | 120 | 96  | rs   |        |     |    | 3
hb120-16RS_v3                    | Standard_HB120-16rs_v3       | H B  | 120 | 16  | rs   |        |     |    | 3
Standard_HB176-144rs_v4          | =                            | H B  | 176 | 144 | rs   |        |     |    | 4
Standard_HB368rs_v5              | =                            | H B  | 368 |     | rs   |        |     |    | 5
Standard_HB368-48rs_v5           | =                            | H B  | 368 | 48  | rs   |        |     |    | 5
Standard_HX176rs                 | =                            | H X  | 176 |     | rs   |        |     |    |
Standard_HX176-24rs              | =                            | H X  | 176 | 24  | rs   |        |     |    |
HC44-32rs                        | Standard_HC44-32rs           | H C  | 44  | 32  | rs   |        |     |    |
Standard_ND96is_H100_v5          | =                            | N D  | 96  |     | is   | H100   |     |    | 5
Standard_NC24ads_A100_v4         | =                            | N C  | 24  |     | ads  | A100   |     |    | 4
Standard_NC80adis_H100_v5        | =                            | N C  | 80  |     | adis | H100   |     |    | 5
Standard_NCC40ads_H100_v5        | =                            | N CC | 40  |     | ads  | H100   |     |    | 5
Standard_NC4as_T4_v3             | =                            | N C  | 4   |     | as   | T4     |     |    | 3
Standard_NV36ads_A10_v5          | =                            | N V  | 36  |     | ads  | A10    |     |    | 5
Standard_NV28adms_V710_v5        | =                            | N V  | 28  |     | adms | V710   |     |    | 5
Standard_NG32ads_V620_v1         | =                            | N G  | 32  |     | ads  | V620   |     |    | 1
Standard_DC48ads_v5              | =                            | D C  | 48  |     | ads  |        |     |    | 5
Standard_EC96ieds_v5             | =                            | E C  | 96  |     | ieds |        |     |    | 5
Standard_M48ds_1_v3              | =                            | M    | 48  |     | ds   |        |     | 1  | 3
Standard_M832ids_16_v3           | =                            | M    | 832 |     | ids  |        |     | 16 | 3
Standard_M416-208s_v2            | =                            | M    | 416 | 208 | s    |        |     |    | 2
Standard_E96-24ads_v5            | =                            | E    | 96  | 24  | ads  |        |     |    | 5
Standard_D4pds_v6                | =                            | D    | 4   |     | pds  |        |     |    | 6
Standard_FX48mds                 | =                            | F X  | 48  |     | mds  |        |     |    |
Standard_L80as_v3                | =                            | L    | 80  |     | as   |        |     |    | 3
Standard_B2ats_v2                | =                            | B    | 2   |     | ats  |        |     |    | 2
Standard_DS3_v2                  | =                            | D S  | 3   |     |      |        |     |    | 2
"""
ROWS = [[cell.strip() for cell in line.split("|")] for line in REGULAR.strip().splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_name_is_taken_apart(row: list[str]) -> None:
    written, canonical, family, vcpus, constrained, features, accelerator, fabric, memory, version = row
    parsed = parse_size_name(written)
    assert parsed.name == (written if canonical == "=" else canonical)
    assert [parsed.family, *([parsed.sub_family] if parsed.sub_family else [])] == family.split()
    assert str(parsed.vcpus) == vcpus
    assert parsed.constrained_vcpus == (int(constrained) if constrained else None)
    assert "".join(parsed.features) == features
    assert (parsed.accelerator, parsed.fabric, parsed.memory) == (accelerator, fabric, memory)
    assert parsed.version == (int(version) if version else None)
    assert parsed.rdma_by_name == ("r" in features)
    assert not [warning for warning in parsed.warnings if "Arm" not in warning]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_explanation_covers_every_character_and_knows_every_part(row: list[str]) -> None:
    parsed = parse_size_name(row[0])
    parts = parsed.explain()
    assert "".join(text for text, _ in parts) == parsed.name
    assert all(meaning and "does not know" not in meaning for _, meaning in parts)


def test_a_generation_inside_the_features_is_not_a_feature() -> None:
    parsed = parse_size_name("nd128isrg5_gb300_v6")
    assert parsed.name == "Standard_ND128isrG5_GB300_v6"
    assert (parsed.features, parsed.generation_token) == (("i", "s", "r"), "G5")


@pytest.mark.parametrize("name", ["Standard_NC24r_Promo", "Standard_D11_v2_Promo", "Standard_H16mr_Promo"])
def test_promo_is_kept_apart_from_version_and_accelerator(name: str) -> None:
    parsed = parse_size_name(name.lower())
    assert (parsed.name, parsed.promo, parsed.accelerator) == (name, True, "")


@pytest.mark.parametrize("prefix", ["Basic", "Internal", "Experimental"])
def test_other_prefixes_are_kept(prefix: str) -> None:
    assert parse_size_name(f"{prefix.lower()}_a3").name == f"{prefix}_A3"


def test_grace_sizes_are_said_to_be_arm_although_the_name_lacks_p() -> None:
    for name in ("Standard_ND128isr_GB300_v6", "Standard_ND128isr_NDR_GB200_v6"):
        assert any("Arm" in warning for warning in parse_size_name(name).warnings)
    assert parse_size_name("Standard_ND96isr_H100_v5").warnings == ()


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("Standard_HB368_336rsv5", "Standard_HB368-336rs_v5"),
        ("Standard_HB368-336rsv5", "Standard_HB368-336rs_v5"),
        ("HB120rsv3", "Standard_HB120rs_v3"),
        ("nd96isr-h100-v5", "Standard_ND96isr_H100_v5"),
        ("ND96isr H100 v5", "Standard_ND96isr_H100_v5"),
    ],
)
def test_a_plain_typo_is_repaired_with_a_warning_and_keeps_its_r(typo: str, meant: str) -> None:
    parsed = parse_size_name(typo)
    assert (parsed.name, parsed.rdma_by_name) == (meant, True)
    assert any(meant in warning for warning in parsed.warnings)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "foo",
        "Standard_",
        "Standard_HB120_rs_v3",
        "Standard_HB120-96-rs_v3",
        "Standard_HB120_rsv3",
        "Standard_ND96_H100isr_v5",
        "ND96isrH100v5",
        "Standard_ND96isr_H100_A100_v5",
        "Standard__ND96isr_v5",
        "p5.48xlarge",
    ],
)
def test_what_cannot_be_read_is_refused_with_the_form_of_a_name(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        parse_size_name(name)
    assert "Standard_ND96isr_H100_v5" in caught.value.remedy


def test_unknown_parts_are_kept_and_warned_about() -> None:
    parsed = parse_size_name("Standard_ND96iksr_X900_v9")
    assert parsed.rdma_by_name
    assert parsed.accelerator == "X900"
    assert {"unknown feature 'k'", "unknown accelerator X900"} <= set(parsed.warnings)


@pytest.mark.parametrize("accelerator", ["R100", "VR200", "MI355X", "H300"])
def test_an_accelerator_not_yet_known_is_read_as_one(accelerator: str) -> None:
    parsed = parse_size_name(f"Standard_ND96isr_{accelerator}_v7")
    assert (parsed.accelerator, parsed.rdma_by_name) == (accelerator, True)


def test_a_constrained_count_must_be_below_the_full_one() -> None:
    assert any("not below" in warning for warning in parse_size_name("Standard_HB120-240rs_v3").warnings)


def test_old_series_number_their_sizes() -> None:
    parsed = parse_size_name("Standard_DS3_v2")
    assert parsed.is_ordinal
    assert ("3", "number 3 of an old series, not a vCPU count") in parsed.explain()
    assert not parse_size_name("Standard_D4s_v5").is_ordinal


def test_every_feature_letter_is_one_small_letter() -> None:
    assert all(len(letter) == 1 and letter.islower() for letter in load_grammar().features)


PIECES = [
    "Standard_",
    "nd",
    "HB",
    "96",
    "-24",
    "isr",
    "rs",
    "G5",
    "_",
    "_NDR",
    "_H100",
    "_gb300",
    "_1",
    "_v5",
    "v5",
    "_promo",
    " ",
]


@given(st.one_of(st.text(max_size=30), st.lists(st.sampled_from(PIECES), max_size=8).map("".join)))
def test_any_text_is_read_or_refused_and_a_canonical_name_reads_as_itself(text: str) -> None:
    with contextlib.suppress(UnknownNameError):
        parsed = parse_size_name(text)
        again = parse_size_name(parsed.name)
        assert again.name == parsed.name
        assert again.features == parsed.features
        # No r of the text is lost: it is a feature, or stands in a part that may hold one.
        behind = parsed.name.partition("_")[2]
        assert behind.lower().count("r") == text.strip().lower().removeprefix("standard_").count("r")
