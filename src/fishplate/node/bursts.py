"""When a burst of events is worth one look.

A look at the host costs milliseconds, events come in thousands: a node that starts a hundred pods sees a thousand link
events. So a burst is looked at when it has been quiet for a moment; one that does not end is looked at after a while
all the same, and then ever more seldom. Time comes in as an argument; nothing here waits.
"""


class Burst:
    """`quiet` seconds without an event end a burst. One that goes on is due after `longest` seconds, then after twice
    that, and so on up to `slowest`."""

    def __init__(self, *, quiet: float = 0.2, longest: float = 2.0, slowest: float = 60.0) -> None:
        self._quiet = quiet
        self._longest = longest
        self._slowest = slowest
        self._patience = longest
        self._since: float | None = None  # the first event that nobody has looked at
        self._latest: float | None = None  # the last event of all

    def note(self, now: float) -> None:
        """An event."""
        if self._latest is None or now - self._latest >= self._quiet:
            self._patience = self._longest
        self._latest = now
        if self._since is None:
            self._since = now

    @property
    def due(self) -> float | None:
        """When to look, unless more events come; None while there is nothing to look for."""
        if self._since is None or self._latest is None:
            return None
        return min(self._latest + self._quiet, self._since + self._patience)

    def take(self, now: float) -> bool:
        """Whether it is time to look; then what was noted is done with."""
        due = self.due
        if due is None or now < due:
            return False
        if self._latest is not None and now - self._latest < self._quiet:
            self._patience = min(self._patience * 2, self._slowest)
        self._since = None
        return True
