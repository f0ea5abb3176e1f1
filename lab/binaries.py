"""Kubernetes, etcd, containerd and our own test programs, built from Go modules.

Each directory of lab/go is a wrapper module: a go.mod with pinned versions and a go.sum. A build is keyed by the
content of its wrapper, this file's table and the Go version, so a changed pin rebuilds that part and nothing else.
"""

import os
import tomllib
from pathlib import Path

import msgspec

from lab import HERE
from lab.cache import cached, digest_files
from lab.host import require_go, run_checked


class Wrapper(msgspec.Struct, frozen=True, kw_only=True):
    packages: tuple[str, ...]
    tags: str = ""
    defines: dict[str, str] = {}
    rename: dict[str, str] = {}


def read_wrappers(path: Path = HERE / "go" / "wrappers.toml") -> dict[str, Wrapper]:
    return msgspec.convert(tomllib.loads(path.read_text()), dict[str, Wrapper])


def build_argv(go: str, wrapper: Wrapper, out: Path) -> list[str]:
    flags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in wrapper.defines.items())])
    tags = ["-tags", wrapper.tags] if wrapper.tags else []
    return [go, "build", "-trimpath", *tags, "-ldflags", flags, "-o", f"{out}/", *wrapper.packages]


def build_wrapper(name: str) -> Path:
    """The directory with the wrapper's binaries, each named after its package."""
    go, wrapper, directory = require_go(), read_wrappers()[name], HERE / "go" / name
    version = run_checked([go, "env", "GOVERSION"], what="go env").decode().strip()
    digest = digest_files([directory], version, repr(wrapper))

    def build(out: Path) -> None:
        environment = {**os.environ, "CGO_ENABLED": "0", "GOOS": "linux", "GOARCH": "amd64"}
        run_checked(build_argv(go, wrapper, out), what=f"go build {name}", cwd=directory, environment=environment)
        for old, new in wrapper.rename.items():
            (out / old).rename(out / new)

    return cached(f"go-{name}", digest, build)


def control_plane_binaries() -> dict[str, Path]:
    kubernetes, etcd = build_wrapper("kubernetes"), build_wrapper("etcd")
    names = ("kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl")
    return {name: kubernetes / name for name in names} | {"etcd": etcd / "etcd"}


def node_binaries() -> list[Path]:
    containerd, own = build_wrapper("containerd"), build_wrapper("gpudriver")
    return [build_wrapper("kubernetes") / "kubelet", *sorted(containerd.iterdir()), own / "gpudriver"]
