"""Consumable capacity: how much of a device a request takes, and whether that much is left.

Every capacity of a device is checked, requested or not. The rounding follows the device's request policy; what it does
with absurd numbers differs between minor versions (see `int64`) and is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fishplate.dra import int64
from fishplate.dra.world import WrittenQuantity, read_quantity
from fishplate.k8s.quantity import Family, Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fishplate.dra.profile import Profile
    from fishplate.k8s.claim import CapacityRequirements
    from fishplate.k8s.resource import CapacityRequestPolicyRange, DeviceCapacity, QuantityText

_MILLI = -3


class ConsumptionError(Exception):
    """A capacity that no arithmetic can represent; fatal from 1.37 on."""


class Range(NamedTuple):
    min: Quantity | None
    max: Quantity | None
    step: Quantity | None


class Rule(NamedTuple):
    """One capacity of a device, read."""

    value: Quantity
    has_policy: bool
    default: Quantity | None
    values: tuple[Quantity, ...] | None
    range: Range | None


def read_rules(capacity: Mapping[str, DeviceCapacity]) -> dict[str, Rule]:
    return {name: _read_rule(entry) for name, entry in capacity.items()}


def _read_rule(entry: DeviceCapacity) -> Rule:
    value, policy = read_quantity(entry.value), entry.request_policy
    if policy is None:
        return Rule(value, False, None, None, None)
    values = None if policy.valid_values is None else tuple(map(read_quantity, policy.valid_values))
    spread = None if policy.valid_range is None else _read_range(policy.valid_range)
    return Rule(value, True, _optional(policy.default), values, spread)


def _read_range(written: CapacityRequestPolicyRange) -> Range:
    return Range(_optional(written.min), _optional(written.max), _optional(written.step))


def _optional(text: QuantityText | None) -> Quantity | None:
    return None if text is None else read_quantity(text)


def read_requests(capacity: CapacityRequirements | None) -> dict[str, Quantity]:
    return {} if capacity is None else {name: read_quantity(text) for name, text in capacity.requests.items()}


class Shortage(NamedTuple):
    """Why a device's capacity does not do: which one, and the reason in words."""

    name: str
    text: str


def find_shortage(
    requests: Mapping[str, Quantity],
    rules: Mapping[str, Rule],
    held: tuple[Mapping[str, Quantity], ...],
    profile: Profile,
) -> Shortage | None:
    """What is missing on a device of which `held` is taken already; ConsumptionError where that cannot be computed."""
    for name in requests:
        if name not in rules:
            return Shortage(name, f"has no capacity {name}")
    consumed = consume_all(requests, rules, profile)
    for name, rule in rules.items():
        amount = consumed[name]
        if _violates(amount, rule, profile):
            return Shortage(name, f"{amount} of {name} is against its request policy")
        total = amount
        for part in held:
            if name in part:
                total = total + part[name]
        if total > rule.value:
            taken = "" if total is amount else f", {total - amount} of it taken"
            return Shortage(name, f"needs {amount} of {name}, has {rule.value}{taken}")
    return None


def consume_all(requests: Mapping[str, Quantity], rules: Mapping[str, Rule], profile: Profile) -> dict[str, Quantity]:
    """What a request takes of each capacity; the first one that makes no sense decides."""
    consumed = {}
    for name, rule in rules.items():
        try:
            amount = consume(requests.get(name), rule, profile)
        except ConsumptionError as error:
            raise ConsumptionError(f'capacity "{name}": {error}') from error
        if profile.capacity_can_be_fatal and amount.sign < 0:
            raise ConsumptionError(f'capacity "{name}": capacity value is negative')
        consumed[name] = amount
    return consumed


def consume(requested: Quantity | None, rule: Rule, profile: Profile) -> Quantity:
    """What a request takes of one capacity."""
    if requested is None:
        return rule.value if rule.default is None else rule.default
    if not rule.has_policy:
        return requested
    if rule.range is not None and rule.range.min is not None:
        return _round_up(requested, rule.range, rule.range.min, profile)
    for value in rule.values or ():
        if requested <= value:
            return value
    return requested


