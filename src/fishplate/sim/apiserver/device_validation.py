"""What resource.k8s.io/v1 kinds share: names of drivers, pools and attributes, selectors, parameters, taints."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from fishplate.cel import MAX_EXPRESSION_BYTES, environment
from fishplate.errors import CelCompileError
from fishplate.sim.apiserver import causes, names
from fishplate.sim.apiserver.status import Cause
from fishplate.sim.apiserver.values import Object

Check = Callable[[Any, str], Iterator[Cause]]
EFFECTS = ("NoExecute", "NoSchedule", "None")
_OPERATORS = ("Equal", "Exists")
_MAX_PARAMETERS = 10 << 10
_MAX_SELECTORS = 32
_MAX_CONDITIONS = 4
_MAX_NAME = 63
_MAX_POOL = 253
_MAX_IDENTIFIER = 32


def check_list(
    items: Sequence[Any], limit: int, check: Check, field: str, key: Callable[[Any], Hashable] | None = None
) -> Iterator[Cause]:
    """Every item, their number, and that no key comes twice; too many are not looked at one by one."""
    if limit >= 0 and len(items) > limit:
        yield causes.too_many(field, len(items), limit)
        return
    for index, item in enumerate(items):
        yield from check(item, f"{field}[{index}]")
    if key is not None:
        seen: set[Hashable] = set()
        for index, item in enumerate(items):
            if key(item) in seen:
                yield causes.duplicate(f"{field}[{index}]", key(item))
            seen.add(key(item))


def check_all(texts: list[str], field: str, value: str) -> Iterator[Cause]:
    for text in texts:
        yield causes.invalid(field, value, text)


def check_driver(name: str, field: str) -> Iterator[Cause]:
    if not name:
        yield causes.required(field)
        return
    if len(name) > _MAX_NAME:
        yield causes.too_long(field, _MAX_NAME)
    for text in names.subdomain(name.lower()):
        yield causes.invalid(field, name, text)


def check_pool_name(name: str, field: str) -> Iterator[Cause]:
    if not name:
        yield causes.required(field)
        return
    if len(name) > _MAX_POOL:
        yield causes.too_long(field, _MAX_POOL)
    for part in name.split("/"):
        yield from check_all(names.subdomain(part), field, part)


def check_identifier(name: str, field: str) -> Iterator[Cause]:
    if len(name) > _MAX_IDENTIFIER:
        yield causes.too_long(field, _MAX_IDENTIFIER)
    yield from check_all(names.c_identifier(name), field, name)


def check_qualified(name: str, field: str) -> Iterator[Cause]:
    """`id` or `domain/id`. More slashes pass, as they do upstream."""
    parts = name.split("/")
    if len(parts) == 1:
        yield from check_identifier(name, field)
    elif len(parts) == 2:
        if parts[0]:
            yield from check_driver(parts[0], field)
        else:
            yield causes.invalid(field, "", "the domain must not be empty")
        if parts[1]:
            yield from check_identifier(parts[1], field)
        else:
            yield causes.invalid(field, "", "the name must not be empty")


def check_fully_qualified(name: str, field: str) -> Iterator[Cause]:
    yield from check_qualified(name, field)
    if "/" not in name:
        yield causes.invalid(field, name, "a fully qualified name must be a domain and a name separated by a slash")


@lru_cache(maxsize=1024)
def _compile(expression: str) -> str:
    """What is wrong with a selector; empty if nothing. It takes milliseconds, and templates repeat themselves."""
    try:
        program = environment("1.36").compile(expression)
    except CelCompileError as error:
        return error.what
    return "too complex" if program.too_expensive else ""


def check_selector(selector: Object, field: str) -> Iterator[Cause]:
    cel = selector.get("cel")
    if cel is None:
        yield causes.required(f"{field}.cel")
        return
    expression = cel["expression"]
    if len(expression.encode()) > MAX_EXPRESSION_BYTES:
        yield causes.too_long(f"{field}.cel.expression", MAX_EXPRESSION_BYTES)
        return
    wrong = _compile(expression)
    if wrong == "too complex":
        yield causes.forbidden(f"{field}.cel.expression", "too complex, exceeds cost limit")
    elif wrong:
        yield causes.invalid(f"{field}.cel.expression", expression, wrong)


def check_selectors(selectors: list[Object], field: str) -> Iterator[Cause]:
    yield from check_list(selectors, _MAX_SELECTORS, check_selector, field)


def check_raw(value: object, field: str) -> Iterator[Cause]:
    """Somebody's own JSON: an object, and not too long."""
    if value is None:
        yield causes.required(field)
    elif len(msgspec.json.encode(value)) > _MAX_PARAMETERS:
        yield causes.too_long(field, _MAX_PARAMETERS)
    elif not isinstance(value, dict):
        yield causes.invalid(field, "<value omitted>", "must be a valid JSON object")


