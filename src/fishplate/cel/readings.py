"""Python for what a selector reads of a device, and for the look at every attribute that comes before.

Upstream converts every attribute on every call, and fails where one has no value or an unparsable version. Generated
selectors look at every attribute, and convert those that they read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishplate.cel.guards import Unsupported
from fishplate.cel.snippet import Scratch, Snippet

if TYPE_CHECKING:
    from fishplate.cel.access import Path

_SCALAR_CHECK = "a.string is None and a.int_ is None and a.bool_ is None and a.version not in sound_versions"
# Where lists are accepted, a list of versions is looked at before anything else.
_CHECKS = {False: _SCALAR_CHECK, True: f"a.versions is not None or {_SCALAR_CHECK}"}
_SCALAR = (
    "({v} if ({v} := {first}.int_) is not None else {v} if ({v} := {a}.bool_) is not None"
    " else {v} if ({v} := {a}.string) is not None else parse_semver({a}.version))"
)
_LIST = "({scalar} if {first}.ints is {a}.bools is {a}.strings is {a}.versions is None else list_value({a}))"


class Readings:
    """`measured` readings refuse values longer than the API allows, so that what is estimated of their cost holds."""

    def __init__(self, scratch: Scratch, *, lists: bool, measured: bool) -> None:
        self.scratch = scratch
        self._lists = lists
        self.measured = measured

    def preamble(self) -> str:
        return (
            "    A = device.attributes; C = device.capacity; D = device.driver\n"
            f"    if device.sound is not {self._lists}:\n"
            "        for a in A.values():\n"
            f"            if {_CHECKS[self._lists]}: check_attribute(a, {self._lists})\n"
            f"        device.sound = {self._lists}\n"
        )

    def read(self, path: Path) -> Snippet:
        match path:
            case ("driver",):
                return Snippet("str", "short_text(D)" if self.measured else "D")
            case ("allowMultipleAllocations",):
                return Snippet("bool", "device.allow_multiple_allocations")
            case ("attributes", domain, name):
                entry = self.scratch.name()
                return Snippet(
                    "attr", self._value(f"({entry} := {self._look_up('A', domain, name, 'missing()')})", entry)
                )
            case ("capacity", domain, name):
                return Snippet("quantity", f"amount({self._look_up('C', domain, name, 'missing()')}.value)")
            case ("attributes" | "capacity" as table, *domain) if self.measured and len(domain) < 2:
                whole = f"whole(device, {table!r}, {self._lists})"
                return Snippet("any", f"element({whole}, {domain[0]!r})" if domain else whole)
        raise Unsupported

    def read_or(self, path: Path, default: str) -> str:
        """The attribute's value, or the default where it is not there."""
        if len(path) != 3 or path[0] != "attributes":
            raise Unsupported
        entry = self.scratch.name()
        found = f"{entry} := {self._look_up('A', path[1], path[2], 'None')}"
        return f"({default} if ({found}) is None else {self._value(entry, entry)})"

    def optional(self, path: Path) -> Snippet:
        """The attribute as an optional value."""
        value = self.scratch.name()
        return Snippet("any", f"(Optional({value}) if ({value} := {self.read_or(path, 'None')}) is not None else NONE)")

    def presence(self, path: Path) -> Snippet:
        if len(path) != 3 or "/" in path[1] or path[0] not in ("attributes", "capacity"):
            raise Unsupported
        table = "A" if path[0] == "attributes" else "C"
        qualified = f"{f'{path[1]}/{path[2]}'!r} in {table}"
        if "/" in path[2]:
            return Snippet("bool", f"({qualified})")
        return Snippet("bool", f"({qualified} or D == {path[1]!r} and {path[2]!r} in {table})")

    def keys(self, path: Path) -> str:
        """What a loop with one variable walks over in a map of the device: names alone, no values."""
        match path:
            case ("attributes" | "capacity" as table,) if self.measured:
                return f"domains({'A' if table == 'attributes' else 'C'}, D)"
            case ("attributes" | "capacity" as table, domain) if self.measured:
                return f"ids({'A' if table == 'attributes' else 'C'}, D, {domain!r})"
        raise Unsupported

    def domain_presence(self, path: Path, domain: object) -> Snippet:
        """`"d" in device.attributes`: only real domains count."""
        if path not in (("attributes",), ("capacity",)) or not isinstance(domain, str):
            raise Unsupported
        return Snippet("bool", f"has_domain({'A' if path[0] == 'attributes' else 'C'}, D, {domain!r})")

    def _look_up(self, table: str, domain: str, name: str, otherwise: str) -> str:
        """By qualified name, or by bare name where the domain is the driver's."""
        if "/" in domain:
            raise Unsupported
        found = self.scratch.name()
        qualified = f"({found} := {table}.get({f'{domain}/{name}'!r}))"
        bare = f"{table}.get({name!r})" if otherwise == "None" else f"{table}[{name!r}]"
        unqualified = otherwise if "/" in name else f"{bare} if D == {domain!r} else {otherwise}"
        return f"({found} if {qualified} is not None else {unqualified})"

    def _value(self, first: str, entry: str) -> str:
        """The value of an attribute; `first` is what stands for it where it is used first."""
        scalar = _SCALAR.format(v=self.scratch.name(), a=entry, first=entry if self._lists else first)
        value = _LIST.format(scalar=scalar, a=entry, first=first) if self._lists else scalar
        return f"short({value})" if self.measured else value
