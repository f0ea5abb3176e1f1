"""Raw documents become a world."""

import pytest
import yaml

from fishplate.dra.documents import read_documents
from fishplate.errors import DocumentError

MANIFESTS = """
apiVersion: resource.k8s.io/v1
kind: ResourceSliceList
items:
- metadata: {name: s}
  spec:
    driver: d.io
    pool: {name: a, generation: 3, resourceSliceCount: 1}
    nodeName: a
    devices:
    - name: x
      capacity: {memory: {value: 80}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: a, labels: {zone: z}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: ignored}}
- apiVersion: resource.k8s.io/v1
  kind: ResourceClaim
  metadata: {name: waiting, namespace: ns}
  spec: {devices: {requests: [{name: r, exactly: {deviceClassName: any}}]}}
- apiVersion: resource.k8s.io/v1
  kind: ResourceClaim
  metadata: {name: holding, namespace: ns}
  spec: {devices: {}}
  status: {allocation: {devices: {results: [{request: r, driver: d.io, pool: a, device: x}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: t}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: any}}]}}}
"""


def read(text: str) -> list[tuple[str, object]]:
    return [(f"file:{index}", document) for index, document in enumerate(yaml.safe_load_all(text))]


def test_lists_are_opened_and_kinds_sorted() -> None:
    found = read_documents(read(MANIFESTS))
    assert [one.spec.pool.generation for one in found.world.slices] == [3]
    assert [(node.name, node.labels) for node in found.nodes] == [("a", {"zone": "z"})]
    assert [str(claim) for claim in found.claims] == ["ns/waiting"]
    assert [str(claim) for claim in found.world.claims] == ["ns/holding"]


def test_defaults_are_filled_in() -> None:
    found = read_documents(read(MANIFESTS))
    for spec in (found.claims[0].spec, found.templates[0].spec.spec):
        exactly = spec.devices.requests[0].exactly
        assert exactly is not None
        assert (exactly.allocation_mode, exactly.count) == ("ExactCount", 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("just text", "is no Kubernetes object"),
        ("{apiVersion: resource.k8s.io/v1beta1, kind: ResourceClaim}", "is of resource.k8s.io/v1beta1"),
        ("{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: 1}}", "Expected `str`"),
    ],
)
def test_what_is_no_such_object_is_told_with_its_place(text: str, words: str) -> None:
    with pytest.raises(DocumentError, match=words) as caught:
        read_documents(read(text))
    assert caught.value.where == "file:0"
