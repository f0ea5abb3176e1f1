"""Time, uids and random names, as arguments: a test may bring its own."""

import random
import uuid
from datetime import UTC, datetime, timedelta

# No vowels and no digits that look like letters, as k8s.io/apimachinery/pkg/util/rand has it.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX = 5
_MAX_PREFIX = 58


class Clock:
    """The wall clock and real randomness."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def stamp(self, ahead_s: int = 0) -> str:
        return (self.now() + timedelta(seconds=ahead_s)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def uid(self) -> str:
        return str(uuid.uuid4())

    def name(self, prefix: str) -> str:
        return prefix[:_MAX_PREFIX] + "".join(random.choices(_ALPHABET, k=_SUFFIX))
