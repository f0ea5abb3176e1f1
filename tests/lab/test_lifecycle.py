"""A lab leaves nothing behind: ended in order, interrupted, killed in mid-flight."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab import TREE
from lab.footprint import compare_footprints, take_footprint
from lab.keeper import find_processes
from lab.state import state_directory

pytestmark = pytest.mark.lab

NAME = "pytest-lifecycle"


def _lab(*args: str) -> list[str]:
    return [sys.executable, "-m", "lab", "--name", NAME, *args]


def _wait(condition: Callable[[], bool], within_s: float = 120) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _programs() -> set[str]:
    names = set()
    for pid in find_processes(state_directory(NAME)):
        try:
            names.add(Path(f"/proc/{pid}/exe").readlink().name)
        except OSError:
            continue
    return names


@pytest.fixture
def before(tmp_path: Path) -> Iterator[Path]:
    """What the machine held before; whatever the test leaves is cleared away after it."""
    take_footprint(tmp_path / "before")
    yield tmp_path / "before"
    subprocess.run(_lab("down"), cwd=TREE, check=True, capture_output=True)


def test_up_and_down_leave_nothing(before: Path) -> None:
    subprocess.run(_lab("up", "--control-plane-only"), cwd=TREE, check=True)
    said = subprocess.run(_lab("kubectl", "get", "namespace", "default", "-o", "name"), cwd=TREE, capture_output=True)
    assert said.stdout == b"namespace/default\n"
    subprocess.run(_lab("down"), cwd=TREE, check=True)
    assert compare_footprints(before) == []


def test_an_interrupted_up_leaves_nothing(before: Path) -> None:
    with subprocess.Popen(_lab("up", "--nodes", "1", "--shape", "plain"), cwd=TREE) as process:
        _wait(lambda: "qemu-system-x86_64" in _programs())
        process.send_signal(signal.SIGINT)
    assert compare_footprints(before) == []


def test_an_up_killed_in_mid_flight_takes_its_processes_along_and_the_next_up_works(before: Path) -> None:
    with subprocess.Popen(_lab("up", "--nodes", "1", "--shape", "plain"), cwd=TREE) as process:
        _wait(lambda: "qemu-system-x86_64" in _programs())
        process.kill()
    _wait(lambda: find_processes(state_directory(NAME)) == [], 30)
    subprocess.run(_lab("up", "--control-plane-only"), cwd=TREE, check=True)
    subprocess.run(_lab("down"), cwd=TREE, check=True)
    assert compare_footprints(before) == []


def test_a_killed_keeper_takes_its_children_along_and_the_next_up_clears_its_files(before: Path) -> None:
    subprocess.run(_lab("up", "--control-plane-only"), cwd=TREE, check=True)
    (keeper,) = [
        pid
        for pid in find_processes(state_directory(NAME))
        if b"lab.hold" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    ]
    os.kill(keeper, signal.SIGKILL)
    _wait(lambda: find_processes(state_directory(NAME)) == [], 30)
    assert state_directory(NAME).exists()
    subprocess.run(_lab("up", "--control-plane-only"), cwd=TREE, check=True)
    subprocess.run(_lab("down"), cwd=TREE, check=True)
    assert compare_footprints(before) == []


def test_two_labs_run_side_by_side(before: Path) -> None:
    other = [sys.executable, "-m", "lab", "--name", f"{NAME}-other"]
    try:
        for argv in (_lab(), other):
            subprocess.run([*argv, "up", "--control-plane-only"], cwd=TREE, check=True)
        subprocess.run(_lab("down"), cwd=TREE, check=True)
        said = subprocess.run([*other, "kubectl", "get", "namespaces", "-o", "name"], cwd=TREE, capture_output=True)
        assert b"namespace/default\n" in said.stdout
    finally:
        subprocess.run([*other, "down"], cwd=TREE, check=True)
    assert compare_footprints(before) == []
