"""What a client writes, as Go would read and write it."""

from typing import Any

import pytest

from fishplate.sim.apiserver.conform import Conformer, DecodeError, canonical_time, conform
from fishplate.sim.apiserver.decode import parse_json
from fishplate.sim.apiserver.types import load_types

POD = load_types()["core.v1.Pod"]
CLAIM = load_types()["resource.v1.ResourceClaim"]
EVENT = load_types()["core.v1.Event"]


def test_structures_are_there_even_when_nobody_wrote_them() -> None:
    made = conform(POD, {"metadata": {"name": "p"}})
    assert made == {"metadata": {"name": "p"}, "spec": {"containers": None}, "status": {}}


def test_a_pointer_to_nothing_much_is_kept_and_a_plain_zero_is_not() -> None:
    spec = conform(POD, {"spec": {"hostNetwork": False, "automountServiceAccountToken": False, "priority": 0}})["spec"]
    assert spec == {"containers": None, "automountServiceAccountToken": False, "priority": 0}


def test_a_time_without_a_pointer_is_null_unless_it_may_be_left_out() -> None:
    made = conform(EVENT, {})
    assert made["firstTimestamp"] is None
    assert "creationTimestamp" not in made["metadata"]


def test_unknown_and_repeated_fields_are_told_in_the_order_of_the_document() -> None:
    text = b'{"spec":{"devices":{"requests":[{"name":"a","size":1,"name":"b"}],"colour":1}},"x":2}'
    reader = Conformer("x")
    read = reader.read(CLAIM, parse_json(text))
    assert reader.problems == [
        'duplicate field "spec.devices.requests[0].name"',
        'unknown field "spec.devices.requests[0].size"',
        'unknown field "spec.devices.colour"',
        'unknown field "x"',
    ]
    assert read["spec"]["devices"]["requests"] == [{"name": "b"}]


def test_parameters_are_kept_as_they_are() -> None:
    opaque = {"driver": "d", "parameters": {"deep": [{"empty": "", "none": None, "zero": 0}]}}
    body = {"spec": {"devices": {"config": [{"opaque": opaque}]}}}
    assert conform(CLAIM, body)["spec"]["devices"]["config"][0]["opaque"] == opaque


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"spec": {"priority": 2**31}}, "number 2147483648 into Go struct field PodSpec.spec.priority of type int32"),
        ({"spec": {"priority": 1.5}}, "of type int32"),
        ({"spec": {"priority": True}}, "cannot unmarshal bool"),
        ({"spec": {"containers": [{"name": 1}]}}, "Go struct field Container.spec.containers.name of type string"),
        ({"metadata": {"creationTimestamp": "soon"}}, 'parsing time "soon"'),
        ({"metadata": {"creationTimestamp": "2026-01-01"}}, "parsing time"),
    ],
)
def test_a_value_of_another_type_is_refused_in_gos_words(value: dict[str, Any], said: str) -> None:
    with pytest.raises(DecodeError, match=said):
        conform(POD, value)


def test_times_are_told_in_utc() -> None:
    assert canonical_time("2026-01-02T03:04:05+02:00") == "2026-01-02T01:04:05Z"
    assert canonical_time("2026-01-02T03:04:05.1234567Z", micro=True) == "2026-01-02T03:04:05.123456Z"


def test_json_nested_too_deep_is_refused_and_not_a_crash() -> None:
    with pytest.raises(DecodeError):
        parse_json(b"[" * 100_000)
