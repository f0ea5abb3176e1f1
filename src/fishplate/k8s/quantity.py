"""Kubernetes quantities, exact.

Why not a number: `1Ki` and `1024` are equal but print differently, `1.0` is not "an integer" to CEL while `1` is, and
decimal values may exceed 64 bits. So a Quantity keeps what k8s.io/apimachinery/pkg/api/resource keeps: a mantissa, a
decimal exponent, the family of suffixes it was written in, and whether the value outgrew the small 64-bit form.

Invariants: no floats anywhere but in `approximate()`; nothing finer than a billionth exists (finer input is rounded
away from zero); binary-suffixed input is capped at 2**63-1.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache, total_ordering

from fishplate.errors import InputError

MAX_INT64 = 2**63 - 1
_MIN_INT64 = -(2**63)
_NANO = -9
# 10**18 is the largest power of ten in an int64; apimachinery decides by digits whether the small form fits.
_SMALL_DIGITS = 18
_BINARY_DIGITS = 15

_SHAPE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES = {exponent: name for name, exponent in _DECIMAL.items()}
_BINARY_NAMES = {exponent // 10: name for name, exponent in _BINARY.items()} | {0: ""}
_DIGITS = frozenset("0123456789")
_SUFFIX_LETTERS = frozenset("eEinumkKMGTP")


class Family(Enum):
    """The suffixes a quantity is written in, kept so that output looks like input."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


@total_ordering
class Quantity:
    """`mantissa * 10**exponent`; equal and ordered by value alone."""

    __slots__ = ("_nanos", "exponent", "family", "mantissa", "small")

    def __init__(
        self, mantissa: int, exponent: int = 0, family: Family = Family.DECIMAL, *, small: bool = True
    ) -> None:
        self.mantissa = mantissa
        self.exponent = exponent
        self.family = family
        self.small = small
        self._nanos: int | None = None

    @property
    def nanos(self) -> int:
        """The value in billionths, exact; computed when first asked for, because `1e99999` is legal and long."""
        if self._nanos is None:
            shift = self.exponent - _NANO
            self._nanos = self.mantissa * 10**shift if shift >= 0 else self.mantissa // 10**-shift
        return self._nanos

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __add__(self, other: Quantity) -> Quantity:
        return _sum(self, other.mantissa, other)

    def __sub__(self, other: Quantity) -> Quantity:
        return _sum(self, -other.mantissa, other)

    @property
    def sign(self) -> int:
        return (self.mantissa > 0) - (self.mantissa < 0)

    @property
    def value(self) -> int:
        """Rounded up to an integer (towards positive infinity), as Kubernetes' Value()."""
        return -(-self.nanos // 10**9)

    def as_integer(self) -> int | None:
        """The integer this is, or None. `1.0` and `1000m` are None: Kubernetes looks at the form, not at the value."""
        if not self.small or self.exponent < 0:
            return None
        if self.exponent > _SMALL_DIGITS:
            return 0 if self.mantissa == 0 else None
        whole = self.mantissa * 10**self.exponent
        return whole if _MIN_INT64 <= whole <= MAX_INT64 else None

    def approximate(self) -> float:
        if self.exponent == 0:
            return float(self.mantissa)
        return float(self.mantissa) * float(f"1e{self.exponent}")

    def __str__(self) -> str:
        if self.mantissa == 0:
            return "0"
        if self.family is Family.BINARY and abs(self.nanos) >= 1024 * 10**9 and self.nanos % 10**9 == 0:
            whole = self.nanos // 10**9
            # Upstream turns the sign round to find the suffix, which the smallest number does not survive.
            return str(whole) if self.small and whole == _MIN_INT64 else _binary_text(whole)
        mantissa, exponent = self.mantissa, self.exponent
        while mantissa % 10 == 0:
            mantissa, exponent = mantissa // 10, exponent + 1
        while exponent % 3:
            mantissa, exponent = mantissa * 10, exponent - 1
        if self.family is not Family.EXPONENT and exponent in _DECIMAL_NAMES:
            return f"{mantissa}{_DECIMAL_NAMES[exponent]}"
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)


