"""Protobuf bodies, as Go's clients write them, and as nobody should."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishplate.sim.apiserver.conform import DecodeError
from fishplate.sim.apiserver.protobuf import read_envelope
from fishplate.sim.apiserver.request import Request
from fishplate.sim.apiserver.service import Service
from fishplate.sim.apiserver.types import Shape, load_types

POD = load_types()["core.v1.Pod"]
MAP = load_types()["core.v1.ConfigMap"]
CLAIM = load_types()["resource.v1.ResourceClaim"]


def _length(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def _put(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return _length(number << 3) + _length(value % (1 << 64))
    return _length(number << 3 | 2) + _length(len(value)) + value


def _envelope(version: str, kind: str, body: bytes) -> bytes:
    return b"k8s\x00" + _put(1, _put(1, version.encode()) + _put(2, kind.encode())) + _put(2, body)


def test_maps_strings_and_times() -> None:
    meta = _put(1, b"one") + _put(8, _put(1, 1_767_323_045) + _put(2, 0)) + _put(11, _put(1, b"k") + _put(2, b"v"))
    data = _put(2, _put(1, b"a") + _put(2, b"words")) + _put(2, _put(1, b"b"))
    read = read_envelope(_envelope("v1", "ConfigMap", _put(1, meta) + data), MAP)
    assert read == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "one", "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"k": "v"}},
        "data": {"a": "words", "b": ""},
    }


def test_what_is_embedded_in_go_stands_beside_the_rest() -> None:
    volume = _put(1, b"conf") + _put(2, _put(1, _put(1, b"/x")))
    port = _put(3, 80) + _put(2, -1)
    resources = _put(1, _put(1, b"cpu") + _put(2, _put(1, b"500m")))
    container = _put(1, b"c") + _put(6, port) + _put(8, resources)
    read = read_envelope(_envelope("v1", "Pod", _put(2, _put(1, volume) + _put(2, container))), POD)
    assert read["spec"] == {
        "volumes": [{"name": "conf", "hostPath": {"path": "/x"}}],
        "containers": [
            {"name": "c", "ports": [{"containerPort": 80, "hostPort": -1}], "resources": {"limits": {"cpu": "500m"}}}
        ],
    }


def test_a_creation_by_protobuf_is_stored(service: Service) -> None:
    body = _envelope("v1", "ConfigMap", _put(1, _put(1, b"one")) + _put(2, _put(1, b"a") + _put(2, b"1")))
    headers = {"authorization": "Bearer secret", "content-type": "application/vnd.kubernetes.protobuf"}
    path = "/api/v1/namespaces/default/configmaps"
    assert service.answer(Request("POST", path, {}, headers, body)).status == 201
    assert b'"data":{"a":"1"}' in service.answer(Request("GET", f"{path}/one", {}, headers, b"")).body
    assert service.answer(Request("POST", path, {}, headers, body[:-3])).status == 400


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"k8s\x00\x0a\xff", b"k8s\x00\x12\x02\x0a\x05", b"k8s\x00\x0b", b"k8s\x00\x12\x02\x0a\xff"]
)
def test_what_is_cut_short_or_no_protobuf_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_envelope(data, MAP)


@given(st.binary(max_size=60), st.sampled_from([POD, MAP, CLAIM]))
def test_any_bytes_are_read_or_refused(data: bytes, shape: Shape) -> None:
    with contextlib.suppress(DecodeError):
        read_envelope(b"k8s\x00" + _put(2, data), shape)
