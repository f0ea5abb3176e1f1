"""Writing a tree of files that stands for a host's /sys, /proc and /dev."""

import os
from pathlib import Path


class FileTree:
    """Paths are written as on the host (`/sys/class/net`) and land below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def file(self, path: str, text: str | int, *, mode: int | None = None) -> None:
        real = self._real(path)
        real.parent.mkdir(parents=True, exist_ok=True)
        real.write_text(f"{text}\n")
        if mode is not None:
            real.chmod(mode)

    def files(self, directory: str, texts: dict[str, str | int]) -> None:
        for name, text in texts.items():
            self.file(f"{directory}/{name}", text)

    def directory(self, path: str) -> None:
        self._real(path).mkdir(parents=True, exist_ok=True)

    def link(self, path: str, target: str) -> None:
        """A relative link, as sysfs makes them, from `path` to the host path `target`."""
        real = self._real(path)
        if real.is_symlink():  # a bridge above two devices is written with each of them
            return
        real.parent.mkdir(parents=True, exist_ok=True)
        real.symlink_to(os.path.relpath(target, str(Path(path).parent)))

    def node(self, name: str, mode: int) -> None:
        """A stand-in for /dev/infiniband/NAME: a plain file of the same mode. Its numbers are in sysfs."""
        self.file(f"/dev/infiniband/{name}", "", mode=mode)

    def _real(self, path: str) -> Path:
        return self.root / path.lstrip("/")
