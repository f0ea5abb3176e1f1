import os
from pathlib import Path

import pytest

from fishplate.errors import RootError
from fishplate.node.tree import MAX_BYTES, Tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "sys").mkdir()
    return tmp_path


def rules(tree: Tree) -> set[str]:
    return {problem.id.removeprefix("discovery.") for problem in tree.problems}


def test_a_root_must_look_like_one(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", Path("/dev/null")):
        with pytest.raises(RootError):
            Tree(path)


def test_only_the_real_root_is_live(root: Path) -> None:
    assert Tree("/").live
    assert not Tree(root).live


def test_absolute_links_start_at_the_root_of_the_tree(root: Path) -> None:
    (root / "sys/real").mkdir()
    (root / "sys/real/value").write_text("inside")
    (root / "sys/link").symlink_to("/sys/real")
    tree = Tree(root)
    assert tree.resolve("/sys/link") == "/sys/real"
    assert tree.text("/sys/link/value") == "inside"


def test_parent_links_cannot_climb_above_the_root(root: Path) -> None:
    (root.parent / "outside").write_text("outside")
    (root / "sys/climb").symlink_to("../../outside")
    tree = Tree(root)
    assert tree.resolve("/sys/climb") is None
    assert tree.text("/sys/climb") is None


def test_link_to_itself_is_reported(root: Path) -> None:
    (root / "sys/self").symlink_to("self")
    tree = Tree(root)
    assert tree.resolve("/sys/self") is None
    assert rules(tree) == {"link-loop"}


def test_links_have_one_budget_for_the_whole_walk(root: Path) -> None:
    (root / "sys/l0").mkdir()
    for level in range(1, 45):
        (root / f"sys/l{level}").symlink_to(f"l{level - 1}/../l{level - 1}")
    assert Tree(root).resolve("/sys/l44") is None
    assert Tree(root).resolve("/sys/l4") == "/sys/l0"


def test_files_that_are_not_there_are_no_problem(root: Path) -> None:
    tree = Tree(root)
    assert tree.text("/sys/none") is None
    assert tree.text("/sys/none/none") is None
    assert tree.names("/sys/none") == []
    assert tree.number("/sys/none") is None
    assert tree.problems == []


def test_pipes_and_directories_are_not_read(root: Path) -> None:
    os.mkfifo(root / "sys/pipe")
    (root / "sys/directory").mkdir()
    tree = Tree(root)
    assert tree.text("/sys/pipe") is None
    assert tree.text("/sys/directory") is None
    assert rules(tree) == {"not-a-file"}


def test_files_are_read_up_to_a_limit(root: Path) -> None:
    (root / "sys/huge").write_bytes(b"x" * (MAX_BYTES * 3))
    assert len(Tree(root).text("/sys/huge") or "") == MAX_BYTES


def test_control_characters_do_not_reach_the_terminal(root: Path) -> None:
    (root / "sys/evil").write_bytes(b"a\x1b[2Jb\x07\x9bc\nd\te\0")
    text = Tree(root).text("/sys/evil") or ""
    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.endswith("c\nd\te")


def test_names_that_cannot_be_printed_are_left_out(root: Path) -> None:
    (root / "sys/good").mkdir()
    (root / "sys" / os.fsdecode(b"bad\xff")).mkdir()
    (root / "sys" / "bad\n").mkdir()
    tree = Tree(root)
    assert tree.names("/sys") == ["good"]
    assert rules(tree) == {"garbled"}


@pytest.mark.parametrize("text", ["x", "1 2", "0x10", "1e3", "9" * 40, "--1"])
def test_numbers_that_are_none_are_reported(root: Path, text: str) -> None:
    (root / "sys/number").write_text(text)
    tree = Tree(root)
    assert tree.number("/sys/number") is None
    assert rules(tree) == {"garbled"}


def test_numbers_outside_their_range_are_reported(root: Path) -> None:
    (root / "sys/number").write_text("70000")
    tree = Tree(root)
    assert tree.number("/sys/number", high=65_535) is None
    assert rules(tree) == {"garbled"}