def _binary_text(whole: int) -> str:
    power = 0
    while whole % 1024 == 0 and power < 6:
        whole, power = whole // 1024, power + 1
    return f"{whole}{_BINARY_NAMES[power]}"


def _sum(left: Quantity, mantissa: int, right: Quantity) -> Quantity:
    """`left` plus `mantissa` at the exponent of `right`; zero takes over the other's family, as upstream."""
    family = right.family if left.mantissa == 0 else left.family
    small = left.small and right.small
    if small and mantissa == 0:
        return Quantity(left.mantissa, left.exponent, family)
    if small and left.mantissa == 0:
        return Quantity(mantissa, right.exponent, family)
    exponent = min(left.exponent, right.exponent)
    grown = (left.mantissa * 10 ** (left.exponent - exponent), mantissa * 10 ** (right.exponent - exponent))
    total = sum(grown)
    fits = all(_MIN_INT64 <= part <= MAX_INT64 for part in (*grown, total))
    return Quantity(total, exponent, family, small=small and fits)


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Quantity:
    """Read a quantity the way kube-apiserver does; InputError carries its message. Equal texts give one object."""
    if not text:
        raise InputError(_SHAPE)
    if text == "0":
        return Quantity(0)
    negative, number, fraction, suffix = _split(text)
    family, exponent = _interpret(suffix)
    digits = int(number + fraction)
    if family is Family.BINARY:
        room = _BINARY_DIGITS - len(number) - int(exponent * 3 / 10) - 1
        if not fraction and room >= 0 and abs(digits << exponent) <= MAX_INT64:
            return Quantity(-(digits << exponent) if negative else digits << exponent, 0, family)
        return _large(digits << exponent, -len(fraction), family, negative)
    scale = exponent - len(fraction)
    if len(number) + len(fraction) <= _SMALL_DIGITS and scale >= _NANO:
        return Quantity(-digits if negative else digits, scale, family)
    return _large(digits, scale, family, negative)


def _large(digits: int, scale: int, family: Family, negative: bool) -> Quantity:
    """The arbitrary-precision form: rounded up to billionths, binary values capped."""
    if digits:
        shift = scale - _NANO
        digits = digits * 10**shift if shift >= 0 else -(-digits // 10**-shift)
        scale = _NANO
    if family is Family.BINARY and digits > MAX_INT64 * 10**9:
        digits, scale = MAX_INT64, 0
    elif family is Family.BINARY and 0 < digits < 10**9:
        family = Family.DECIMAL
    return Quantity(-digits if negative else digits, scale, family, small=False)


def _split(text: str) -> tuple[bool, str, str, str]:
    """Sign, digits before the point without leading zeros, digits after it, suffix."""
    position, end = int(text[0] in "+-"), len(text)
    negative = text[0] == "-"
    while position < end and text[position] == "0":
        position += 1
    start = position
    position = _skip(text, position, _DIGITS)
    number = text[start:position] or "0"
    fraction = ""
    if position < end and text[position] == ".":
        start = position + 1
        position = _skip(text, start, _DIGITS)
        fraction = text[start:position]
    tail = _skip(text, position, _SUFFIX_LETTERS)
    if tail < end and text[tail] in "+-":
        tail += 1
    if _skip(text, tail, _DIGITS) != end:
        raise InputError(_SHAPE)
    return negative, number, fraction, text[position:]


def _skip(text: str, position: int, wanted: frozenset[str]) -> int:
    while position < len(text) and text[position] in wanted:
        position += 1
    return position


def _interpret(suffix: str) -> tuple[Family, int]:
    if suffix in _DECIMAL:
        return Family.DECIMAL, _DECIMAL[suffix]
    if suffix in _BINARY:
        return Family.BINARY, _BINARY[suffix]
    if len(suffix) > 1 and suffix[0] in "eE" and suffix[1:].lstrip("+-").isascii():
        try:
            exponent = int(suffix[1:])
        except ValueError:
            pass
        else:
            if _MIN_INT64 <= exponent <= MAX_INT64:
                # Upstream narrows the exponent to 32 bits without a check.
                return Family.EXPONENT, (exponent + 2**31) % 2**32 - 2**31
    raise InputError("unable to parse quantity's suffix")
