"""Variables and what is selected from them: `device.attributes["d"].x` is one attribute with three qualifiers.

Selections on one value are resolved together, because that is how optional chains end early and how cost is charged:
one unit for each qualifier that was reached, and one for the attribute.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from fishplate.cel import gotext
from fishplate.cel.tracker import Tracker
from fishplate.cel.values import (
    MAX_INT,
    MIN_INT,
    NO_SUCH_OVERLOAD,
    NONE,
    CelMap,
    DomainMap,
    Err,
    Optional,
    Uint,
    Value,
    type_name,
)


class Frame(Protocol):
    """Where names are looked up: the device, or a loop inside it."""

    tracker: Tracker
    modern: bool

    def resolve(self, name: str) -> Value: ...


class Node(Protocol):
    """Anything that can be evaluated."""

    @property
    def id(self) -> int: ...

    def eval(self, frame: Frame) -> Value: ...


_ABSENT = object()


def key_text(key: Value) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return gotext.format_g(key) if isinstance(key, float) else str(key)


def look_up(container: Value, key: Value, *, optional: bool) -> Value:
    """The element; an error, or with `optional` the absence, if it is not there."""
    missing: Value = _ABSENT if optional else Err(f"no such key: {key_text(key)}")
    if isinstance(container, CelMap):
        found = container.find(key)
        return missing if found is None else found[0]
    if isinstance(container, tuple):
        index = _list_index(key)
        if isinstance(index, Err):
            return index
        if 0 <= index < len(container):
            return container[index]
        return _ABSENT if optional else Err(f"index out of bounds: {key_text(key)}")
    return container if isinstance(container, Err) else missing


def _list_index(key: Value) -> int | Err:
    if type(key) is int:
        return key
    if isinstance(key, float | Uint):
        if (isinstance(key, float) and not (key.is_integer() and MIN_INT < key < MAX_INT)) or key > MAX_INT:
            return Err(f"unsupported index value {key_text(key)} in list")
        return int(key)
    return Err(f"unsupported index type '{type_name(key)}' in list")


class Constant:
    """A qualifier known when the program is built."""

    __slots__ = ("id", "key", "optional", "test")

    def __init__(self, node: int, key: Value, *, optional: bool, test: bool = False) -> None:
        self.id = node
        self.key = key
        self.optional = optional
        self.test = test

    def qualify(self, frame: Frame, container: Value) -> Value:
        if self.test:
            found = look_up(container, self.key, optional=True)
            value: Value = found if isinstance(found, Err) else found is not _ABSENT
        else:
            value = look_up(container, self.key, optional=False)
        frame.tracker.push(self.id, value, 1)
        return value

    def qualify_if_present(self, frame: Frame, container: Value) -> Value:
        value = look_up(container, self.key, optional=True)
        if value is not _ABSENT and not isinstance(value, Err):
            frame.tracker.push(self.id, value, 1)
        return value


class Computed:
    """A qualifier that is itself evaluated: by an attribute (`m[x]`) or by any other expression (`m[f(x)]`)."""

    __slots__ = ("attribute", "drops", "id", "optional")

    def __init__(self, node: int, attribute: Attribute, *, optional: bool, drops: bool) -> None:
        self.id = node
        self.attribute = attribute
        self.optional = optional
        self.drops = drops

    def _find(self, frame: Frame, container: Value, *, optional: bool) -> Value:
        key = self.attribute.resolve(frame)
        if isinstance(key, Err):
            return key
        if type(key) not in (str, int, Uint, bool, float):
            return Err(f"invalid qualifier type: {type_name(key)}")
        return look_up(container, key, optional=optional)

    def _observe(self, frame: Frame, value: Value) -> None:
        if self.drops:
            frame.tracker.drop(self.attribute.id)
        frame.tracker.push(self.id, value, 1)

    def qualify(self, frame: Frame, container: Value) -> Value:
        value = self._find(frame, container, optional=False)
        self._observe(frame, value)
        return value

    def qualify_if_present(self, frame: Frame, container: Value) -> Value:
        value = self._find(frame, container, optional=True)
        if value is not _ABSENT and not isinstance(value, Err):
            self._observe(frame, value)
        return value


Qualifier: TypeAlias = Constant | Computed


def _apply(frame: Frame, value: Value, qualifiers: list[Qualifier]) -> Value:
    optional = isinstance(value, Optional)
    if isinstance(value, Optional):
        if not value.present:
            return value
        value = value.value
        if isinstance(value, DomainMap) and not frame.modern:
            # Before 0.29, cel-go unwrapped the optional down to the bare map, which knows only its real domains.
            value = CelMap(value.entries)
    for qualifier in qualifiers:
        optional = optional or qualifier.optional
        if optional:
            value = qualifier.qualify_if_present(frame, value)
            if value is _ABSENT:
                return NONE
        else:
            value = qualifier.qualify(frame, value)
        if isinstance(value, Err):
            return value
    return Optional(value) if optional else value


class _Qualified:
    """Something with selections on it; known by the id of the last one."""

    __slots__ = ("_id", "qualifiers")

    def __init__(self, node: int) -> None:
        self._id = node
        self.qualifiers: list[Qualifier] = []

    @property
    def id(self) -> int:
        return self.qualifiers[-1].id if self.qualifiers else self._id

    def add(self, qualifier: Qualifier) -> None:
        self.qualifiers.append(qualifier)


class Absolute(_Qualified):
    """A variable."""

    __slots__ = ("name",)

    def __init__(self, node: int, name: str) -> None:
        super().__init__(node)
        self.name = name

    def resolve(self, frame: Frame) -> Value:
        value = frame.resolve(self.name)
        if self.name.startswith("."):
            frame = _Uncounted(frame)
        return value if isinstance(value, Err) else _apply(frame, value, self.qualifiers)


class _Uncounted:
    """Where a dot picks the global over a local, upstream resolves the selections outside its cost tracking."""

    def __init__(self, frame: Frame) -> None:
        self.tracker = Tracker()
        self.modern = frame.modern
        self.resolve = frame.resolve


class Relative(_Qualified):
    """The result of another expression."""

    __slots__ = ("operand",)

    def __init__(self, node: int, operand: Node) -> None:
        super().__init__(node)
        self.operand = operand

    def resolve(self, frame: Frame) -> Value:
        value = self.operand.eval(frame)
        return value if isinstance(value, Err) else _apply(frame, value, self.qualifiers)


class Conditional:
    """`c ? a : b`; what is selected from it is selected from either branch."""

    __slots__ = ("_id", "cond", "falsy", "truthy")

    def __init__(self, node: int, cond: Node, truthy: Attribute, falsy: Attribute) -> None:
        self._id = node
        self.cond = cond
        self.truthy = truthy
        self.falsy = falsy

    @property
    def id(self) -> int:
        return self.truthy.id if self.truthy.id == self.falsy.id else self._id

    def add(self, qualifier: Qualifier) -> None:
        self.truthy.add(qualifier)
        self.falsy.add(qualifier)

    def resolve(self, frame: Frame) -> Value:
        value = self.cond.eval(frame)
        if value is True:
            return self.truthy.resolve(frame)
        if value is False:
            return self.falsy.resolve(frame)
        return value if isinstance(value, Err) else NO_SUCH_OVERLOAD


Attribute: TypeAlias = Absolute | Relative | Conditional
