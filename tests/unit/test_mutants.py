"""The list of mutants is kept true: each patch still fits, and names a test that is there."""

from pathlib import Path

import pytest

from mutants.patches import ROOT, Mutant, apply_mutant, load_mutants


@pytest.mark.parametrize("mutant", load_mutants(), ids=lambda mutant: mutant.id)
def test_mutant_still_fits(mutant: Mutant, tmp_path: Path) -> None:
    copy = tmp_path / mutant.file
    copy.parent.mkdir(parents=True)
    copy.write_text((ROOT / mutant.file).read_text())
    apply_mutant(tmp_path, mutant)
    assert copy.read_text() != (ROOT / mutant.file).read_text()
    file, _, name = mutant.test.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text()
