"""The evaluator's nodes. Each evaluates, then reports to the cost tracker as the same instruction of cel-go does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishplate.cel.attributes import Attribute, Conditional, Frame, Node
from fishplate.cel.call_costs import LIST_BASE, MAP_BASE, call_cost
from fishplate.cel.tracker import Cancelled, Tracker
from fishplate.cel.values import (
    EMPTY_MAP,
    NO_SUCH_OVERLOAD,
    CelMap,
    DomainMap,
    Err,
    GrowingList,
    GrowingMap,
    Optional,
    Value,
    equal,
    type_name,
)
from fishplate.k8s.semver import Semver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Const:
    __slots__ = ("id", "value")

    def __init__(self, node: int, value: Value) -> None:
        self.id = node
        self.value = value

    def eval(self, frame: Frame) -> Value:
        frame.tracker.push(self.id, self.value)
        return self.value


class AttributeNode:
    __slots__ = ("attribute",)

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute

    @property
    def id(self) -> int:
        return self.attribute.id

    def eval(self, frame: Frame) -> Value:
        value = self.attribute.resolve(frame)
        observe_attribute(frame.tracker, self.attribute, self.attribute.id, value, 1)
        return value


class TestNode:
    """has(x.f): free of charge but for the qualifiers it reaches."""

    __slots__ = ("attribute", "id")

    def __init__(self, node: int, attribute: Attribute) -> None:
        self.id = node
        self.attribute = attribute

    def eval(self, frame: Frame) -> Value:
        value = self.attribute.resolve(frame)
        if isinstance(value, Optional):
            value = value.present
        observe_attribute(frame.tracker, self.attribute, self.id, value, 0)
        return value


def observe_attribute(tracker: Tracker, attribute: Attribute, node: int, value: Value, cost: int) -> None:
    if isinstance(attribute, Conditional):
        for part in (attribute.falsy.id, attribute.truthy.id, attribute.cond.id):
            tracker.drop(part)
        # A presence test takes back the unit that a conditional never charged.
        tracker.push(node, value, cost - 1)
        return
    tracker.drop(attribute.id)
    tracker.push(node, value, cost)


class Logical:
    """`&&` and `||`: the deciding value ends it; errors wait for one and are returned if none comes."""

    __slots__ = ("decides", "id", "terms")

    def __init__(self, node: int, terms: tuple[Node, ...], *, decides: bool) -> None:
        self.id = node
        self.terms = terms
        self.decides = decides

    def eval(self, frame: Frame) -> Value:
        result: Value = not self.decides
        for term in self.terms:
            value = term.eval(frame)
            if value is self.decides:
                result = value
                break
            if not isinstance(value, bool) and not isinstance(result, Err):
                result = value if isinstance(value, Err) else NO_SUCH_OVERLOAD
        for term in self.terms:
            frame.tracker.drop(term.id)
        frame.tracker.push(self.id, result)
        return result


class Equality:
    __slots__ = ("id", "left", "negated", "right")

    def __init__(self, node: int, left: Node, right: Node, *, negated: bool) -> None:
        self.id = node
        self.left = left
        self.right = right
        self.negated = negated

    def eval(self, frame: Frame) -> Value:
        left = self.left.eval(frame)
        right = self.right.eval(frame)
        value: Value
        if isinstance(left, Err):
            value = left
        elif isinstance(right, Err):
            value = right
        else:
            value = equal(left, right)
            if self.negated:
                value = value is not True
        names = ("_!=_", "not_equals") if self.negated else ("_==_", "equals")
        observe_call(frame, self.id, (self.left.id, self.right.id), *names, value)
        return value


def observe_call(frame: Frame, node: int, args: tuple[int, ...], function: str, overload: str, value: Value) -> None:
    taken = frame.tracker.take(args)
    cost = 0 if taken is None else call_cost(function, overload, taken, value, modern=frame.modern)
    frame.tracker.push(node, value, cost)


class CallNode:
    __slots__ = ("args", "eager", "function", "id", "implementation", "overload", "strict")

    def __init__(
        self,
        node: int,
        function: str,
        overload: str,
        args: tuple[Node, ...],
        implementation: Callable[..., Value],
        *,
        eager: bool,
        strict: bool = True,
    ) -> None:
        self.id = node
        self.function = function
        self.overload = overload
        self.args = args
        self.implementation = implementation
        self.eager = eager
        self.strict = strict

    def eval(self, frame: Frame) -> Value:
        value = self.compute(frame)
        observe_call(frame, self.id, tuple(arg.id for arg in self.args), self.function, self.overload, value)
        return value

    def compute(self, frame: Frame) -> Value:
        values: list[Value] = []
        failed: Err | None = None
        for arg in self.args:
            value = arg.eval(frame)
            if self.strict and isinstance(value, Err):
                failed = failed or value
                if not self.eager:
                    break
            values.append(value)
        return failed or self.implementation(*values)


class Membership:
    """`x in [constants]`: a look-up, and therefore free."""

    __slots__ = ("arg", "id", "members")

    def __init__(self, node: int, arg: Node, members: frozenset[tuple[type, Value]]) -> None:
        self.id = node
        self.arg = arg
        self.members = members

    def eval(self, frame: Frame) -> Value:
        value = self.arg.eval(frame)
        if not isinstance(value, Err):
            if isinstance(value, Semver | bytes):
                # Upstream uses the value as a Go map key, which these cannot be, and panics.
                kind = "cel.Semver" if isinstance(value, Semver) else "types.Bytes"
                raise Cancelled(f"internal error: runtime error: hash of unhashable type {kind}")
            hashable = isinstance(value, bool | int | float | str)
            value = hashable and (type(value), value) in self.members
        frame.tracker.push(self.id, value)
        return value


class OptionalOr:
    """`.or(x)` and `.orValue(x)`: the alternative is evaluated only when needed."""

    __slots__ = ("id", "left", "right", "unwrap")

    def __init__(self, node: int, left: Node, right: Node, *, unwrap: bool) -> None:
        self.id = node
        self.left = left
        self.right = right
        self.unwrap = unwrap

    def eval(self, frame: Frame) -> Value:
        value = self.left.eval(frame)
        if isinstance(value, Optional):
            if not value.present:
                value = self.right.eval(frame)
            elif self.unwrap:
                value = value.value
        elif frame.modern and not isinstance(value, Err):
            value = NO_SUCH_OVERLOAD
        frame.tracker.push(self.id, value)
        return value


class ListNode:
    __slots__ = ("elements", "id", "optional")

    def __init__(self, node: int, elements: tuple[Node, ...], optional: frozenset[int]) -> None:
        self.id = node
        self.elements = elements
        self.optional = optional

    def compute(self, frame: Frame) -> Value:
        out: list[Value] = []
        for index, element in enumerate(self.elements):
            value = element.eval(frame)
            if isinstance(value, Err):
                return value
            if index in self.optional:
                if not isinstance(value, Optional):
                    return Err(f"cannot initialize optional list element from non-optional value {value}")
                if not value.present:
                    continue
                value = value.value
            out.append(value)
        return tuple(out)

    def eval(self, frame: Frame) -> Value:
        value = self.compute(frame)
        frame.tracker.take(tuple(element.id for element in self.elements))
        frame.tracker.push(self.id, value, LIST_BASE)
        return value


class MapNode:
    __slots__ = ("id", "keys", "optional", "values")

    def __init__(self, node: int, keys: tuple[Node, ...], values: tuple[Node, ...], optional: frozenset[int]) -> None:
        self.id = node
        self.keys = keys
        self.values = values
        self.optional = optional

    def compute(self, frame: Frame) -> Value:
        entries: dict[tuple[type, Value], tuple[Value, Value]] = {}
        for index, (key_node, value_node) in enumerate(zip(self.keys, self.values, strict=True)):
            key = key_node.eval(frame)
            if isinstance(key, Err):
                return key
            value = value_node.eval(frame)
            if isinstance(value, Err):
                return value
            if index in self.optional:
                if not isinstance(value, Optional):
                    return Err(f"cannot initialize optional entry '{key}' from non-optional value {value}")
                if not value.present:
                    entries.pop((type(key), key), None)
                    continue
                value = value.value
            entries[(type(key), key)] = (key, value)
        return CelMap(entries)

    def eval(self, frame: Frame) -> Value:
        value = self.compute(frame)
        parts = tuple(part.id for pair in zip(self.keys, self.values, strict=True) for part in pair)
        frame.tracker.take(parts)
        frame.tracker.push(self.id, value, MAP_BASE)
        return value


class FoldNode:
    __slots__ = ("accu", "cond", "id", "init", "range", "result", "step", "var", "var2")

    def __init__(self, node: int, names: tuple[str, str, str], parts: tuple[Node, Node, Node, Node, Node]) -> None:
        self.id = node
        self.var, self.var2, self.accu = names
        self.init, self.range, self.cond, self.step, self.result = parts

    def eval(self, frame: Frame) -> Value:
        value = self._fold(frame)
        frame.tracker.drop(self.range.id)
        frame.tracker.push(self.id, value)
        return value

    def _fold(self, frame: Frame) -> Value:
        over = self.range.eval(frame)
        if isinstance(over, Err):
            return over
        loop = Loop(self, frame)
        steps: Iterable[tuple[Value, Value]]
        if isinstance(over, tuple):
            steps = enumerate(over) if self.var2 else ((item, None) for item in over)
        elif isinstance(over, CelMap):
            steps = over.items() if self.var2 else ((key, None) for key, _ in over.items())
        elif self.var2:
            return Err(f"unsupported comprehension range type: {type_name(over)}")
        else:
            return Err(f"got '{type_name(over)}', expected iterable type")
        for loop.first, loop.second in steps:
            if self.cond.eval(loop) is False:
                break
            loop.value = self.step.eval(loop)
            loop.started = True
        return loop.finish()


class Loop:
    """The names of one comprehension. The accumulator starts when it is first read, as cel.bind's laziness needs."""

    __slots__ = ("_fold", "_parent", "_result", "first", "modern", "second", "started", "tracker", "value")

    def __init__(self, fold: FoldNode, parent: Frame) -> None:
        self._fold = fold
        self._parent = parent
        self._result = False
        self.tracker = parent.tracker
        self.modern = parent.modern
        self.first: Value = None
        self.second: Value = None
        self.value: Value = None
        self.started = False

    def resolve(self, name: str) -> Value:
        if name == self._fold.accu:
            if not self.started:
                self.started = True
                self.value = growing(self._fold, self._fold.init.eval(self._parent))
            return self.value
        if not self._result:
            if name == self._fold.var:
                return self.first
            if name == self._fold.var2:
                return self.second
        return self._parent.resolve(name)

    def finish(self) -> Value:
        self._result = True
        value = self._fold.result.eval(self)
        return settled(value)


def growing(fold: FoldNode, value: Value) -> Value:
    """An empty accumulator that grows in place; copying it at every step would be quadratic.

    Upstream does so for names bound by cel.bind too, where an empty device.attributes forgets its unknown domains.
    """
    if isinstance(value, DomainMap) and not len(value):
        return EMPTY_MAP
    if fold.accu.startswith("@result"):
        if value == ():
            return GrowingList()
        if isinstance(value, CelMap) and not len(value):
            return GrowingMap({})
    return value


def settled(value: Value) -> Value:
    if isinstance(value, GrowingList):
        return tuple(value.items)
    return CelMap(value.entries) if isinstance(value, GrowingMap) else value