def _round_up(requested: Quantity, spread: Range, least: Quantity, profile: Profile) -> Quantity:
    if requested < least:
        return least
    if spread.step is None:
        return requested
    if profile.fractional and _fits_milli(spread, spread.step):
        return _round_up_milli(requested, spread.step, least)
    if profile.capacity_can_be_fatal and requested.nanos > int64.MAX * 10**9:
        raise ConsumptionError(_unrepresentable(f"request {requested} exceeds MaxInt64"))
    step, minimum = _divisor(spread.step, 0), int64.scale(least, 0)
    count, rest = int64.divide(int64.wrap(int64.scale(requested, 0) - minimum), step)
    count += bool(rest)
    if profile.capacity_can_be_fatal and minimum >= 0 and count > int64.divide(int64.MAX - minimum, step)[0]:
        raise ConsumptionError(_unrepresentable(f"rounding request {requested} up to the next step passes MaxInt64"))
    rounded = int64.wrap(minimum + int64.wrap(step * count))
    return Quantity(rounded, 0, spread.step.family if profile.capacity_can_be_fatal else Family.BINARY)


def _round_up_milli(requested: Quantity, every: Quantity, least: Quantity) -> Quantity:
    wanted = _exact_milli(requested)
    if wanted is None:
        raise ConsumptionError(_unrepresentable(f"request {requested} is not a representable milli value"))
    step, minimum = _divisor(every, _MILLI), int64.scale(least, _MILLI)
    count, rest = int64.divide(int64.wrap(wanted - minimum), step)
    count += bool(rest)
    if count > int64.divide(int64.MAX - minimum, step)[0]:
        text = f"rounding request {requested} up to the next step passes the milli-value range"
        raise ConsumptionError(_unrepresentable(text))
    rounded = int64.wrap(minimum + int64.wrap(step * count))
    if rounded % 1000 == 0:
        return Quantity(rounded // 1000, 0, every.family)
    return Quantity(rounded, _MILLI, every.family)


def _violates(amount: Quantity, rule: Rule, profile: Profile) -> bool:
    if not rule.has_policy or (rule.default is not None and _same_form(amount, rule.default)):
        return False
    if rule.range is not None:
        return _leaves_range(amount, rule.range, profile)
    return bool(rule.values) and amount not in (rule.values or ())


def _leaves_range(amount: Quantity, spread: Range, profile: Profile) -> bool:
    if spread.max is not None and amount > spread.max:
        return True
    if spread.step is None:
        return False
    exponent, minimum = 0, spread.min or Quantity(0)
    value: int | None = None
    if profile.fractional and _fits_milli(spread, spread.step):
        exponent = _MILLI
        value = _exact_milli(amount)
        if value is None:
            return True
    else:
        value = int64.scale(amount, 0)
    difference = int64.wrap(value - int64.scale(minimum, exponent))
    return int64.divide(difference, _divisor(spread.step, exponent))[1] != 0


def _same_form(left: Quantity, right: Quantity) -> bool:
    """Equality of what is stored, text included: `1Ki` is not `1024` here, and a rounded value equals nothing."""
    if not (isinstance(left, WrittenQuantity) and isinstance(right, WrittenQuantity)):
        return False
    return left.small and right.small and left.text == right.text


def _fits_milli(spread: Range, step: Quantity) -> bool:
    parts = (spread.min, spread.max, step)
    if any(part is not None and _exact_milli(part) is None for part in parts):
        return False
    return int64.scale(step, _MILLI) >= 1


def _exact_milli(quantity: Quantity) -> int | None:
    milli = int64.scale(quantity, _MILLI)
    return milli if Quantity(milli, _MILLI) == quantity else None


def _divisor(step: Quantity, exponent: int) -> int:
    value = int64.scale(step, exponent)
    if value == 0:
        raise ConsumptionError("runtime error: integer divide by zero")
    return value


def _unrepresentable(text: str) -> str:
    return f"capacity request cannot be represented in the device's range arithmetic: {text}"
