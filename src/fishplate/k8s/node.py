"""The parts of a Node that decide where claims can go: its labels, whether it is cordoned, what plugins offer on it."""

from typing import Literal

import msgspec

from fishplate.k8s.resource import QuantityText


class NodeMeta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    labels: dict[str, str] = {}


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    unschedulable: bool = False


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    allocatable: dict[str, QuantityText] = {}


class Node(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: Literal["v1"] = "v1"
    kind: Literal["Node"] = "Node"
    metadata: NodeMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
