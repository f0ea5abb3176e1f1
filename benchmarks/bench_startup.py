"""How long `fishplate --help` takes, beside Python itself."""

import subprocess
import sys
from pathlib import Path

from benchmarks.measure import Row, compare

_COMMANDS = (("--help",), ("inspect", "--size", "Standard_ND128isr_GB300_v6", "-o", "json"))


def run() -> list[Row]:
    program = str(Path(sys.executable).with_name("fishplate"))
    return [_beside_python(program, *argv) for argv in _COMMANDS]


def _beside_python(program: str, *argv: str) -> Row:
    ours, theirs = compare(lambda: _run(program, *argv), lambda: _run(sys.executable, "-c", "pass"), repeats=15)
    return Row(f"fishplate {' '.join(argv)}", ours, "python -c pass", theirs)


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
