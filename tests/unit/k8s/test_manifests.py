"""Manifests as the cluster hands them out are read; a misspelt field in what a person wrote is not."""

import pytest

from fishplate.errors import DocumentError
from fishplate.k8s.kueue import Topology
from fishplate.k8s.manifests import parse_manifests

CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: c
  labels: {app: trainer}
  creationTimestamp: "2026-01-01T00:00:00Z"
  finalizers: [resource.kubernetes.io/delete-protection]
spec: {devices: {requests: []}}
status:
  reservedFor: [{resource: pods, name: p, uid: u}]
"""


def test_fields_that_exist_and_nobody_reads_are_no_typos() -> None:
    (manifest,) = parse_manifests(CLAIM, "c.yaml")
    assert manifest.value.metadata.name == "c"


def test_a_misspelt_field_of_the_metadata_is_named_with_the_nearest() -> None:
    with pytest.raises(DocumentError) as refused:
        parse_manifests(CLAIM.replace("labels:", "lables:"), "c.yaml")
    assert "metadata.lables: unknown field 'lables' (did you mean labels?)" in str(refused.value)


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1", "v1beta2"])
def test_a_topology_of_any_kueue_release_is_read(version: str) -> None:
    text = f"apiVersion: kueue.x-k8s.io/{version}\nkind: Topology\nmetadata: {{name: t}}\nspec: {{levels: []}}"
    (manifest,) = parse_manifests(text, "t.yaml")
    assert isinstance(manifest.value, Topology)


def test_a_topology_of_an_unknown_version_is_refused() -> None:
    text = "apiVersion: kueue.x-k8s.io/v9\nkind: Topology\nmetadata: {name: t}\nspec: {levels: []}"
    with pytest.raises(DocumentError, match="is not 'kueue"):
        parse_manifests(text, "t.yaml")
