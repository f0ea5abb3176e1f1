"""The list of mutants, as data: the .toml files beside this one, a room or two in each."""

import tomllib
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[1]


class Mutant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`protects` says what is claimed; replacing `find` by `replace` in `file` removes it; `test` must then fail."""

    id: str
    protects: str
    file: str
    find: str
    replace: str
    test: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mutant: tuple[Mutant, ...]


def load_mutants() -> tuple[Mutant, ...]:
    files = sorted((ROOT / "mutants").glob("*.toml"))
    return tuple(one for path in files for one in msgspec.convert(tomllib.loads(path.read_text()), _File).mutant)


def apply_mutant(root: Path, mutant: Mutant) -> str:
    """Patch the file below `root`; returns its former text. A patch that fits nowhere, or twice, is stale."""
    path = root / mutant.file
    before = path.read_text()
    if before.count(mutant.find) != 1:
        raise LookupError(f"{mutant.id}: its text occurs {before.count(mutant.find)} times in {mutant.file}, not once")
    path.write_text(before.replace(mutant.find, mutant.replace))
    return before
