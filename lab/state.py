"""Where a lab keeps its things: `.lab/NAME` in the tree, with one file that says what runs and where."""

import os
from pathlib import Path

import msgspec

from fishplate.errors import InputError, OutsideError, UsageError
from lab import TREE


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What `up` was asked for."""

    nodes: int = 2
    shape: str = "gb300"
    gpu_driver: str = ""
    feature_gates: str = ""

    @property
    def control_plane_only(self) -> bool:
        return self.nodes == 0


class NodeState(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    ssh_port: int
    kubelet_port: int


class State(msgspec.Struct, frozen=True, kw_only=True):
    request: Request
    api_port: int
    token: str
    kubectl: str
    nodes: tuple[NodeState, ...]


def state_root() -> Path:
    return Path(os.environ.get("FISHPLATE_LAB_ROOT", TREE / ".lab")).absolute()


def state_directory(name: str) -> Path:
    if not name.replace("-", "").isalnum():
        raise UsageError(f"not a name for a lab: {name}", where="lab", remedy="letters, digits and dashes only")
    return state_root() / name


def write_state(directory: Path, state: State) -> None:
    # Complete or absent: whoever sees the file may use the lab.
    partial = directory / "state.json.new"
    partial.write_bytes(msgspec.json.encode(state))
    partial.chmod(0o600)
    partial.rename(directory / "state.json")


def read_state(directory: Path) -> State:
    try:
        return msgspec.json.decode((directory / "state.json").read_bytes(), type=State)
    except FileNotFoundError:
        raise InputError(f"no lab is up in {directory}", where="lab", remedy="python -m lab up") from None
    except msgspec.MsgspecError as error:
        raise OutsideError(f"unreadable state: {error}", where=str(directory), remedy="python -m lab down") from error
