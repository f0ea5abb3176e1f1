import os
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishplate.driver.feature_file import FeatureFile, label_value, plan_labels, render_features
from fishplate.errors import OutsideError
from fishplate.node.metadata.facts import FactsState, NodeFacts

ANSWERED = FactsState(provider="azure", answered=True)
FACTS = NodeFacts(fabric="c6c749e8-a38b-470e-8c94-2a7d00001bf0", nvlink_domain="icb-7", state=ANSWERED)
LABELS = (
    "feature.node.kubernetes.io/fishplate.fabric=c6c749e8-a38b-470e-8c94-2a7d00001bf0\n"
    "feature.node.kubernetes.io/fishplate.nvlink-domain=icb-7\n"
)


def test_fabric_and_nvlink_domain_become_labels(tmp_path: Path) -> None:
    file = FeatureFile(tmp_path / "fishplate")
    assert file.update(FACTS)
    assert file.path.read_text().partition("\n")[2] == LABELS
    assert file.path.read_text().startswith("#")
    assert stat.S_IMODE(file.path.stat().st_mode) & 0o444 == 0o444


def test_what_is_the_same_is_not_written_again(tmp_path: Path) -> None:
    file = FeatureFile(tmp_path / "fishplate")
    file.update(FACTS)
    before = file.path.stat()
    assert not FeatureFile(file.path).update(FACTS)
    assert file.path.stat().st_ino == before.st_ino
    assert file.update(msgspec.structs.replace(FACTS, nvlink_domain="icb-8"))
    assert file.path.stat().st_ino != before.st_ino  # a new file in its place, never a half-written one
    assert os.listdir(tmp_path) == ["fishplate"]


def test_labels_outlive_a_start_without_metadata(tmp_path: Path) -> None:
    file = FeatureFile(tmp_path / "fishplate")
    file.update(FACTS)
    assert not file.update(NodeFacts())
    assert LABELS in file.path.read_text()


def test_a_node_without_a_fabric_loses_the_labels(tmp_path: Path) -> None:
    file = FeatureFile(tmp_path / "fishplate")
    file.update(FACTS)
    assert file.update(NodeFacts(state=ANSWERED))
    assert not file.path.exists()
    assert not file.remove()


def test_a_file_left_by_a_killed_run_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".fishplate.new").write_text("half")
    assert FeatureFile(tmp_path / "fishplate").update(FACTS)
    assert os.listdir(tmp_path) == ["fishplate"]


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / ".fishplate.new").symlink_to(target)
    (tmp_path / "fishplate").symlink_to(target)
    assert FeatureFile(tmp_path / "fishplate").update(FACTS)
    assert target.read_text() == "precious"
    assert not (tmp_path / "fishplate").is_symlink()


def test_a_missing_directory_is_told_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(OutsideError, match=r"cannot write the node features: No such file[\s\S]*features\.d"):
        FeatureFile(tmp_path / "none" / "fishplate").update(FACTS)
    with pytest.raises(OutsideError, match="cannot remove"):
        FeatureFile(tmp_path).remove()


def test_legal_values_stay_as_they_are() -> None:
    for text in ("a", "x" * 63, "rack_1.row-2", "c6c749e8-a38b-470e-8c94-2a7d00001bf0"):
        assert label_value(text) == text


def test_long_or_illegal_values_stay_apart() -> None:
    base = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/ai/providers/groups/"
    one, two = label_value(f"{base}one"), label_value(f"{base}two")
    assert one != two
    assert one.startswith("subscriptions-00000000-0000")
    assert label_value("a b") != label_value("a/b")
    assert label_value("x" * 64) != label_value("x" * 65)


@given(st.text(min_size=1))
def test_every_value_is_one_line_and_a_legal_label(text: str) -> None:
    import re

    facts = NodeFacts(fabric=text, state=ANSWERED)
    (value,) = plan_labels(facts).values()
    assert len(value) <= 63
    assert re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", value)
    assert render_features(plan_labels(facts)).count("\n") == 2
