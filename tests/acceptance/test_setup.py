"""The two commands of the README, on a clean clone. `make test` is what runs this file; `make demo` is run here."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(600)
def test_make_demo_runs_on_a_clean_clone(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True, timeout=60)
    # Nothing of this environment may help: no virtual environment on the path, no Python settings.
    venv = str(ROOT / ".venv")
    path = ":".join(part for part in os.environ["PATH"].split(":") if not part.startswith(venv))
    env = {"PATH": path, "HOME": os.environ.get("HOME", "/root")}
    env |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    answer = subprocess.run(
        ["make", "demo"], cwd=clone, env=env, capture_output=True, text=True, timeout=540, check=False
    )
    assert answer.returncode == 0, answer.stdout[-2000:] + answer.stderr[-2000:]
    assert "Nothing is keyed on mlx5_N" in answer.stdout
    assert (clone / ".venv/bin/fishplate").exists()
    assert (clone / ".venv/bin/kubectl-fishplate").exists()


def test_kubectl_finds_the_plugin() -> None:
    plugin = shutil.which("kubectl-fishplate", path=str(ROOT / ".venv/bin"))
    assert plugin is not None
    answer = subprocess.run([plugin, "--version"], capture_output=True, text=True, timeout=30, check=True)
    assert answer.stdout.startswith("fishplate")


def test_every_command_explains_itself() -> None:
    program = str(ROOT / ".venv/bin/fishplate")
    overview = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=30, check=True).stdout
    commands = [line.split()[0] for line in overview.split("Commands:")[1].splitlines() if line.startswith("  ")]
    assert {"catalog", "demo", "inspect"} <= set(commands)
    for command in commands:
        answer = subprocess.run([program, command, "--help"], capture_output=True, text=True, timeout=30, check=True)
        assert "Usage:" in answer.stdout
