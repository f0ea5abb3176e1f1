"""Numbers as C programs print them, with the rounding that came along."""

import math
import re
from typing import NamedTuple

_NUMBER = re.compile(r"(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?")


class Printed(NamedTuple):
    value: float
    slack: float
    """Relative: half of the last printed digit. 1 when nothing but zeros was printed."""
    flagged: bool = False


def parse_number(text: str) -> Printed | None:
    """A finite number that is not negative, or None. `1.2e+07` counts, and so does an asterisk behind it."""
    flagged = text.endswith("*")
    found = _NUMBER.fullmatch(text.rstrip("*"))
    if found is None or len(text) > 40:
        return None
    try:
        value = float(found[0])
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(value):
        return None
    step = 10.0 ** (int(found[3] or 0) - len(found[2] or ""))
    return Printed(value, min(1.0, step / 2 / value) if value else 1.0, flagged)


def parse_count(text: str) -> int | None:
    """A whole number that is not negative; sizes beyond an exbibyte are no sizes."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 19 else None
