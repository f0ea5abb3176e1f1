"""Raw YAML becomes what the API server would store."""

import msgspec
import pytest

from fishplate.k8s.claim import ResourceClaim, ResourceClaimTemplate, default_claim


def read(request: dict[str, object]) -> ResourceClaim:
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
    return default_claim(msgspec.convert(claim, ResourceClaim))


@pytest.mark.parametrize(
    ("written", "mode", "count"),
    [
        ({}, "ExactCount", 1),
        ({"count": 3}, "ExactCount", 3),
        ({"allocationMode": "All"}, "All", 0),
        ({"allocationMode": "ExactCount"}, "ExactCount", 1),
    ],
)
def test_mode_and_count_are_filled_in(written: dict[str, object], mode: str, count: int) -> None:
    exactly = read({"name": "r", "exactly": {"deviceClassName": "x", **written}}).spec.devices.requests[0].exactly
    assert exactly is not None
    assert (exactly.allocation_mode, exactly.count) == (mode, count)


def test_subrequests_and_tolerations_are_filled_in() -> None:
    claim = read(
        {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "x", "tolerations": [{"key": "k"}]}]}
    )
    sub = claim.spec.devices.requests[0].first_available[0]
    assert (sub.allocation_mode, sub.count, sub.tolerations[0].operator) == ("ExactCount", 1, "Equal")


def test_a_claim_is_named_as_the_scheduler_names_it() -> None:
    template = {"metadata": {"name": "t", "namespace": "ns"}, "spec": {"spec": {"devices": {"requests": []}}}}
    claim = msgspec.convert(template, ResourceClaimTemplate).as_claim("pod-claim")
    assert str(claim) == "ns/pod-claim"
