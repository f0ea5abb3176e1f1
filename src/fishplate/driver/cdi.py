"""CDI specs: one file per claim, one CDI device per device of the claim.

Which container gets what is then the kubelet's business: it hands each container the ids of the requests it names. A
missing file fails the container's creation, so nothing starts without its device. Ids carry the claim's UID, because
runtimes remember ids and one must never mean two things.
"""

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from fishplate.driver.records import Claim, Held
from fishplate.errors import OutsideError
from fishplate.topology.inventory import CharDevice

# The lowest version that knows everything used here: names that start with a digit came with 0.5.
_VERSION = "0.5.0"
_MODE = 0o644  # the runtime may run as another user


class DeviceNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    path: str
    type: str
    major: int
    minor: int
    file_mode: int | None = None
    permissions: str = "rw"


class Edits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()


class SpecDevice(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    container_edits: Edits


class Spec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    cdi_version: str = _VERSION
    kind: str
    devices: tuple[SpecDevice, ...]


def kind_of(driver: str) -> str:
    return f"k8s.{driver}/claim"


def device_id(driver: str, claim: Claim, held: Held) -> str:
    return f"{kind_of(driver)}={_name(claim, held)}"


def claim_of(driver: str, cdi_id: str) -> str | None:
    """The UID in an id of ours; None for anybody else's."""
    match = re.fullmatch(re.escape(kind_of(driver)) + r"=([0-9A-Za-z-]+)_.+", cdi_id)
    return match[1] if match else None


def spec_of(driver: str, claim: Claim) -> Spec:
    # Environment variables of several CDI devices overwrite each other, so a list of HCAs can only be told here if
    # every container that gets one device of the claim gets them all; otherwise the NRI side sets it for each.
    requests = {one.base_request for one in claim.held}
    names = tuple(name for one in claim.held for name in one.rdma)
    env = (nccl_hca(names),) if claim.nccl and len(requests) == 1 else ()
    devices = tuple(
        SpecDevice(name=_name(claim, one), container_edits=Edits(env=env, device_nodes=tuple(map(_node, one.nodes))))
        for one in claim.held
    )
    return Spec(kind=kind_of(driver), devices=devices)


def nccl_hca(names: Iterable[str]) -> str:
    """`=` asks NCCL for exactly these; without it `mlx5_1` would also mean `mlx5_10`."""
    return "NCCL_IB_HCA==" + ",".join(names)


def _name(claim: Claim, held: Held) -> str:
    share = f"_{held.share_id}" if held.share_id else ""
    return f"{claim.uid}_{held.request.replace('/', '.')}_{held.device}{share}"


def _node(node: CharDevice) -> DeviceNode:
    return DeviceNode(path=node.path, type="c", major=node.major, minor=node.minor, file_mode=node.mode)


class SpecDirectory:
    """The directory that the runtime watches. Files are whole or absent, never half-written."""

    def __init__(self, path: str, driver: str) -> None:
        self._path = Path(path)
        self._driver = driver
        self._prefix = kind_of(driver).replace("/", "-") + "_"

    def write(self, claim: Claim) -> None:
        """Written only where it differs: runtimes re-read on every change."""
        data = msgspec.json.format(msgspec.json.encode(spec_of(self._driver, claim)), indent=1) + b"\n"
        path = self._file(claim.uid)
        if _read(path) == data:
            return
        try:
            self._path.mkdir(mode=0o755, parents=True, exist_ok=True)
            _write_whole(path, data)
        except OSError as error:
            raise OutsideError(f"the CDI spec cannot be written: {error}", where=str(path)) from error

    def remove(self, uid: str) -> None:
        try:
            self._file(uid).unlink(missing_ok=True)
        except OSError as error:
            raise OutsideError(f"the CDI spec cannot be removed: {error}", where=str(self._file(uid))) from error

    def claims(self) -> set[str]:
        """UIDs with a file of ours."""
        found = self._path.glob(f"{self._prefix}*.json") if self._path.is_dir() else ()
        return {path.name.removeprefix(self._prefix).removesuffix(".json") for path in found}

    def clear_remains(self) -> None:
        """Half-written files of a driver that was killed."""
        for path in self._path.glob(f".{self._prefix}*.tmp") if self._path.is_dir() else ():
            with contextlib.suppress(OSError):
                path.unlink()

    def _file(self, uid: str) -> Path:
        return self._path / f"{self._prefix}{uid}.json"


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _write_whole(path: Path, data: bytes) -> None:
    """Hidden while it grows (runtimes read *.json only), on disk before it gets its name."""
    scratch = path.with_name(f".{path.name}.tmp")
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _MODE)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        os.fchmod(handle, _MODE)
        os.fsync(handle)
    finally:
        os.close(handle)
    scratch.rename(path)
