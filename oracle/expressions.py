"""Random CEL expressions for device selectors, typed so that most compile, with a count of every feature they use.

A grammar: each production makes text of one type from texts of other types, and notes its name. Loops run only over
lists, or over maps that hold one entry in the devices used (`single`), because Go's maps have no order.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from oracle.devices import CAPACITIES, DOMAINS, IDS, QUANTITIES, STRINGS, VERSIONS
from oracle.productions import PRODUCTIONS

if TYPE_CHECKING:
    from random import Random

_DEEPEST = 4
_PLAIN = (
    *("attribute equals", "attribute order", "version attribute", "capacity", "has", "unknown domain"),
    *("optional selection", "in list", "list attribute", "exists over literals", "cel.bind"),
)


class Generator:
    """Makes one expression at a time; `features` counts over all of them."""

    def __init__(self, random: Random, *, minor: str, lists: bool) -> None:
        self.random = random
        self.minor = minor
        self.lists = lists
        self.features: Counter[str] = Counter()
        self.single = False
        self._variables: list[tuple[str, str]] = []
        self._depth = 0
        self._names = 0

    def expression(self) -> tuple[str, bool]:
        """The text, and whether it needs `single` devices."""
        self.single = self.random.random() < 0.3
        self._variables, self._depth, self._names = [], 0, 0
        if self.random.random() < 0.25:
            return self._selector(), self.single
        text = self.make(
            "bool" if self.random.random() < 0.97 else self.random.choice(("attribute", "int", "string", "list"))
        )
        if self.random.random() < 0.04:
            text = self._damage(text)
        return text, self.single

    def _selector(self) -> str:
        """What people write: a few plain conditions, joined."""
        self.features["plain selector"] += 1
        plain = [production for production in PRODUCTIONS["bool"] if production.feature in _PLAIN]
        conditions = []
        for _ in range(self.random.randint(1, 4)):
            production = self.random.choice(plain)
            if production.minors and self.minor not in production.minors:
                continue
            self.features[production.feature] += 1
            self._depth = _DEEPEST
            conditions.append(production.make(self))
        return self.random.choice((" && ", " && ", " || ")).join(conditions) or "true"

    def _damage(self, text: str) -> str:
        """A slip of the pen: a character lost, doubled or replaced."""
        self.features["damaged text"] += 1
        position = self.random.randrange(len(text))
        replacement = self.random.choice(("", text[position] * 2, "$", " ", ")", "(", ".", "1", '"', "x"))
        return text[:position] + replacement + text[position + 1 :]

    def make(self, kind: str) -> str:
        """Text of a type: a variable in scope, a leaf, or a production of it."""
        fitting = [name for name, known in self._variables if known == kind]
        if fitting and self.random.random() < 0.5:
            return self.random.choice(fitting)
        if self._depth >= _DEEPEST or self.random.random() < 0.12 * self._depth:
            return self.leaf(kind)
        self._depth += 1
        try:
            return self._produce(kind)
        finally:
            self._depth -= 1

    def _produce(self, kind: str) -> str:
        for _ in range(8):
            production = self.random.choice(PRODUCTIONS[kind])
            if production.needs_map and not self.single:
                continue
            if production.minors and self.minor not in production.minors:
                continue
            self.features[production.feature] += 1
            return production.make(self)
        return self.leaf(kind)

    def scope(self, kind: str, name: str | None = None) -> str:
        """A fresh variable of a type; leave it with `leave`."""
        self._names += 1
        name = name or f"v{self._names}"
        self._variables.append((name, kind))
        return name

    def leave(self, count: int = 1) -> None:
        del self._variables[-count:]

    def domain(self) -> str:
        return self.random.choice((*DOMAINS, DOMAINS[0], DOMAINS[0], "nope.io"))

    def attribute(self, kind: str) -> str:
        """A selection from device.attributes that usually has this kind of value."""
        name = self.random.choice(IDS[kind])
        style = self.random.random()
        base = f'device.attributes["{self.domain()}"]'
        if style < 0.85:
            return f"{base}.{name}"
        return f'{base}["{name}"]' if style < 0.95 else f"{base}.missing"

    def capacity(self) -> str:
        return f'device.capacity["{self.domain()}"].{self.random.choice(CAPACITIES)}'

    def quoted(self, text: str) -> str:
        style = self.random.random()
        if style < 0.8 or "'" in text or '"' in text or "\\" in text:
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return f"'{text}'" if style < 0.9 else f'r"{text}"'

    def leaf(self, kind: str) -> str:
        if kind == "attribute":
            return self.attribute(self.random.choice(("int", "string", "bool")))
        if kind == "string" and self.random.random() < 0.9:
            return self.quoted(self.random.choice((*STRINGS, *VERSIONS, *DOMAINS)))
        if kind in ("semver", "quantity"):
            return f'{kind}("{self.random.choice(VERSIONS if kind == "semver" else QUANTITIES)}")'
        return self.random.choice(_LEAVES[kind])


_LEAVES: dict[str, tuple[str, ...]] = {
    "bool": ("true", "false", 'device.driver == "dra.example.com"', "device.allowMultipleAllocations"),
    "int": ("0", "1", "2", "-1", "7", "100", "0x1F", "9223372036854775807"),
    "uint": ("0u", "1u", "7u", "18446744073709551615u"),
    "double": ("0.0", "1.5", "-2.25", "1e3", "100.0", "1.0", "1234567.5"),
    "string": ("device.driver",),
    "bytes": ('b"abc"', 'b""', "b'\\xff\\x00'", 'b"ü"'),
    "list": ("[1, 2, 3]", "[3, 1, 2]", "[7]", "[1, 1, 2]"),
    "strings": ('["a", "b"]', '["fish", "a"]', '["b", "a", "b"]', '["x"]'),
    "nested": ("[[1, 2], [3]]", "[[7]]"),
    "map": ('{"a": 1}', '{"fish": 2}'),
    "ip": ('ip("10.0.0.1")', 'ip("fe80::1")', 'ip("127.0.0.1")', 'ip("224.0.0.1")', 'ip("::")'),
    "cidr": ('cidr("10.0.0.0/8")', 'cidr("10.1.2.3/24")', 'cidr("fe80::/10")'),
    "url": ('url("https://example.com:8080/a/b?x=1&x=2&y=3")', 'url("http://[::1]:80/")', 'url("/path/only")'),
    "format": (
        *("format.dns1123Label()", "format.dns1123Subdomain()", "format.uuid()", "format.qualifiedName()"),
        *("format.labelValue()", "format.date()", "format.datetime()"),
    ),
    "duration": ('duration("1h")', 'duration("90s")', 'duration("-1.5s")', 'duration("1ms")'),
    "timestamp": ('timestamp("2026-01-02T03:04:05Z")', 'timestamp("1969-12-31T23:59:59.5+01:00")'),
    "type": ("int", "string", "bool", "type(1.5)", "type(null)", "list", "map"),
    "optint": ("optional.of(1)", "optional.none()"),
}
