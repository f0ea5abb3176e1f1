"""64-bit arithmetic as Go does it: wrapping, with division towards zero.

Request policies of consumable capacity are computed this way upstream, so an absurd request really wraps around there,
and a faithful answer has to wrap with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fishplate.k8s.quantity import Quantity

MAX = 2**63 - 1
_SPAN = 2**64
_LARGEST_FAST_POWER = 19


def wrap(number: int) -> int:
    return (number + 2**63) % _SPAN - 2**63


def divide(left: int, right: int) -> tuple[int, int]:
    """Quotient and remainder; the remainder has the sign of `left`."""
    quotient, remainder = divmod(abs(left), abs(right))
    if (left < 0) != (right < 0):
        quotient = -quotient
    return wrap(quotient), -remainder if left < 0 else remainder


def scale(quantity: Quantity, exponent: int) -> int:
    """The value in units of 10**exponent, rounded as apimachinery's ScaledValue rounds."""
    if quantity.small:
        return _scale_small(quantity.mantissa, quantity.exponent - exponent)
    return _scale_large(quantity.mantissa, exponent - quantity.exponent)


def _scale_small(mantissa: int, shift: int) -> int:
    """Away from zero; nothing at all where the result does not fit."""
    if shift >= 0:
        if mantissa == 0:
            return 0
        if shift > _LARGEST_FAST_POWER:
            return 0
        scaled: int = mantissa * 10**shift
        return scaled if wrap(scaled) == scaled else 0
    power: int = 10**-shift
    quotient, remainder = divmod(abs(mantissa), power)
    quotient += bool(remainder)
    return quotient if mantissa >= 0 else -quotient


def _scale_large(mantissa: int, shift: int) -> int:
    if shift == 0:
        return wrap(mantissa)
    if shift < 0:
        return wrap(wrap(mantissa) * wrap(10**-shift))
    if mantissa < MAX and shift < _LARGEST_FAST_POWER:
        quotient, remainder = divide(wrap(mantissa), 10**shift)
        return quotient + bool(remainder)
    quotient, remainder = divmod(mantissa, 10**shift)
    return wrap(wrap(quotient) + bool(remainder))
