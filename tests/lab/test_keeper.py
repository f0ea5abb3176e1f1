"""Nothing outlives its keeper: with real processes, also when the keeper is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fishplate.errors import OutsideError
from lab import TREE
from lab.keeper import MARK, Keeper, end_processes, find_processes


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        os.sched_yield()


def test_stop_ends_every_child(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    try:
        for name in ("one", "two"):
            keeper.start(name, ["sleep", "1000"])
        _wait(lambda: len(find_processes(tmp_path)) == 2)  # a process has no environment in the middle of its exec
    finally:
        keeper.stop()
    assert find_processes(tmp_path) == []


def test_children_die_with_a_killed_keeper(tmp_path: Path) -> None:
    code = (
        "import pathlib, signal, sys\nfrom lab.keeper import Keeper\n"
        "k = Keeper(pathlib.Path(sys.argv[1]))\nk.start('one', ['sleep', '1000'])\n"
        "print('up', flush=True)\nsignal.pause()"
    )
    environment = {**os.environ, "PYTHONPATH": f"{TREE}:{TREE / 'src'}"}
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], env=environment, stdout=subprocess.PIPE) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == b"up\n"
        _wait(lambda: len(find_processes(tmp_path)) == 1)
        keeper.send_signal(signal.SIGKILL)
    _wait(lambda: find_processes(tmp_path) == [])


def test_a_child_that_ends_is_reported_with_its_last_words(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.start("short", ["sh", "-c", "echo no disk left; exit 3"])
    keeper.children["short"].wait()
    with pytest.raises(OutsideError, match=r"short ended with 3:\n    no disk left"):
        keeper.check()


def test_leftovers_are_found_by_their_mark_and_others_are_not_touched(tmp_path: Path) -> None:
    mine = subprocess.Popen(["sleep", "1000"], env={**os.environ, MARK: str(tmp_path)})
    other = subprocess.Popen(["sleep", "1000"], env={**os.environ, MARK: f"{tmp_path}-other"})
    try:
        _wait(lambda: find_processes(tmp_path) == [mine.pid])
        # A zombie has no environment, so an ended process counts as gone before its parent has looked.
        assert end_processes(tmp_path) == 1
        assert mine.wait() == -signal.SIGKILL
        assert other.poll() is None
    finally:
        for process in (mine, other):
            process.kill()
            process.wait()
