"""The root of the driver's image, for both architectures: made on one machine, without running anything of it."""

import os
import subprocess
from pathlib import Path

import pytest

from lab import TREE
from lab.host import require_commands, run_checked

pytestmark = pytest.mark.lab

# e_machine of ELF
MACHINES = {"amd64": 62, "arm64": 183}


@pytest.fixture(scope="module", params=MACHINES)
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Architecture and root."""
    require_commands(("mmdebstrap",))
    arch, root = request.param, tmp_path_factory.mktemp("image") / "root"
    run_checked(
        [str(TREE / "deploy/image-root"), str(root)], what="image-root", environment={**os.environ, "ARCH": arch}
    )
    return arch, root


def test_every_binary_is_of_its_architecture(image: tuple[str, Path]) -> None:
    arch, root = image
    found: dict[int, int] = {}
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                head = file.read(20)
            if head[:4] == b"\x7fELF":
                machine = int.from_bytes(head[18:20], "little")
                found[machine] = found.get(machine, 0) + 1
    assert list(found) == [MACHINES[arch]]
    assert found[MACHINES[arch]] > 50


def test_there_is_no_shell_and_no_package_manager(image: tuple[str, Path]) -> None:
    _, root = image
    commands = {path.name for place in ("bin", "sbin", "usr/bin", "usr/sbin") for path in (root / place).glob("*")}
    assert commands == {"fishplate", "python3", "python3.11"}


def test_what_it_runs_is_compiled_already(image: tuple[str, Path]) -> None:
    """By content, since a layer keeps no times: an old-style file would be compiled anew at every start."""
    _, root = image
    for place in ("fishplate/driver", "h2", "../../python3.11/asyncio"):
        directory = root / "usr/lib/python3/dist-packages" / place
        compiled = list((directory / "__pycache__").glob("*.cpython-311.pyc"))
        assert len(compiled) == len(list(directory.glob("*.py")))
        # Flags of PEP 552: 1 is by content, and 2, which is not set, would have the source looked at.
        assert {int.from_bytes(path.read_bytes()[4:8], "little") for path in compiled} == {1}


def test_every_library_of_the_program_is_there(image: tuple[str, Path]) -> None:
    arch, root = image
    assert list(root.glob("usr/lib/*/libstdc++.so.6"))
    assert (root / "etc/ssl/certs/ca-certificates.crt").stat().st_size > 100_000
    if arch == "amd64":
        script = "import sqlite3, ssl, h2, google.protobuf, fishplate.driver.run"
        argv = ["chroot", str(root), "/usr/bin/python3", "-B", "-c", script]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
