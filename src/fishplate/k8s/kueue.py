"""Kueue's Topology: the node labels, from the widest to the narrowest, that a job can be asked to stay within.

Kinds and names are those of kueue.x-k8s.io; a Topology reads the same in v1alpha1, v1beta1 and v1beta2.
"""

import msgspec

from fishplate.k8s.resource import ObjectMeta

API_VERSION = "kueue.x-k8s.io/v1beta1"  # in every release from 0.14 on
REQUIRED_TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"
QUEUE_NAME = "kueue.x-k8s.io/queue-name"


class TopologyLevel(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    node_label: str


class TopologySpec(msgspec.Struct, frozen=True, kw_only=True):
    levels: tuple[TopologyLevel, ...] = ()


class Topology(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str = API_VERSION
    kind: str = "Topology"
    metadata: ObjectMeta
    spec: TopologySpec = TopologySpec()

    def has_level(self, label: str) -> bool:
        return any(level.node_label == label for level in self.spec.levels)
