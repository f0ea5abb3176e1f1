"""The search: claims in order, requests in order, devices in order, first full solution wins.

This is kube-scheduler's depth-first search, step for step: the number of steps is the same, too. It is exhaustive, so
"does not fit" is a proof. Three ways out of a level: done, failed (try the next device), too many (the claim would have
more results than it may: no other device helps, only another subrequest). Errors that end everything are raised.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from fishplate.dra.consumption import ConsumptionError, Shortage, consume_all, find_shortage
from fishplate.dra.counters import Counters
from fishplate.dra.pools import Candidate
from fishplate.errors import AllocationError
from fishplate.k8s.resource import MAX_RESULTS_PER_CLAIM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fishplate.dra.budget import Budget
    from fishplate.dra.constraints import Constraint
    from fishplate.dra.pools import Pool
    from fishplate.dra.requests import Preparation, Prepared, Wanted
    from fishplate.dra.scene import Scene
    from fishplate.dra.world import DeviceID
    from fishplate.k8s.claim import DeviceToleration
    from fishplate.k8s.quantity import Quantity
    from fishplate.k8s.resource import DeviceTaint

_BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")


class Outcome(IntEnum):
    FAILED = 0
    DONE = 1
    TOO_MANY = 2


class Taken(NamedTuple):
    """A device in a claim's result, and what has to be undone to give it back."""

    wanted: Wanted
    candidate: Candidate
    counted: bool
    consumed: dict[str, Quantity] | None
    was_shared: bool


