"""Which allocator of which Kubernetes minor version is followed, and how it differs from the others.

kube-scheduler carries three allocators (stable, incubating, experimental) and runs the most stable one that knows every
enabled feature. They differ in more than features: in the order of pools, in what counts as distinct, in a few bugs
that decide real outcomes. Each difference is one property here, named after what it does, so that the search itself
reads without version numbers.

Source: k8s.io/dynamic-resource-allocation/structured v0.34.4, v0.35.4, v0.36.4 and v0.37.2.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from fishplate.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Mapping

MINORS = ("1.34", "1.35", "1.36", "1.37")
DEFAULT_MINOR = "1.36"
# Alpha in 1.37; a world that needs one of them is refused rather than answered wrongly.
_NOT_FOLLOWED = (
    "DRAOptionalNodeOperations",
    "DRADerivedAttributes",
    "DRADeviceCompatibilityGroups",
)


class Variant(StrEnum):
    STABLE = "stable"
    INCUBATING = "incubating"
    EXPERIMENTAL = "experimental"


class Distinct(StrEnum):
    """What distinctAttribute compares with."""

    UNKNOWN = "unknown"  # the constraint is refused
    SAME_DEVICE = "same-device"  # values are compared by address: only one device twice is a repetition
    PER_REQUEST = "per-request"  # only the latest device of each request is remembered
    ALL = "all"


class _Gate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    since: str
    enabled: str | None = None
    locked: str | None = None


class Profile:
    """One scheduler. Made by `profile()`; equal arguments give the very same object."""

    def __init__(self, minor: str, gates: Mapping[str, bool]) -> None:
        self.minor = minor
        self.gates = dict(gates)
        self.admin_access = gates["DRAAdminAccess"]
        self.prioritized_list = gates["DRAPrioritizedList"]
        self.partitionable = gates["DRAPartitionableDevices"]
        self.taints = gates["DRADeviceTaints"]
        self.consumable = gates["DRAConsumableCapacity"]
        self.binding = gates["DRADeviceBindingConditions"] and gates["DRAResourceClaimDeviceStatus"]
        self.fractional = gates.get("DRAFractionalCapacityRange", False)
        self.lists = gates.get("DRAListTypeAttributes", False)
        self.variant = self._choose()

    def _choose(self) -> Variant:
        wide = self.consumable or self.binding
        if self.minor == "1.34":
            # There the two gates of binding conditions count one by one, and only this allocator knows either.
            wide = wide or self.gates["DRADeviceBindingConditions"] or self.gates["DRAResourceClaimDeviceStatus"]
        if self._early:
            some = self.admin_access or self.prioritized_list or self.partitionable or self.taints
            return Variant.EXPERIMENTAL if wide else Variant.INCUBATING if some else Variant.STABLE
        if self.lists:
            return Variant.EXPERIMENTAL
        return Variant.INCUBATING if wide or self.fractional else Variant.STABLE

    def __repr__(self) -> str:
        return f"Profile({self.minor}, {self.variant})"

    @cached_property
    def _early(self) -> bool:
        return self.minor in ("1.34", "1.35")

    @cached_property
    def _modern(self) -> bool:
        """The allocators from 1.36 on that know every beta feature."""
        return not self._early and self.variant is not Variant.STABLE

    @cached_property
    def _oldest(self) -> bool:
        """The stable allocator before 1.36, which runs while every feature is off."""
        return self._early and self.variant is Variant.STABLE

    @cached_property
    def knows_capacity(self) -> bool:
        """Whether the code for consumable capacity and binding to nodes is there at all, enabled or not."""
        return self._modern or self.variant is Variant.EXPERIMENTAL

    # Pools

    @cached_property
    def sorts(self) -> bool:
        """Pools by driver and name, slices by name. Without it pools come in random order."""
        return self._modern

    @cached_property
    def binding_pools_last(self) -> bool:
        return self.knows_capacity

    @cached_property
    def binding_slices_last(self) -> bool:
        return self._early and self.variant is Variant.EXPERIMENTAL

    @cached_property
    def allows_incomplete(self) -> bool:
        return self.minor == "1.34"

    @cached_property
    def invalid_is_fatal(self) -> bool:
        return self.minor == "1.34"

    @cached_property
    def looks_elsewhere(self) -> bool:
        """Slices for other nodes count for completeness and counters."""
        return self.minor != "1.34"

    @cached_property
    def counters_reach_every_node(self) -> bool:
        """Slices with shared counters belong to every node, whatever node they name."""
        if self.variant is Variant.STABLE:
            return not self._early
        return self.minor in ("1.35", "1.36")

    @cached_property
    def skips_counter_slices(self) -> bool:
        """Slices with shared counters do not count at all while partitionable devices are off."""
        return not self.partitionable and self.looks_elsewhere and not self._oldest

    @cached_property
    def judges_incomplete(self) -> bool:
        """A pool can be incomplete and invalid at once."""
        return self._oldest

    @cached_property
    def ignores_compatibility_groups(self) -> bool:
        """Slices whose devices name compatibility groups are left out."""
        return self.minor == "1.37"

    # Requests and search

    @cached_property
    def combines(self) -> bool:
        """Within one request each set of devices is tried once, not in every order."""
        return self._modern

    @cached_property
    def confuses_subrequests(self) -> bool:
        """Mode All in a later subrequest mixes up subrequests: remembered matches, and all devices but the first."""
        return self._early

    @cached_property
    def leaks_rejected(self) -> bool:
        """A device rejected late keeps its counters and its mark."""
        return self._early

    @cached_property
    def rechecks_wrong_device(self) -> bool:
        """The second check of capacity looks at the slice's device number n for the n-th device of a request."""
        return self.minor == "1.34"

    @cached_property
    def every_taint_counts(self) -> bool:
        """Even one with an effect that nobody knows."""
        return self.minor == "1.34"

    @cached_property
    def limits_by_request(self) -> bool:
        return self.minor == "1.37"

    @cached_property
    def capacity_can_be_fatal(self) -> bool:
        return self.minor == "1.37"

    @cached_property
    def all_ignores_remaining_capacity(self) -> bool:
        return self.minor == "1.37"

    @cached_property
    def distinct(self) -> Distinct:
        if not self.knows_capacity:
            return Distinct.UNKNOWN
        return {"1.34": Distinct.SAME_DEVICE, "1.37": Distinct.ALL}.get(self.minor, Distinct.PER_REQUEST)

    @cached_property
    def restores_lists(self) -> bool:
        """Once a device is given back, lists match again that only it ruled out."""
        return self.minor == "1.37"

    @cached_property
    def shares_charge_counters_once(self) -> bool:
        return self.knows_capacity and self.minor != "1.34"

    @cached_property
    def shares_without_capacity_count(self) -> bool:
        """A share that holds no capacity still marks its device as in use, for counters."""
        return self.minor == "1.37"

    @cached_property
    def shares_hold_counters(self) -> bool:
        """Counters of a device are taken as soon as a share of it is."""
        return self._modern

    # Results and messages

    @cached_property
    def copies_tolerations(self) -> bool:
        return self.minor != "1.34" and not self._oldest

    @cached_property
    def binding_in_results(self) -> bool:
        return self.gates["DRADeviceBindingConditions"] if self.minor == "1.34" else self.binding

    @cached_property
    def tidies_config(self) -> bool:
        """A claim's configuration appears once, and names no requests where it covers all of them."""
        return self.minor == "1.37"

    @cached_property
    def errors_name_device(self) -> bool:
        return self.minor == "1.37"


