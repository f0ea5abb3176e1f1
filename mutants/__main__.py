"""`make mutants`: for each protection we claim, remove it and see the named test fail.

Works on a copy of the tree. First the named tests must pass as they are; then each mutant in turn must make its test
fail. A mutant that survives means a protection that no test guards.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mutants.patches import ROOT, Mutant, apply_mutant, load_mutants


def main(wanted: list[str]) -> int:
    mutants = [mutant for mutant in load_mutants() if not wanted or mutant.id in wanted]
    with tempfile.TemporaryDirectory(prefix="fishplate-mutants-") as directory:
        copy = Path(directory)
        for name in ("src", "tests", "docs", "deploy", "lab", "requirements", "Makefile", "pyproject.toml"):
            source = ROOT / name
            shutil.copytree(source, copy / name) if source.is_dir() else shutil.copy(source, copy / name)
        tests = sorted({mutant.test for mutant in mutants})
        if _pytest(copy, *tests) != 0:
            print("the tests fail without any mutant; mend that first", file=sys.stderr)
            return 1
        survivors = [mutant for mutant in mutants if not _is_caught(copy, mutant)]
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants caught")
    return 1 if survivors else 0


def _is_caught(copy: Path, mutant: Mutant) -> bool:
    before = apply_mutant(copy, mutant)
    try:
        # 1 is "tests ran and some failed"; 2 and above mean that the mutant broke the test run itself.
        code = _pytest(copy, mutant.test)
    finally:
        (copy / mutant.file).write_text(before)
    verdict = {0: "SURVIVED", 1: "caught"}.get(code, f"test run broke ({code})")
    print(f"{verdict:>9}  {mutant.id}: {mutant.protects}", flush=True)
    return code == 1


def _pytest(copy: Path, *tests: str) -> int:
    argv = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", "--timeout=30", *tests]
    env = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(argv, cwd=copy, env=env, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        print(done.stdout[-2000:], file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
