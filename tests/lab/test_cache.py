"""The cache: complete or absent, built once."""

from pathlib import Path

import pytest

from lab.cache import cached, digest_files


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FISHPLATE_LAB_CACHE", str(tmp_path / "cache"))


def test_an_entry_is_built_once() -> None:
    calls = []

    def build(out: Path) -> None:
        calls.append(out)
        (out / "thing").write_text("made")

    first, second = cached("thing", "1", build), cached("thing", "1", build)
    assert first == second
    assert (first / "thing").read_text() == "made"
    assert len(calls) == 1


def test_a_failed_build_leaves_no_entry_and_says_which(capsys: pytest.CaptureFixture[str]) -> None:
    def build(out: Path) -> None:
        (out / "half").write_text("")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cached("thing", "1", build)
    assert "building thing failed" in capsys.readouterr().err
    assert (cached("thing", "1", lambda out: None)).is_dir()
    assert not (cached("thing", "1", lambda out: None) / "half").exists()


def test_digest_follows_content_and_names(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_text("1")
    before = digest_files([tmp_path / "d"])
    (tmp_path / "d" / "a").write_text("2")
    changed = digest_files([tmp_path / "d"])
    (tmp_path / "d" / "a").rename(tmp_path / "d" / "b")
    assert len({before, changed, digest_files([tmp_path / "d"]), digest_files([tmp_path / "d"], "more")}) == 4