def profile(minor: str = DEFAULT_MINOR, gates: Mapping[str, bool] | None = None) -> Profile:
    """The scheduler of that minor version; `gates` overrides its defaults."""
    if minor not in MINORS:
        raise UnknownNameError(
            f"no scheduler profile for Kubernetes {minor}", nearest=MINORS, remedy=f"use one of {', '.join(MINORS)}"
        )
    return _profile(minor, tuple(sorted((gates or {}).items())))


@cache
def _profile(minor: str, changes: tuple[tuple[str, bool], ...]) -> Profile:
    known = _gates()
    gates = {
        name: gate.enabled is not None and gate.enabled <= minor for name, gate in known.items() if gate.since <= minor
    }
    for name, wanted in changes:
        if name not in known:
            raise UnknownNameError(
                f"feature gate {name} does not change allocation", nearest=tuple(known), remedy="leave it out"
            )
        if name not in gates:
            raise InputError(f"feature gate {name} is unknown to Kubernetes {minor}")
        locked = known[name].locked
        if locked is not None and locked <= minor and wanted != gates[name]:
            raise InputError(f"feature gate {name} is locked since Kubernetes {locked}")
        if wanted and name in _NOT_FOLLOWED:
            raise InputError(f"feature gate {name} is alpha and not followed here", remedy="leave it off")
        gates[name] = wanted
    return Profile(minor, gates)


@cache
def _gates() -> dict[str, _Gate]:
    text = (files("fishplate.dra") / "data" / "gates.yaml").read_bytes()
    return msgspec.yaml.decode(text, type=dict[str, _Gate])
