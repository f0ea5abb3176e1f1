"""kube-scheduler's structured allocator for Dynamic Resource Allocation, followed exactly and able to explain itself.

allocate(World(slices=…, classes=…, claims=…), Node(name="a"), claims, profile=profile("1.36"))

The names below are fetched when they are first used: the node driver reads claims' parameters from this room, and the
allocator with its CEL would be 12 MB of a process that may have 58.
"""

from importlib import import_module
from typing import TYPE_CHECKING

# At once, and cheap: later the module of this name would stand in the function's place.
from fishplate.dra.profile import MINORS, Profile, profile

if TYPE_CHECKING:
    from fishplate.dra.allocator import Allocation, allocate
    from fishplate.dra.budget import Budget
    from fishplate.dra.scene import Scene
    from fishplate.dra.world import Node, World

__all__ = ["MINORS", "Allocation", "Budget", "Node", "Profile", "Scene", "World", "allocate", "profile"]

_HOMES = {
    "Allocation": "allocator",
    "Budget": "budget",
    "Node": "world",
    "Scene": "scene",
    "World": "world",
    "allocate": "allocator",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
