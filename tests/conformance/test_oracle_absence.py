"""Where Go is missing, tests that ask the real code are left out, and that is told: none of them passes vacuously."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Two runs of pytest, one of them with a worker: seconds, but many of them on a busy machine.
pytestmark = pytest.mark.timeout(300)
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "distributed"])
def test_without_go_the_oracle_tests_are_told_to_be_left_out(workers: list[str], tmp_path: Path) -> None:
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *workers,
        "tests/conformance/test_cel_oracle.py",
    ]
    env = {**os.environ, "PATH": str(tmp_path)}
    env = {name: value for name, value in env.items() if not name.startswith("PYTEST")}
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    assert "are left out: Go is not installed" in done.stdout
    assert "passed" not in done.stdout
