"""Whatever a client sends is answered, and an answer that blames the server means a defect."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fishplate.sim.apiserver.request import Request
from fishplate.sim.apiserver.service import Service
from fishplate.sim.apiserver.types import load_types

TOKEN = "secret"
_NAMES = sorted({name for shape in load_types().values() for name in shape.fields})
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES) | st.text(max_size=4), inner),
    max_leaves=12,
)
_KINDS = ("resourceclaims", "resourceclaimtemplates", "resourceslices", "deviceclasses", "pods", "configmaps", "nodes")
_FORMS = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_GOOD: dict[str, dict[str, Any]] = {
    "pods": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
    "resourceclaims": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}},
    "configmaps": {"data": {"a": "b"}},
    "nodes": {},
}


def _place(kind: str) -> str:
    if kind in ("pods", "configmaps"):
        return f"/api/v1/namespaces/default/{kind}"
    if kind == "nodes":
        return "/api/v1/nodes"
    home = "/apis/resource.k8s.io/v1"
    return f"{home}/namespaces/default/{kind}" if kind.startswith("resourceclaim") else f"{home}/{kind}"


def _send(service: Service, method: str, path: str, body: bytes, media: str, **query: str) -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": media}
    answer = service.answer(Request(method, path, query, headers, body))
    return answer.status, json.loads(answer.body)


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(kind=st.sampled_from(_KINDS), spec=_JSON, metadata=_JSON, status=_JSON)
def test_any_object_is_taken_or_refused(kind: str, spec: object, metadata: object, status: object) -> None:
    service = Service({TOKEN: "admin"})
    body = json.dumps({"metadata": metadata, "spec": spec, "status": status, "data": spec}).encode()
    code, said = _send(service, "POST", _place(kind), body, "application/json")
    assert code in (201, 400, 409, 422) or said.get("message", "").startswith("resourceVersion should not be set")


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(kind=st.sampled_from(sorted(_GOOD)), patch=_JSON, form=st.sampled_from(_FORMS), field=st.sampled_from(_NAMES))
def test_any_patch_is_taken_or_refused(kind: str, patch: object, form: str, field: str) -> None:
    service = Service({TOKEN: "admin"})
    good = {"metadata": {"name": "one"}, **_GOOD[kind]}
    assert _send(service, "POST", _place(kind), json.dumps(good).encode(), "application/json")[0] == 201
    for body in (patch, {field: patch}, {"spec": {field: patch}}, {"metadata": {field: patch}}, [patch]):
        data = json.dumps(body).encode()
        if form == "application/apply-patch+yaml" and isinstance(body, dict):
            head = {"apiVersion": "v1" if kind != "resourceclaims" else "resource.k8s.io/v1"}
            kinds = {"pods": "Pod", "configmaps": "ConfigMap", "nodes": "Node", "resourceclaims": "ResourceClaim"}
            data = json.dumps({**body, **head, "kind": kinds[kind]}).encode()
        query = {"fieldManager": "x"} if "apply" in form else {}
        code, said = _send(service, "PATCH", f"{_place(kind)}/one", data, form, **query)
        # What does not fit the type is the real server's own 500.
        typed = said.get("message", "").startswith("failed to create typed patch object")
        assert code in (200, 400, 403, 404, 409, 413, 422) or typed


@pytest.mark.parametrize("kind", _KINDS)
@given(text=st.text(max_size=30))
@settings(max_examples=25, deadline=None)
def test_any_selector_and_token_is_taken_or_refused(kind: str, text: str) -> None:
    service = Service({TOKEN: "admin"})
    for name in ("labelSelector", "fieldSelector", "continue", "limit", "resourceVersion", "timeoutSeconds"):
        code, said = _send(service, "GET", _place(kind), b"", "", **{name: text})
        assert code in (200, 400, 410, 422, 504), said
