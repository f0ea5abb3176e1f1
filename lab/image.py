"""OCI image archives without Docker: one layer from a directory, written so that the same input gives the same bytes.

The archive is what `ctr images import` and `skopeo copy oci-archive:` read: an OCI image layout in a tar file. The
layer is compressed lightly: a third of the bytes to carry into an emulated machine, for a few seconds of work there.
"""

import gzip
import hashlib
import io
import json
import os
import stat
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from fishplate.errors import UsageError
from lab import HERE
from lab.host import run_checked

Json = dict[str, object]


class ImageSettings(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    architecture: str = "amd64"
    environment: tuple[str, ...] = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",)
    working_directory: str = "/"


def _normalise(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


def pack_layer(directory: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(directory.rglob("*")):
            kind = stat.S_IFMT(path.lstat().st_mode)
            if kind in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
                member = _normalise(tar.gettarinfo(path, path.relative_to(directory).as_posix()))
                if member.isreg():
                    with path.open("rb") as content:
                        tar.addfile(member, content)
                else:
                    tar.addfile(member)
    return buffer.getvalue()


def _blob(blobs: dict[str, bytes], media_type: str, content: bytes) -> Json:
    digest = hashlib.sha256(content).hexdigest()
    blobs[f"blobs/sha256/{digest}"] = content
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}


def _json(value: Json) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def pack_image(layer: bytes, settings: ImageSettings) -> dict[str, bytes]:
    """The files of the archive, by name."""
    blobs: dict[str, bytes] = {}
    prefix = "application/vnd.oci.image."
    layers = [_blob(blobs, prefix + "layer.v1.tar+gzip", gzip.compress(layer, 1, mtime=0))]
    run: Json = {"Env": list(settings.environment), "WorkingDir": settings.working_directory}
    if settings.entrypoint:
        run["Entrypoint"] = list(settings.entrypoint)
    if settings.command:
        run["Cmd"] = list(settings.command)
    config: Json = {
        "architecture": settings.architecture,
        "os": "linux",
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest: Json = {
        "schemaVersion": 2,
        "mediaType": prefix + "manifest.v1+json",
        "config": _blob(blobs, prefix + "config.v1+json", _json(config)),
        "layers": layers,
    }
    entry = _blob(blobs, prefix + "manifest.v1+json", _json(manifest))
    entry["annotations"] = {
        "io.containerd.image.name": settings.name,
        "org.opencontainers.image.ref.name": settings.name.rpartition(":")[2],
    }
    index: Json = {"schemaVersion": 2, "mediaType": prefix + "index.v1+json", "manifests": [entry]}
    return {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": _json(index), **blobs}


def write_image(directory: Path, out: Path, settings: ImageSettings) -> None:
    if ":" not in settings.name.rpartition("/")[2]:
        raise UsageError(f"an image name needs a tag: {settings.name}", where="lab image", remedy=f"{settings.name}:1")
    with tarfile.open(out, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in pack_image(pack_layer(directory), settings).items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


class _Manifest(msgspec.Struct):
    digest: str
    annotations: dict[str, str]


class _Index(msgspec.Struct):
    manifests: tuple[_Manifest]


def read_identity(archive: Path) -> tuple[str, str]:
    """Name and digest of the image in an archive of ours."""
    with tarfile.open(archive) as tar:
        content = tar.extractfile("index.json")
        assert content is not None
        (manifest,) = msgspec.json.decode(content.read(), type=_Index).manifests
    return manifest.annotations["io.containerd.image.name"], manifest.digest


def fill_image(out: Path, settings: ImageSettings, script: Path, environment: dict[str, str]) -> None:
    """An image whose root a script fills: it is given a directory, and ARCH and PYTHON in its environment."""
    with tempfile.TemporaryDirectory(prefix="fishplate-lab-") as scratch:
        root = Path(scratch) / "root"
        environment = {**os.environ, "ARCH": settings.architecture, "PYTHON": sys.executable, **environment}
        run_checked([str(script.absolute()), str(root)], what=script.name, environment=environment)
        write_image(root, out, settings)


def assemble_image(out: Path, settings: ImageSettings, *, packages: Sequence[str], requirements: Path | None) -> None:
    """An image from Debian packages and wheels."""
    environment = {"PACKAGES": " ".join(packages)}
    environment["REQUIREMENTS"] = str(requirements.absolute()) if requirements else ""
    fill_image(out, settings, HERE / "image-root", environment)
