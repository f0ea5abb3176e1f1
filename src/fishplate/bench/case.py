"""What a cause rule may look at, and what it answers."""

from typing import NamedTuple

from fishplate.bench.ceiling import Ceiling
from fishplate.bench.results import Context, Evidence, Path, Run
from fishplate.hardware.catalog import Size


class Case(NamedTuple):
    """All that a rule may look at. `rate` is the busbw or bandwidth that the verdict is about, in GB/s."""

    run: Run
    context: Context
    size: Size | None = None
    rate: float | None = None
    rate_line: int = 0
    ceiling: Ceiling | None = None
    siblings: tuple[Run, ...] = ()

    def path(self, transport: str) -> Path | None:
        return next((path for path in self.run.network.paths if path.transport == transport), None)

    def sign(self, kind: str) -> Evidence | None:
        return next(iter(self.run.network.signs.get(kind, ())), None)

    def setting(self, name: str) -> tuple[str, Evidence] | None:
        """A variable as NCCL read it, or as the test's environment had it, and the line that says so."""
        value = self.run.network.settings.get(name, self.run.environment.get(name))
        if value is None:
            return None
        return value, self.sign(f"set-{name}") or Evidence(line=0, text=f"{name}={value}")

    @property
    def nics(self) -> int | None:
        return self.context.nics or len(self.run.network.hcas) or None

    @property
    def layers(self) -> set[str]:
        return {hca.layer for hca in self.run.network.hcas} or ({self.run.settings.link} - {""})

    @property
    def is_roce(self) -> bool:
        return bool(self.layers & {"RoCE", "Ethernet"}) and "IB" not in self.layers

    @property
    def spans_nodes(self) -> bool:
        """More than one host, as far as anything tells; a single node has no use for a network."""
        known = self.context.nodes or len(self.run.hosts) or self.run.network.nodes
        return known is None or known > 1


class Named(NamedTuple):
    """What a rule found."""

    what: str
    shown: Evidence
    remedy: str
