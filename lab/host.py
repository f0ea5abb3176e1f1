"""What the lab needs of the machine it runs on: commands, and the Debian packages that bring them."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fishplate.errors import OutsideError
from lab.progress import say

# command -> Debian package
NEEDED = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "depmod": "kmod",
    "socat": "socat",
    "openssl": "openssl",
    "ssh": "openssh-client",
    "setpriv": "util-linux",
}
CONTROL_PLANE = ("openssl", "setpriv")


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/local/go/bin"


def find_command(name: str) -> str | None:
    return shutil.which(name, path=_path())


def require_commands(names: Sequence[str] = tuple(NEEDED)) -> None:
    """Install what is missing, by name, where we may; otherwise say what to install."""
    missing = sorted({NEEDED[n] for n in names if find_command(n) is None})
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"installing Debian packages: {' '.join(missing)}")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for argv in (["update"], ["install", "-y", "--no-install-recommends", *missing]):
            run_checked(["apt-get", "-qq", *argv], what=f"apt-get {argv[0]}", environment=environment)
    still = sorted(n for n in names if find_command(n) is None)
    if still:
        packages = " ".join(sorted({NEEDED[n] for n in still}))
        raise OutsideError(
            f"commands are missing: {', '.join(still)}", where="lab", remedy=f"install them: apt-get install {packages}"
        )


def require_go() -> str:
    go = find_command("go")
    if go is None:
        raise OutsideError("no Go found", where="lab", remedy="install Go 1.26 or newer and put it on the PATH")
    return go


def run_checked(
    argv: Sequence[str],
    *,
    what: str,
    cwd: Path | None = None,
    environment: dict[str, str] | None = None,
    stdin: bytes | None = None,
) -> bytes:
    """Run to the end; on failure the error carries the last lines of what the command said."""
    environment = dict(environment if environment is not None else os.environ)
    environment["PATH"] = _path()
    done = subprocess.run(argv, cwd=cwd, env=environment, input=stdin, capture_output=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()[-15:]
        raise OutsideError(
            f"{what} failed (exit {done.returncode}):\n    " + "\n    ".join(said),
            where="lab",
            remedy=f"the command was: {' '.join(argv)[:400]}",
        )
    return done.stdout
