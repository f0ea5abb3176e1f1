"""Which allocator runs, and which gates may be changed."""

import pytest

from fishplate.dra.profile import Variant, profile
from fishplate.errors import InputError, UnknownNameError


@pytest.mark.parametrize(
    ("minor", "gates", "variant"),
    [
        ("1.34", {}, Variant.EXPERIMENTAL),
        ("1.35", {}, Variant.INCUBATING),
        ("1.35", {"DRAConsumableCapacity": True}, Variant.EXPERIMENTAL),
        ("1.36", {}, Variant.INCUBATING),
        ("1.36", {"DRAConsumableCapacity": False, "DRADeviceBindingConditions": False}, Variant.STABLE),
        ("1.36", {"DRAListTypeAttributes": True}, Variant.EXPERIMENTAL),
        ("1.37", {}, Variant.INCUBATING),
        ("1.37", {"DRAListTypeAttributes": True, "DRAConsumableCapacity": False}, Variant.EXPERIMENTAL),
    ],
)
def test_gates_choose_the_allocator(minor: str, gates: dict[str, bool], variant: Variant) -> None:
    assert profile(minor, gates).variant is variant


def test_default_gates_follow_the_minor_version() -> None:
    assert not profile("1.35").taints
    assert profile("1.36").taints
    assert "DRAFractionalCapacityRange" not in profile("1.36").gates


@pytest.mark.parametrize(
    ("gates", "words"),
    [
        ({"DRANope": True}, "does not change allocation"),
        ({"DRAFractionalCapacityRange": True}, "unknown to Kubernetes 1.36"),
        ({"DRAAdminAccess": False}, "locked since Kubernetes 1.36"),
    ],
)
def test_gates_that_cannot_be_changed_are_refused(gates: dict[str, bool], words: str) -> None:
    with pytest.raises(InputError, match=words):
        profile("1.36", gates)


@pytest.mark.parametrize("gate", ["DRAOptionalNodeOperations", "DRADerivedAttributes", "DRADeviceCompatibilityGroups"])
def test_alpha_gates_that_nobody_followed_are_refused_by_name(gate: str) -> None:
    assert not profile("1.37", {gate: False}).gates[gate]
    with pytest.raises(InputError, match=f"feature gate {gate} is alpha and not followed here"):
        profile("1.37", {gate: True})


def test_an_unknown_minor_version_names_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"no scheduler profile for Kubernetes 1\.33"):
        profile("1.33")


def test_equal_profiles_are_one() -> None:
    assert profile("1.36", {}) is profile("1.36")
