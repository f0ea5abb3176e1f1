"""kube-scheduler's structured allocator for Dynamic Resource Allocation, followed exactly and able to explain itself.

allocate(World(slices=…, classes=…, claims=…), Node(name="a"), claims, profile=profile("1.36"))
"""

from fishplate.dra.allocator import Allocation, allocate
from fishplate.dra.budget import Budget
from fishplate.dra.profile import MINORS, Profile, profile
from fishplate.dra.scene import Scene
from fishplate.dra.world import Node, World

__all__ = ["MINORS", "Allocation", "Budget", "Node", "Profile", "Scene", "World", "allocate", "profile"]
