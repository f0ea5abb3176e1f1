"""A compiled selector: whether it matches a device, what it costs, what it reads, and why it said no."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from fishplate.cel.access import Reads, find_reads
from fishplate.cel.explain import Clause, Explanation
from fishplate.cel.generate import generate
from fishplate.cel.guards import Unsupported
from fishplate.cel.root import Root
from fishplate.cel.tracker import COST_LIMIT, Cancelled
from fishplate.cel.values import Err, Value, type_name
from fishplate.errors import CelRuntimeError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fishplate.cel.builder import Built
    from fishplate.cel.checker import Checked
    from fishplate.cel.declarations import Declarations
    from fishplate.cel.device import Device


_Selector: TypeAlias = "Callable[[Device], bool]"
# Values that do not parse, values that the code was not made for.
_LEFT_TO_EVALUATOR = (Unsupported, InputError, Cancelled)


class _Rules(Protocol):
    modern: bool
    accepts_lists: bool
    declared: Declarations


class Outcome(NamedTuple):
    """One evaluation: a value or an error message, and the cost up to there (None if it never started)."""

    value: Value
    error: str
    cost: int | None


class Program:
    def __init__(
        self,
        *,
        source: str,
        built: Built,
        checked: Checked,
        cost: int,
        spans: dict[int, tuple[int, int]],
        environment: _Rules,
    ) -> None:
        self.source = source
        self.cost = cost
        self._node = built.node
        self._checked = checked
        self._spans = spans
        self._declared = environment.declared
        self._modern = environment.modern
        self._accepts_lists = environment.accepts_lists
        self._calls = built.calls
        self._fast = self._generate(absorbing=False)
        self._absorbing: _Selector | None = None
        self.reads: Reads = find_reads(checked.expr)

    @property
    def output_type(self) -> str:
        return self._checked.types[self._checked.expr.id].declared

    @property
    def too_expensive(self) -> bool:
        """Whether kube-apiserver would refuse it."""
        return self.cost > COST_LIMIT

    def run(self, device: Device) -> Outcome:
        """Evaluate by the reference path, counting the cost."""
        try:
            root = Root(device.as_value(lists=self._accepts_lists), modern=self._modern)
        except InputError as error:
            return Outcome(None, error.what, None)
        try:
            value = self._node.eval(root)
        except Cancelled as stop:
            return Outcome(None, str(stop), root.tracker.cost + stop.cost)
        if isinstance(value, Err):
            return Outcome(None, value.message, root.tracker.cost)
        return Outcome(value, "", root.tracker.cost)

    def evaluate(self, device: Device) -> Value:
        outcome = self.run(device)
        if outcome.error:
            raise CelRuntimeError(outcome.error)
        return outcome.value

    @property
    def is_fast(self) -> bool:
        """Whether code was generated for it."""
        return self._fast is not None

    def matches_fast(self, device: Device) -> bool | None:
        """What the generated code says; None where it leaves the answer to the reference evaluator."""
        if self._fast is None:
            return None
        try:
            return self._fast(device)
        except KeyError:
            return self._match_absorbing(device)
        except _LEFT_TO_EVALUATOR:
            return None

    def _match_absorbing(self, device: Device) -> bool | None:
        """A key is missing; what `&&` and `||` make of that is asked of code that is written when first needed."""
        if self._absorbing is None:
            self._absorbing = self._generate(absorbing=True)
        try:
            return self._absorbing(device) if self._absorbing is not None else None
        except (KeyError, *_LEFT_TO_EVALUATOR):
            return None

    def _generate(self, *, absorbing: bool) -> _Selector | None:
        return generate(
            self._checked,
            self._calls,
            self.source,
            self.cost,
            lists=self._accepts_lists,
            modern=self._modern,
            absorbing=absorbing,
        )

    def matches(self, device: Device) -> bool:
        """Whether the device is selected; CelRuntimeError if that cannot be told."""
        found = self.matches_fast(device)
        if found is not None:
            return found
        value = self.evaluate(device)
        if isinstance(value, bool):
            return value
        raise CelRuntimeError(not_bool(value))

    def explain(self, device: Device) -> list[Clause]:
        """Every conjunct with its result and the values it saw; one clause in error if the device is unusable."""
        try:
            seen = device.as_value(lists=self._accepts_lists)
        except InputError as error:
            return [Clause(self.source, (0, len(self.source)), "error", error.what, ())]
        explanation = Explanation(self.source, self._checked, self._spans, self._declared, seen, modern=self._modern)
        return explanation.clauses()


def not_bool(value: Value) -> str:
    name = type_name(value)
    return f"CEL result of type {name} could not be converted to bool: {_conversion(value, name)}"


_SHORT = {"kubernetes.Semver": "Semver", "kubernetes.Quantity": "Quantity", "net.IP": "IP", "net.CIDR": "CIDR"}


def _conversion(value: Value, name: str) -> str:
    match name:
        case "int" | "uint":
            return f"unsupported type conversion from '{name}' to bool"
        case "string":
            return "unsupported native conversion from string to 'bool'"
        case "list" | "map":
            return f"type conversion error from {name} to 'bool'"
        case "double":
            return "type conversion error from Double to 'bool'"
    return f"type conversion error from '{_SHORT.get(name, name)}' to 'bool'"
