"""What a lab could leave behind on this machine: processes, mounts, network namespaces, files.

Other people's processes come and go while a lab runs, also labs of other trees, so a process counts only if it carries
the mark of a lab of this tree, and a mount only where the lab or the programs it calls work. Named network namespaces
are compared as a whole.
"""

import os
from pathlib import Path

import msgspec

from lab import TREE
from lab.cache import cache_directory
from lab.keeper import MARK
from lab.state import state_root

# Names under which mmdebstrap, QEMU and the lab itself make temporary files.
_TEMPORARY = ("mmdebstrap", "vl.", "qemu", "fishplate-lab")


class Footprint(msgspec.Struct, frozen=True, kw_only=True):
    processes: frozenset[str]
    mounts: frozenset[str]
    namespaces: frozenset[str]
    files: frozenset[str]


def _processes() -> frozenset[str]:
    found = set()
    for path in Path("/proc").iterdir():
        if not path.name.isdigit() or int(path.name) == os.getpid():
            continue
        try:
            program, environment = str((path / "exe").readlink()), (path / "environ").read_bytes()
        except OSError:
            continue
        if f"{MARK}={state_root()}/".encode() in environment:
            found.add(f"process {path.name} {program}")
    return frozenset(found)


def _mounts() -> frozenset[str]:
    ours = (str(TREE), str(cache_directory()), str(state_root()), *(f"/tmp/{name}" for name in _TEMPORARY))
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return frozenset(f"mount {point}" for point in points if point.startswith(ours))


def _namespaces() -> frozenset[str]:
    named = Path("/run/netns")
    return frozenset(f"network namespace {p.name}" for p in named.iterdir()) if named.is_dir() else frozenset()


def _files() -> frozenset[str]:
    """The tree without its environment and tool caches, and the places for temporary files, one level deep."""
    ignored = {".git", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".import_linter_cache"}
    found = {f"file {p}" for p in TREE.iterdir() if p.name not in ignored}
    # Of a lab only its directory: one that runs meanwhile writes into its own all the time.
    labs = state_root()
    found |= {f"file {p}" for p in labs.iterdir()} if labs.is_dir() else set()
    for place in ("/tmp", "/var/tmp", "/run", "/dev/shm"):
        found |= {f"file {p}" for p in Path(place).iterdir() if p.name.startswith(_TEMPORARY)}
    return frozenset(found)


def read_footprint() -> Footprint:
    return Footprint(processes=_processes(), mounts=_mounts(), namespaces=_namespaces(), files=_files())


def take_footprint(file: Path) -> None:
    file.write_bytes(msgspec.json.encode(read_footprint()))


def compare_footprints(file: Path) -> list[str]:
    """What is here now and was not when the file was written."""
    before, now = msgspec.json.decode(file.read_bytes(), type=Footprint), read_footprint()
    more: set[str] = set()
    for field in Footprint.__struct_fields__:
        more |= getattr(now, field) - getattr(before, field)
    return sorted(more - {f"file {file}"})
