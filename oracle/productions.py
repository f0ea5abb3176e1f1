"""The productions of the random grammar: for each type, ways to make an expression of it."""

from __future__ import annotations

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


def _simple(feature: str, *texts: str, minors: tuple[str, ...] = ()) -> list[Production]:
    return [Production(feature, _template(text), minors=minors) for text in texts]


_LISTS = ("1.36", "1.37")
_NUMBERS = ("int", "uint", "double")

PRODUCTIONS: dict[str, list[Production]] = {
    "bool": [
        *_simple("logical and", "{bool} && {bool}", "({bool} && {bool}) && {bool}"),
        *_simple("logical or", "{bool} || {bool}"),
        *_simple("logical not", "!({bool})"),
        *_simple("conditional", "({bool} ? {bool} : {bool})", "({bool} ? {@int} : {int}) == {int}"),
        *_simple(
            "attribute equals",
            "{@string} == {string}",
            "{@int} == {int}",
            "{@bool} == {bool}",
            "{@bool}",
            "{@string} != {string}",
            "{string} == {@string}",
        ),
        *_simple(
            "attribute order",
            "{@int} < {int}",
            "{@int} >= {int}",
            "{@string} > {string}",
            "{@string}.startsWith({string})",
            "{@string}.contains({string})",
            '{@string}.matches("^pci[0-9]+")',
        ),
        *_simple(
            "version attribute",
            "{@version}.isGreaterThan({semver})",
            "{@version}.compareTo({semver}) == {int}",
            "{@version} == {semver}",
            "{@version} == {string}",
            "{string} == {@version}",
            "{@version}.major() > {int}",
            '{@version} in ["1.2.3"]',
        ),
        *_simple(
            "capacity",
            "{capacity}.compareTo({quantity}) >= 0",
            "{capacity} == {quantity}",
            "{capacity}.isGreaterThan({quantity})",
            "{capacity} != {quantity}",
        ),
        *_simple(
            "has",
            'has(device.attributes["{domain}"].model)',
            "has(device.attributes.nope)",
            "has(device.driver)",
            'has(device.capacity["{domain}"].memory)',
            "has({map}.a)",
        ),
        *_simple(
            "unknown domain",
            'device.attributes["nope.io"].size() == 0',
            '"nope.io" in device.attributes',
            '"{domain}" in device.attributes',
            '"model" in device.attributes["{domain}"]',
            'device.attributes[?"nope"].hasValue()',
        ),
        *_simple(
            "optional selection",
            'device.attributes["{domain}"].?model.orValue({string}) == {string}',
            'device.attributes[?"{domain}"].?numaNode.hasValue()',
            'device.?attributes["nope"].hasValue()',
            "{optint}.hasValue()",
            'device.attributes["{domain}"].?rdma.orValue({bool})',
            'device.attributes["{domain}"][?"firmware"].hasValue()',
        ),
        *_simple(
            "equality",
            "{int} == {int}",
            "{string} == {string}",
            "{double} == {double}",
            "{list} == {list}",
            "{map} == {map}",
            "{semver} == {semver}",
            "{quantity} == {quantity}",
            "{ip} == {ip}",
            "{cidr} == {cidr}",
            "{url} == {url}",
            "{format} == {format}",
            "{optint} == {optint}",
            "{type} == {type}",
            "{bytes} == {bytes}",
            "{duration} == {duration}",
            "{uint} != {uint}",
            "dyn({int}) == {double}",
            "dyn({attribute}) == {int}",
            "{attribute} == null",
        ),
        *_simple(
            "ordering",
            "{int} < {int}",
            "{string} <= {string}",
            "{double} > {double}",
            "{duration} >= {duration}",
            "{timestamp} < {timestamp}",
            "{bytes} < {bytes}",
            "{bool} < {bool}",
            "{uint} > {uint}",
        ),
        *_simple(
            "cross-type ordering",
            "{int} < {double}",
            "{uint} >= {int}",
            "{double} <= {uint}",
            "dyn({int}) == dyn({uint})",
        ),
        *_simple(
            "in list",
            "{int} in {list}",
            "{string} in {strings}",
            '{@string} in ["fish", "GB300"]',
            "{@int} in [0, 1]",
            "{int} in []",
            "{attribute} in {strings}",
            "1.0 in {list}",
        ),
        *_simple("in map", "{string} in {map}", "{string} in device.attributes"),
        *_simple(
            "string tests",
            "{string}.startsWith({string})",
            "{string}.endsWith({string})",
            "{string}.contains({string})",
            '{string}.matches("[a-z]+[0-9]?")',
            "{string}.matches({string})",
            'matches({string}, "^a.*")',
        ),
        *_simple(
            "semver",
            "isSemver({string})",
            "isSemver({string}, {bool})",
            "{semver}.isLessThan({semver})",
            "semver({string}).major() == {int}",
            "semver({string}, true).isGreaterThan({semver})",
        ),
        *_simple(
            "quantity",
            "isQuantity({string})",
            "{quantity}.isLessThan({quantity})",
            "{quantity}.isInteger()",
            "quantity({string}).compareTo({quantity}) == {int}",
            "{quantity} == {quantity}.add({quantity})",
            "{quantity}.sub({int}) == {quantity}",
        ),
        *_simple(
            "ip",
            "isIP({string})",
            "{ip}.isLoopback()",
            "{ip}.isGlobalUnicast()",
            "{ip}.isLinkLocalUnicast()",
            "{ip}.isLinkLocalMulticast()",
            "{ip}.isUnspecified()",
            "ip({string}).family() == 4",
            "ip.isCanonical({string})",
        ),
        *_simple(
            "cidr",
            "isCIDR({string})",
            "{cidr}.containsIP({ip})",
            "{cidr}.containsIP({string})",
            "{cidr}.containsCIDR({cidr})",
            "{cidr}.containsCIDR({string})",
            "{cidr}.masked() == {cidr}",
            "cidr({string}).prefixLength() == {int}",
        ),
        *_simple(
            "url",
            "isURL({string})",
            "url({string}).getHost() == {string}",
            '{url}.getQuery()["x"].size() == {int}',
            "{url}.getScheme() == {string}",
        ),
        *_simple(
            "format library",
            "{format}.validate({string}).hasValue()",
            "format.named({string}).hasValue()",
            'format.named("uuid").value().validate({string}).hasValue()',
        ),
        *_simple(
            "sets",
            "sets.contains({list}, {list})",
            "sets.intersects({strings}, {strings})",
            "sets.equivalent({list}, {list})",
        ),
        *_simple(
            "list tests",
            "{list}.isSorted()",
            "{strings}.isSorted()",
            "{list}.includes({int})",
            "{attribute}.includes({string})",
            minors=_LISTS,
        ),
        *_simple(
            "list attribute",
            "{@strings}.includes({string})",
            "{@ints}.includes({int})",
            "{@versions}.includes({semver})",
            "{string} in {@strings}",
            "{@bools}[0]",
            "{@ints}.exists(x, x > {int})",
            "{@strings}.all(x, x.size() > 0)",
            "{@ints}.size() > {int}",
            minors=_LISTS,
        ),
        *_simple(
            "conversion",
            "bool({string})",
            "dyn({bool})",
            "int({string}) == {int}",
            "double({string}) > {double}",
            "string({int}) == {string}",
        ),
        *_simple(
            "type of",
            "type({int}) == int",
            "type({attribute}) == string",
            "type({semver}) == type({semver})",
            "type({attribute}) == {type}",
        ),
        *_simple(
            "error absorbed",
            "(1 / 0 == {int}) || {bool}",
            "{bool} && {attribute} == {int}",
            "{bool} || 1 / 0 == 0",
            "({attribute} || {bool})",
        ),
        *_simple(
            "wrong types",
            "{attribute}.startsWith({string})",
            "{attribute} + 1 == {int}",
            "{attribute} > {int}",
            "{int}.size() == 1",
            "{attribute} && {bool}",
            "{string} < {int}",
            "{bool} == {int}",
            "device.nope == {int}",
            "undefined({int})",
            "-{@string} == {int}",
        ),
        *_simple(
            "exists over literals",
            '["fish", "GB300"].exists(s, {@string} == s)',
            "[0, 1].all(n, {@int} >= n)",
            '["a", "fi"].exists(s, {@string}.startsWith(s))',
            "[1, 2].exists(n, n == {@int})",
        ),
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
    "int": [
        *_simple(
            "arithmetic",
            "{int} + {int}",
            "{int} - {int}",
            "{int} * {int}",
            "{int} / {int}",
            "{int} % {int}",
            "-({int})",
        ),
        *_simple("conditional", "({bool} ? {int} : {int})"),
        *_simple(
            "size",
            "size({string})",
            "{string}.size()",
            "{list}.size()",
            "{map}.size()",
            "size({bytes})",
            'device.attributes["{domain}"].size()',
        ),
        *_simple("conversion", "int({string})", "int({double})", "int({uint})", "int({duration})", "int({timestamp})"),
        *_simple(
            "index",
            "{list}[0]",
            "{list}[{int}]",
            '{map}["a"]',
            "{map}[{string}]",
            "{nested}[0][0]",
            "{map}.a",
            "[{int}, {int}][{int}]",
        ),
        *_simple(
            "string search",
            "{string}.indexOf({string})",
            "{string}.lastIndexOf({string})",
            "{string}.indexOf({string}, {int})",
            "{string}.lastIndexOf({string}, {int})",
        ),
        *_simple(
            "list functions",
            "{list}.sum()",
            "{list}.min()",
            "{list}.max()",
            "{list}.indexOf({int})",
            "{strings}.lastIndexOf({string})",
        ),
        *_simple("semver", "{semver}.major()", "{semver}.minor()", "{semver}.patch()", "{semver}.compareTo({semver})"),
        *_simple(
            "quantity",
            "sign({quantity})",
            "{quantity}.asInteger()",
            "{quantity}.compareTo({quantity})",
            "{capacity}.asInteger()",
        ),
        *_simple(
            "times",
            "{timestamp}.getFullYear()",
            "{timestamp}.getDayOfWeek()",
            '{timestamp}.getHours("+02:00")',
            "{duration}.getSeconds()",
            "{timestamp}.getMilliseconds()",
        ),
        *_simple(
            "optional",
            "{optint}.orValue({int})",
            "{optint}.value()",
            "{list}.first().orValue({int})",
            "{list}.last().value()",
            "{list}[?{int}].orValue({int})",
        ),
        *_simple("network", "{ip}.family()", "{cidr}.prefixLength()"),
    ],
    "uint": [
        *_simple("unsigned", "{uint} + {uint}", "{uint} - {uint}", "uint({int})", "{uint} % {uint}", "uint({double})")
    ],
    "double": [
        *_simple(
            "double",
            "{double} + {double}",
            "{double} / {double}",
            "{double} * {double}",
            "double({int})",
            "double({string})",
            "-({double})",
            "{quantity}.asApproximateFloat()",
        ),
    ],
    "string": [
        *_simple("concatenation", "{string} + {string}"),
        *_simple("attribute", "{@string}"),
        *_simple(
            "string functions",
            "{string}.lowerAscii()",
            "{string}.upperAscii()",
            "{string}.trim()",
            "{string}.replace({string}, {string})",
            "{string}.replace({string}, {string}, {int})",
            "{string}.substring({int})",
            "{string}.substring({int}, {int})",
            "{string}.charAt({int})",
            "strings.quote({string})",
            "{strings}.join()",
            "{strings}.join({string})",
        ),
        *_simple(
            "format",
            '"%s-%d".format([{string}, {int}])',
            '"%x".format([{int}])',
            '"%.2f|%e".format([{double}, {double}])',
            '"%b %o %X".format([{int}, {int}, {string}])',
            '"%s".format([{list}])',
            '"%s %s".format([{map}, {bool}])',
            '"%d".format([{string}])',
            '"%s".format([{attribute}])',
        ),
        *_simple(
            "conversion",
            "string({int})",
            "string({double})",
            "string({bool})",
            "string({duration})",
            "string({timestamp})",
            "string({ip})",
            "string({cidr})",
            "string({bytes})",
            "string({uint})",
        ),
        *_simple("regex", '{string}.find("[0-9]+")', "{string}.find({string})"),
        *_simple("url", "{url}.getHostname()", "{url}.getPort()", "{url}.getEscapedPath()", "{url}.getHost()"),
        *_simple("conditional", "({bool} ? {string} : {string})"),
        *_simple("index", "{strings}[{int}]", "{strings}[0]"),
        *_simple("list functions", "{strings}.min()", "{strings}.max()"),
    ],
    "bytes": _simple("bytes", "bytes({string})", "{bytes} + {bytes}"),
    "list": [
        *_simple("list literal", "[{int}, {int}]", "[{int}]", "[?{optint}, {int}]"),
        *_simple(
            "list functions",
            "{list} + {list}",
            "{list}.sort()",
            "{list}.distinct()",
            "{list}.reverse()",
            "{list}.slice(0, 1)",
            "{list}.slice({int}, {int})",
            "lists.range(3)",
            "{nested}.flatten()",
            "[{list}, {list}].flatten()",
            "optional.unwrap([{optint}, {optint}])",
            "[{optint}].unwrapOpt()",
        ),
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
        *_simple("split", '{string}.split(",")', "{string}.split({string})", '{string}.split("", {int})'),
        *_simple("regex", '{string}.findAll("[a-z0-9]")', '{string}.findAll("[0-9]", {int})'),
        *_simple("list literal", "[{string}, {string}]"),
        *_simple(
            "list functions", "{strings}.sort()", "{strings}.distinct()", "{strings} + {strings}", "{strings}.reverse()"
        ),
        Production("map", _loop("map", "strings", "string", "string")),
        Production("filter", _loop("filter", "strings", "string", "bool")),
    ],
    "nested": _simple("list literal", "[{list}, {list}]", "[{list}]"),
    "map": [
        *_simple("map literal", "⟨{string}: {int}⟩", "⟨?{string}: {optint}⟩"),
        Production(
            "transformMap", _loop("transformMap", "map", "string", "int", names=2, second="int"), needs_map=True
        ),
        Production(
            "transformMap with filter",
            _loop("transformMap", "map", "string", "bool,int", names=2, second="int"),
            needs_map=True,
        ),
        *_simple(
            "transformMapEntry",
            "{strings}.slice(0, 1).transformMapEntry(i, v, ⟨v: i⟩)",
            '["k"].transformMapEntry(i, v, {bool}, ⟨v: i⟩)',
        ),
    ],
    "semver": _simple("semver", "semver({string})", "semver({string}, true)", 'semver("v1.02", true)', "{@version}"),
    "quantity": [
        *_simple(
            "quantity",
            "quantity({string})",
            "{quantity}.add({quantity})",
            "{quantity}.sub({quantity})",
            "{quantity}.add({int})",
        ),
        *_simple("capacity", "{capacity}"),
    ],
    "ip": _simple("ip", "ip({string})", "{cidr}.ip()"),
    "cidr": _simple("cidr", "cidr({string})", "{cidr}.masked()"),
    "url": _simple("url", "url({string})"),
    "format": _simple(
        "format library",
        'format.named("dns1123Label").value()',
        "format.dns1035LabelPrefix()",
        "format.byte()",
        "format.uri()",
    ),
    "duration": _simple(
        "times", "{duration} + {duration}", "{timestamp} - {timestamp}", "duration({string})", "[{duration}].max()"
    ),
    "timestamp": _simple("times", "{timestamp} + {duration}", "timestamp({int})", "{timestamp} - {duration}"),
    "type": _simple("type of", "type({int})", "type({string})", "type({attribute})"),
    "optint": [
        *_simple(
            "optional",
            "optional.of({int})",
            "optional.ofNonZeroValue({int})",
            "{optint}.or({optint})",
            "{list}[?{int}]",
            "{map}[?{string}]",
            "{map}.?a",
            "{list}.first()",
        ),
        Production("optMap", _opt_map(False)),
        Production("optFlatMap", _opt_map(True)),
    ],
    "attribute": _simple("attribute", "{@int}", "{@string}", "{@bool}", "{@version}"),
}