def check_configuration(config: Object, field: str) -> Iterator[Cause]:
    opaque = config.get("opaque")
    if opaque is None:
        yield causes.required(f"{field}.opaque")
        return
    yield from check_driver(opaque["driver"], f"{field}.opaque.driver")
    yield from check_raw(opaque.get("parameters"), f"{field}.opaque.parameters")


def check_taint(taint: Object, field: str) -> Iterator[Cause]:
    yield from check_all(names.qualified_name(taint["key"]), f"{field}.key", taint["key"])
    if taint.get("value"):
        yield from check_all(names.label_value(taint["value"]), f"{field}.value", taint["value"])
    if not taint["effect"]:
        yield causes.required(f"{field}.effect")
    elif taint["effect"] not in EFFECTS:
        yield causes.unsupported(f"{field}.effect", taint["effect"], EFFECTS)


def check_toleration(toleration: Object, field: str) -> Iterator[Cause]:
    key, operator, value = (toleration.get(name, "") for name in ("key", "operator", "value"))
    if key:
        yield from check_all(names.qualified_name(key), f"{field}.key", key)
    if operator == "Exists":
        if value:
            yield causes.invalid(f"{field}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        yield from check_all(names.label_value(value), f"{field}.value", value)
    else:
        yield causes.unsupported(f"{field}.operator", operator, _OPERATORS)
    effect = toleration.get("effect", "")
    if effect and effect not in EFFECTS:
        yield causes.unsupported(f"{field}.effect", effect, EFFECTS)


def check_node_selector(selector: Object, field: str) -> Iterator[Cause]:
    if not selector.get("nodeSelectorTerms"):
        yield causes.required(f"{field}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(selector.get("nodeSelectorTerms") or ()):
        for group in ("matchExpressions", "matchFields"):
            for number, one in enumerate(term.get(group) or ()):
                place = f"{field}.nodeSelectorTerms[{index}].{group}[{number}]"
                yield from _check_requirement(one, place)


def _check_requirement(one: Object, field: str) -> Iterator[Cause]:
    operator, values = one["operator"], one.get("values") or []
    match operator:
        case "In" | "NotIn":
            if not values:
                said = "must be specified when `operator` is 'In' or 'NotIn'"
                yield causes.required(f"{field}.values", said)
        case "Exists" | "DoesNotExist":
            if values:
                said = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield causes.forbidden(f"{field}.values", said)
        case "Gt" | "Lt":
            if len(values) != 1:
                said = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield causes.required(f"{field}.values", said)
        case _:
            yield causes.invalid(f"{field}.operator", operator, "not a valid selector operator")


def check_binding_conditions(holder: Object, field: str) -> Iterator[Cause]:
    lists = {name: holder.get(name) or [] for name in ("bindingConditions", "bindingFailureConditions")}
    for name, conditions in lists.items():
        if len(conditions) > _MAX_CONDITIONS:
            yield causes.too_many(f"{field}.{name}", len(conditions), _MAX_CONDITIONS)
            continue
        for index, one in enumerate(conditions):
            yield from check_all(names.qualified_name(one), f"{field}.{name}[{index}]", one)
    good, bad = lists.values()
    for name, conditions in lists.items():
        for index, one in enumerate(conditions):
            if one in conditions[:index]:
                yield causes.duplicate(f"{field}.{name}[{index}]", one)
            if name == "bindingFailureConditions" and one in good:
                said = "bindingFailureConditions must not overlap with bindingConditions"
                yield causes.invalid(f"{field}.{name}[{index}]", one, said)
    if bad and not good:
        said = "bindingConditions are required to use bindingFailureConditions"
        yield causes.invalid(f"{field}.bindingConditions", None, said)
    if good and not bad:
        said = "bindingFailureConditions are required to use bindingConditions"
        yield causes.invalid(f"{field}.bindingFailureConditions", None, said)