class Search:
    def __init__(
        self, scene: Scene, preparation: Preparation, claims: list[Prepared], pools: list[Pool], budget: Budget
    ) -> None:
        self.scene = scene
        self.profile = scene.profile
        self.claims = claims
        self.pools = pools
        self.budget = budget
        self.candidates = _usable_candidates(scene, pools)
        self.results: list[list[Taken]] = [[] for _ in claims]
        self.chosen: dict[tuple[int, int], int] = {}
        self.counters = Counters(scene)
        self.taken: dict[DeviceID, set[int]] = {}
        self.sharing: dict[DeviceID, dict[str, Quantity]] = {}
        self._preparation = preparation

    def run(self) -> bool:
        outcome = self._one(0, 0, 0, 0, False, 0)
        if outcome is Outcome.TOO_MANY:
            # Limits were checked beforehand; only an allocator that confuses subrequests gets here.
            raise AllocationError("allocation max size exceeded")
        return outcome is Outcome.DONE

    def _one(self, c: int, r: int, k: int, d: int, within: bool, start: int) -> Outcome:
        """Device `d` of subrequest `k` of request `r` of claim `c`; `within` a subrequest that was chosen already."""
        self.budget.spend()
        if c >= len(self.claims):
            return Outcome.DONE
        claim = self.claims[c]
        if r >= len(claim.requests):
            # A later claim with too many devices may do with fewer after other choices here.
            outcome = self._one(c + 1, 0, 0, 0, False, 0)
            return Outcome.FAILED if outcome is Outcome.TOO_MANY else outcome
        alternatives = claim.requests[r]
        if not within and alternatives[0].parent:
            return self._try_alternatives(c, r, len(alternatives))
        wanted = alternatives[k]
        if wanted.takes_all and not wanted.all_devices:
            return Outcome.FAILED
        if d >= wanted.count:
            return self._one(c, r + 1, 0, 0, False, 0)
        if len(self.results[c]) + wanted.count - d > MAX_RESULTS_PER_CLAIM:
            return Outcome.TOO_MANY
        if wanted.takes_all:
            return self._take_all(c, r, k, d, within)
        return self._try_devices(c, r, k, d, within, start)

    def _try_alternatives(self, c: int, r: int, count: int) -> Outcome:
        result = Outcome.TOO_MANY
        for k in range(count):
            outcome = self._one(c, r, k, 0, True, 0)
            if outcome is Outcome.DONE:
                self.chosen[c, r] = k
                return outcome
            if outcome is Outcome.FAILED:
                result = outcome
        return result

    def _take_all(self, c: int, r: int, k: int, d: int, within: bool) -> Outcome:
        wanted = self.claims[c].requests[r][k]
        taken = self.take(c, wanted, wanted.all_devices[d], d, must=True)
        if taken is None:
            return Outcome.FAILED
        following = 0 if self.profile.confuses_subrequests else k
        outcome = self._one(c, r, following, d + 1, within, 0)
        if outcome is not Outcome.DONE:
            self.give_back(c, taken)
        return outcome

    def _try_devices(self, c: int, r: int, k: int, d: int, within: bool, start: int) -> Outcome:
        claim = self.claims[c]
        wanted = claim.requests[r][k]
        candidates, combines, consumable = self.candidates, self.profile.combines, self.profile.consumable
        for index in range(start, len(candidates)):
            candidate = candidates[index]
            if candidate.pool.invalid:
                raise AllocationError(f"pool {candidate.pool.id[1]} is invalid: {candidate.pool.invalid}")
            if self.is_in_use(c, wanted, candidate):
                continue
            if not self._preparation.is_selectable(claim.claim, wanted, candidate, wanted.matches):
                continue
            if consumable and self.find_shortage(c, wanted, candidate, "checking") is not None:
                continue
            taken = self.take(c, wanted, candidate, d, must=False)
            if taken is None:
                continue
            outcome = self._one(c, r, k, d + 1, within, index + 1 if combines else 0)
            if outcome is Outcome.DONE:
                return outcome
            self.give_back(c, taken)
            if outcome is Outcome.TOO_MANY:
                return outcome
        return Outcome.FAILED

    def is_in_use(self, c: int, wanted: Wanted, candidate: Candidate) -> bool:
        """Admin access minds only what its own claim has taken."""
        takers = self.taken.get(candidate.id)
        if wanted.admin:
            return takers is not None and c in takers
        return candidate.held or bool(takers)

    def find_shortage(self, c: int, wanted: Wanted, candidate: Candidate, doing: str) -> Shortage | None:
        held = self.scene.holdings.capacity.get(candidate.id)
        sharing = self.sharing.get(candidate.id)
        parts: tuple[Mapping[str, Quantity], ...] = tuple(part for part in (held, sharing) if part)
        if not candidate.device.capacity and not wanted.capacity:
            return None
        try:
            return find_shortage(wanted.capacity, candidate.rules, parts, self.profile)
        except ConsumptionError as error:
            place = f"claim {self.claims[c].claim}, request {wanted.name}"
            raise AllocationError(f"{place}: {doing} capacity for device {candidate}: {error}") from error

    def take(self, c: int, wanted: Wanted, candidate: Candidate, d: int, *, must: bool) -> Taken | None:
        """Take a device as number `d` of its request, or say no and change nothing (but: Profile.leaks_rejected)."""
        device, profile = candidate.device, self.profile
        if (not candidate.multiple or not wanted.admin) and self.is_in_use(c, wanted, candidate):
            return None
        if device.consumes_counters and not profile.partitionable:
            return None
        counted = bool(device.consumes_counters) and not self.is_charged(candidate)
        if counted and not self.counters.reserve(candidate):
            return None
        keep = profile.leaks_rejected
        if profile.taints and self.find_taint(wanted, candidate) is not None:
            if counted and not keep:
                self.counters.release(candidate)
            return None
        if not self._constrain(c, wanted, candidate):
            if counted and not keep:
                self.counters.release(candidate)
            if must:
                raise AllocationError(
                    f"claim {self.claims[c].claim}, request {wanted.name}: cannot add device {candidate} "
                    "because a claim constraint would not be satisfied"
                )
            return None
        if not candidate.multiple:
            self.taken.setdefault(candidate.id, set()).add(c)
        consumed: dict[str, Quantity] | None = None
        was_shared = False
        if profile.consumable:
            if self.find_shortage(c, wanted, self._rechecked(candidate, d), "rechecking") is not None:
                if not keep:
                    self._undo(c, Taken(wanted, candidate, counted, None, False))
                return None
            if candidate.multiple:
                consumed = consume_all(wanted.capacity, candidate.rules, profile)
                was_shared = self._share(candidate, consumed)
        taken = Taken(wanted, candidate, counted, consumed, was_shared)
        self.results[c].append(taken)
        return taken

    def _rechecked(self, candidate: Candidate, d: int) -> Candidate:
        if not self.profile.rechecks_wrong_device:
            return candidate
        devices = candidate.slice.spec.devices
        if d >= len(devices):
            raise AllocationError(f"runtime error: index out of range [{d}] with length {len(devices)}")
        return Candidate(devices[d], candidate.slice, candidate.pool, consumable=True)

    def give_back(self, c: int, taken: Taken) -> None:
        self.results[c].pop()
        self._undo(c, taken)

    def _undo(self, c: int, taken: Taken) -> None:
        candidate, keep = taken.candidate, self.profile.leaks_rejected
        if taken.consumed is not None and (taken.consumed or not keep):
            self._unshare(candidate, taken.consumed, was_shared=taken.was_shared and not keep)
        if not candidate.multiple:
            self.taken[candidate.id].discard(c)
        wanted = taken.wanted
        for constraint in reversed(self.claims[c].constraints):
            if constraint.applies(wanted.base_name, wanted.subrequest):
                constraint.remove(wanted.base_name)
        if taken.counted and not (keep and candidate.multiple):
            self.counters.release(candidate)

    def is_charged(self, candidate: Candidate) -> bool:
        """Whether a shared device's counters are accounted for already."""
        if not candidate.multiple or not self.profile.shares_charge_counters_once:
            return False
        holdings = self.scene.holdings
        if self.profile.shares_without_capacity_count and candidate.id in holdings.shared:
            return True
        return candidate.id in holdings.capacity or candidate.id in self.sharing

    def find_taint(self, wanted: Wanted, candidate: Candidate) -> DeviceTaint | None:
        """The first taint that keeps the device from being allocated."""
        for taint in candidate.device.taints:
            if taint.effect not in _BLOCKING_EFFECTS and not self.profile.every_taint_counts:
                continue
            if not any(_tolerates(toleration, taint) for toleration in wanted.written.tolerations):
                return taint
        return None

    def _constrain(self, c: int, wanted: Wanted, candidate: Candidate) -> bool:
        added: list[Constraint] = []
        for constraint in self.claims[c].constraints:
            if not constraint.applies(wanted.base_name, wanted.subrequest):
                continue
            if not constraint.add(wanted.base_name, candidate):
                for done in reversed(added):
                    done.remove(wanted.base_name)
                return False
            added.append(constraint)
        return True

    def _share(self, candidate: Candidate, consumed: dict[str, Quantity]) -> bool:
        known = self.sharing.get(candidate.id)
        if known is None:
            self.sharing[candidate.id] = dict(consumed)
            return False
        for name, amount in consumed.items():
            known[name] = known[name] + amount if name in known else amount
        return True

    def _unshare(self, candidate: Candidate, consumed: dict[str, Quantity], *, was_shared: bool) -> None:
        known = self.sharing.get(candidate.id)
        if known is None:
            return
        for name, amount in consumed.items():
            if name in known:
                known[name] = known[name] - amount
        if all(amount.sign == 0 for amount in known.values()):
            if was_shared:
                # The entry also marks the device as shared, which an earlier share relies on.
                self.sharing[candidate.id] = {}
            else:
                del self.sharing[candidate.id]


def _usable_candidates(scene: Scene, pools: list[Pool]) -> list[Candidate]:
    candidates: list[Candidate] = []
    for pool in pools:
        if pool.invalid and not scene.profile.invalid_is_fatal:
            continue
        if pool.incomplete and not scene.profile.allows_incomplete:
            continue
        candidates += pool.candidates
    return candidates


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
