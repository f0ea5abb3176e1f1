"""Things that are slow to make, kept outside the tree under a name that says what they were made from.

An entry is a directory `NAME-DIGEST`. It is built under another name and renamed, so it is complete or absent; a lock
per name makes a second builder wait for the first instead of doing the work twice. Entries are never changed.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from lab.progress import say, timed


def cache_directory() -> Path:
    chosen = os.environ.get("FISHPLATE_LAB_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "fishplate-lab"


def digest_files(paths: Iterable[Path], *extra: str) -> str:
    """A short digest of files (directories are walked) and words."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
            name = file.relative_to(path.parent).as_posix()
            digest.update(f"{name}\0{file.stat().st_size}\0".encode())
            digest.update(file.read_bytes())
    for word in extra:
        digest.update(f"\0{word}".encode())
    return digest.hexdigest()[:16]


def cached(name: str, digest: str, build: Callable[[Path], None]) -> Path:
    """The cache entry, built by `build(directory)` if it is not there yet."""
    root = cache_directory()
    root.mkdir(parents=True, exist_ok=True)
    entry = root / f"{name}-{digest}"
    if entry.is_dir():
        return entry
    with open(root / f".{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if entry.is_dir():
            return entry
        partial = root / f".{name}-{digest}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        try:
            with timed(f"building {name} (kept in {entry})"):
                build(partial)
        except BaseException:
            say(f"building {name} failed")
            shutil.rmtree(partial, ignore_errors=True)
            raise
        partial.rename(entry)
    return entry
