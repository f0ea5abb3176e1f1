"""Every error that Fishplate raises on purpose.

    FishplateError               something went wrong that we can name
    ├── InputError               the user's words or files are off            exit 2
    │   ├── UsageError           a command line that makes no sense
    │   ├── UnknownNameError     a name nobody knows; carries the nearest ones
    │   ├── DocumentError        a file that cannot be read as what it should be
    │   ├── RootError            a directory that is no host's file system
    │   ├── CelCompileError      a selector that does not compile; carries each error with its place
    │   ├── CelRuntimeError      a selector that fails on a device
    │   └── AllocationError      claims that kube-scheduler gives up on, in its own words
    ├── BudgetError              a search that was stopped before it could tell  exit 3
    └── OutsideError             the world outside failed us                  exit 3

Each says what happened, where, and what to do about it. A negative verdict is not an error: it is a finding, and the
command that reports it exits with 1. Errors of libraries are chained (`raise … from`), never shown alone.
"""


class FishplateError(Exception):
    """What happened, where, and the remedy; printed in that order."""

    exit_code = 3

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}\n  {self.remedy}" if self.remedy else head


class InputError(FishplateError):
    exit_code = 2


class UsageError(InputError):
    pass


class UnknownNameError(InputError):
    """Nobody knows this name; `nearest` holds the known ones that look most like it."""

    def __init__(self, what: str, *, nearest: tuple[str, ...] = (), where: str = "", remedy: str = "") -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.nearest = nearest


class DocumentError(InputError):
    """A file that cannot be read as what it should be; `where` is `file:line` as far as known."""


class RootError(InputError):
    """A directory that was given as a host's file system and is none."""


class CelCompileError(InputError):
    """A selector that does not compile. `issues` are (line, column, message); the text is kube-apiserver's."""

    def __init__(
        self, what: str, *, issues: tuple[tuple[int, int, str], ...] = (), where: str = "", remedy: str = ""
    ) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.issues = issues


class CelRuntimeError(InputError):
    """A selector that fails on a device. kube-scheduler gives up on the whole pod when that happens."""


class AllocationError(InputError):
    """Claims that kube-scheduler refuses. It gives up on the pod, or, with `node_only`, on this node alone."""

    def __init__(self, what: str, *, node_only: bool = False, where: str = "", remedy: str = "") -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.node_only = node_only


class BudgetError(FishplateError):
    """A search that used up its steps or its time: neither yes nor no."""


class OutsideError(FishplateError):
    exit_code = 3
