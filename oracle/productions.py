"""The productions of the random grammar: for each type, ways to make an expression of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from oracle.expressions import Generator


class Production(NamedTuple):
    feature: str
    make: Callable[[Generator], str]
    needs_map: bool = False
    minors: tuple[str, ...] = ()


def _template(text: str) -> Callable[[Generator], str]:
    """`{int} < {double}`: each type in braces is generated."""
    parts: list[tuple[str, str]] = []
    rest = text
    while "{" in rest:
        before, _, after = rest.partition("{")
        kind, _, rest = after.partition("}")
        parts.append((before, kind))
    tail = rest

    def make(generator: Generator) -> str:
        return "".join(
            before.replace("⟨", "{").replace("⟩", "}") + _part(generator, kind) for before, kind in parts
        ) + tail.replace("⟨", "{").replace("⟩", "}")

    return make


def _part(generator: Generator, kind: str) -> str:
    if kind.startswith("@"):
        return generator.attribute(kind[1:])
    if kind == "capacity":
        return generator.capacity()
    if kind == "domain":
        return generator.domain()
    if "|" in kind:
        return generator.random.choice(kind.split("|"))
    text = generator.make(kind)
    return f"({text})" if " " in text and not text.startswith(("(", "[", '"')) else text


def _loop(
    macro: str, over: str, var: str, body: str, *, names: int = 1, second: str = ""
) -> Callable[[Generator], str]:
    """`over.macro(v, body)`, with the loop's variables in scope while the body is made."""

    def make(generator: Generator) -> str:
        target = _part(generator, over)
        first = generator.scope(var)
        variables = [first]
        if names == 2:
            variables.append(generator.scope(second))
        bodies = [generator.make(kind) for kind in body.split(",")]
        generator.leave(names)
        return f"{target}.{macro}({', '.join((*variables, *bodies))})"

    return make


def _domains_loop(macro: str) -> Callable[[Generator], str]:
    def make(generator: Generator) -> str:
        name = generator.scope("string")
        body = generator.random.choice((f'"numaNode" in device.attributes[{name}]', generator.make("bool")))
        generator.leave()
        return f"device.attributes.{macro}({name}, {body})"

    return make


def _domains_loop_two(macro: str) -> Callable[[Generator], str]:
    def make(generator: Generator) -> str:
        name = generator.scope("string")
        body = generator.make("bool")
        generator.leave()
        return f"device.attributes.{macro}({name}, inner, inner.size() > 0 && {body})"

    return make


def _bind(generator: Generator) -> str:
    kind = generator.random.choice(("int", "string", "list", "semver", "quantity"))
    value = generator.make(kind)
    name = generator.scope(kind)
    body = generator.make("bool")
    generator.leave()
    return f"cel.bind({name}, {value}, {body})"


def _bind_domain(generator: Generator) -> str:
    domain, text = generator.domain(), generator.make("string")
    return f'cel.bind(dra, device.attributes["{domain}"], has(dra.model) && dra.model == {text})'


def _opt_map(flat: bool) -> Callable[[Generator], str]:
    def make(generator: Generator) -> str:
        target = generator.make("optint")
        name = generator.scope("int")
        body = generator.make("optint" if flat else "int")
        generator.leave()
        return f"{target}.{'optFlatMap' if flat else 'optMap'}({name}, {body})"

    return make


def _sort_by(generator: Generator) -> str:
    name = generator.scope("int")
    body = generator.make("int")
    generator.leave()
    return f"{generator.make('list')}.sortBy({name}, {body})"


def _read_grammar() -> dict[str, list[Production]]:
    """The productions that are plain templates, from grammar.txt."""
    found: dict[str, list[Production]] = {}
    kind, feature = "", ""
    minors: tuple[str, ...] = ()
    for line in (Path(__file__).parent / "grammar.txt").read_text().splitlines():
        if line.startswith("[") and line.endswith("]") and ": " in line and "{" not in line:
            kind, _, title = line[1:-1].partition(": ")
            feature, _, versions = title.partition(" @ ")
            minors = _LISTS if versions else ()
        elif line and not line.startswith("#"):
            found.setdefault(kind, []).append(Production(feature, _template(line), minors=minors))
    return found


_LISTS = ("1.36", "1.37")
_LOOPS: dict[str, list[Production]] = {
    "bool": [
        Production("exists", _loop("exists", "list", "int", "bool")),
        Production("all", _loop("all", "strings", "string", "bool")),
        Production("exists_one", _loop("exists_one", "list", "int", "bool")),
        Production("two-variable exists", _loop("exists", "list", "int", "bool", names=2, second="int")),
        Production("two-variable all", _loop("all", "strings", "int", "bool", names=2, second="string")),
        Production("two-variable existsOne", _loop("existsOne", "list", "int", "bool", names=2, second="int")),
        Production("two-variable exists_one", _loop("exists_one", "strings", "int", "bool", names=2, second="string")),
        Production("loop over a map", _loop("exists", "map", "string", "bool"), needs_map=True),
        Production("loop over domains", _domains_loop("exists"), needs_map=True),
        Production("loop over domains", _domains_loop("all"), needs_map=True),
        Production("loop over domains", _domains_loop("exists_one"), needs_map=True),
        Production("two-variable loop over domains", _domains_loop_two("exists"), needs_map=True),
        Production("cel.bind", _bind),
        Production("cel.bind", _bind_domain),
    ],
    "list": [
        Production("map", _loop("map", "list", "int", "int")),
        Production("map with filter", _loop("map", "list", "int", "bool,int")),
        Production("filter", _loop("filter", "list", "int", "bool")),
        Production("transformList", _loop("transformList", "list", "int", "int", names=2, second="int")),
        Production(
            "transformList with filter", _loop("transformList", "list", "int", "bool,int", names=2, second="int")
        ),
        Production("sortBy", _sort_by),
    ],
    "strings": [
        Production("map", _loop("map", "strings", "string", "string")),
        Production("filter", _loop("filter", "strings", "string", "bool")),
    ],
    "map": [
        Production(
            "transformMap", _loop("transformMap", "map", "string", "int", names=2, second="int"), needs_map=True
        ),
        Production(
            "transformMap with filter",
            _loop("transformMap", "map", "string", "bool,int", names=2, second="int"),
            needs_map=True,
        ),
    ],
    "optint": [Production("optMap", _opt_map(False)), Production("optFlatMap", _opt_map(True))],
}
PRODUCTIONS = {kind: [*made, *_LOOPS.get(kind, [])] for kind, made in _read_grammar().items()}
