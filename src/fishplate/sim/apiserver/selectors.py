"""Label and field selectors: parsed once per request, asked once per object."""

from collections.abc import Callable, Mapping
from functools import lru_cache

from fishplate.sim.apiserver import names
from fishplate.sim.apiserver.kinds import Kind
from fishplate.sim.apiserver.status import bad_request
from fishplate.sim.apiserver.values import Object, Value

Matcher = Callable[[Object], bool]
_Test = Callable[[Mapping[str, str]], bool]
_SIGNS = ("==", "!=", "=", "<", ">", ",", "(", ")", "!")


def _tokens(text: str) -> list[str]:
    """Words and signs; the empty string marks the end."""
    found: list[str] = []
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        sign = next((s for s in _SIGNS if text.startswith(s, position)), "")
        if sign:
            found.append(sign)
            position += len(sign)
            continue
        start = position
        while position < len(text) and not text[position].isspace() and text[position] not in "=!<>,()":
            position += 1
        found.append(text[start:position])
    return [*found, ""]


class _LabelParser:
    """The grammar of k8s.io/apimachinery/pkg/labels, with its complaints."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0

    def parse(self) -> list[_Test]:
        tests: list[_Test] = []
        while self._peek():
            if self._peek() in _SIGNS and self._peek() != "!":
                raise bad_request(f"found '{self._peek()}', expected: !, identifier, or 'end of string'")
            try:
                tests.append(self._requirement())
            except ValueError as error:
                raise bad_request(f"unable to parse requirement: {error}") from error
            token = self._next()
            if token == ",":
                if not self._peek() or (self._peek() in _SIGNS and self._peek() != "!"):
                    raise bad_request(f"found '{self._peek()}', expected: identifier after ','")
            elif token:
                raise bad_request(f"found '{token}', expected: ',' or 'end of string'")
        return tests

    def _peek(self) -> str:
        return self._tokens[self._at]

    def _next(self) -> str:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _requirement(self) -> _Test:
        absent = self._peek() == "!"
        if absent:
            self._next()
        key = self._next()
        if not key or key in _SIGNS:
            raise ValueError(f"found '{key}', expected: identifier")
        _refuse(names.qualified_name(key), f'key: Invalid value: "{key}"')
        if absent:
            return lambda labels: key not in labels
        if self._peek() in ("", ","):
            return lambda labels: key in labels
        operator = self._next()
        match operator:
            case "in" | "notin":
                values = self._values()
            case "=" | "==" | "!=" | "<" | ">":
                values = frozenset({self._exact_value()})
            case _:
                raise ValueError(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        return _requirement(key, operator, values)

    def _exact_value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        token = self._next()
        if token in _SIGNS:
            raise ValueError(f"found '{token}', expected: identifier")
        return token

    def _values(self) -> frozenset[str]:
        token = self._next()
        if token != "(":
            raise ValueError(f"found '{token}' expected: '('")
        values: set[str] = set()
        fresh = True
        while True:
            token = self._next()
            if token == ")":
                return frozenset(values | ({""} if fresh else set()))
            if token == ",":
                if fresh:
                    values.add("")
                fresh = True
            elif not token or token in _SIGNS:
                raise ValueError(f"found '{token}', expected: ',', ')' or identifier")
            else:
                values.add(token)
                fresh = False


def _refuse(problems: list[str], subject: str) -> None:
    if problems:
        raise ValueError(f"{subject}: {'; '.join(problems)}")


def _requirement(key: str, operator: str, values: frozenset[str]) -> _Test:
    for value in values:
        if operator in "<>":
            try:
                bound = int(value)
            except ValueError:
                said = "for 'Gt', 'Lt' operators, the value must be an integer"
                raise ValueError(f'values[0]: Invalid value: "{value}": {said}') from None
            return lambda labels: key in labels and _compare(labels[key], bound, operator)
        _refuse(names.label_value(value), f'values[0][{key}]: Invalid value: "{value}"')
    if operator in ("in", "=", "=="):
        return lambda labels: labels.get(key) in values
    return lambda labels: labels.get(key) not in values


def _compare(text: str, bound: int, operator: str) -> bool:
    try:
        number = int(text)
    except ValueError:
        return False
    return number > bound if operator == ">" else number < bound


@lru_cache(maxsize=512)
def parse_labels(text: str) -> Matcher | None:
    """None if everything matches."""
    tests = _LabelParser(text).parse()
    if not tests:
        return None

    def matches(value: Object) -> bool:
        labels = value["metadata"].get("labels") or {}
        return all(test(labels) for test in tests)

    return matches


def parse_fields(kind: Kind, text: str) -> Matcher | None:
    """None if everything matches."""
    terms = [_term(kind, term) for term in text.split(",") if term.strip()] if text else []
    if not terms:
        return None
    return lambda value: all((read_field(kind, value, path) == wanted) == equal for path, equal, wanted in terms)


def _term(kind: Kind, text: str) -> tuple[str, bool, str]:
    for sign, equal in (("!=", False), ("==", True), ("=", True)):
        path, found, wanted = text.partition(sign)
        if found:
            _check_field(kind, path.strip())
            return path.strip(), equal, wanted.strip()
    raise bad_request(f"invalid selector: '{text}'; can't understand '{text}'")


def _check_field(kind: Kind, path: str) -> None:
    if path in ("metadata.name", "metadata.namespace") or path in kind.selectable:
        return
    if kind.conversion_told:
        raise bad_request(f"field label not supported for {kind.api_version}, Kind={kind.kind}: {path}")
    if kind.selectable:
        raise bad_request(f"field label not supported: {path}")
    raise bad_request(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')


def read_field(kind: Kind, value: Object, path: str) -> str:
    """A field as selectors compare it: text, empty where there is nothing."""
    if path == "name":
        path = "metadata.name"
    if kind.kind == "Event" and path == "source":
        return str(value.get("source", {}).get("component") or value.get("reportingComponent", ""))
    found: Value = value
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if isinstance(found, bool) or (found is None and path in ("spec.unschedulable", "spec.hostNetwork")):
        return "true" if found else "false"
    if path == "status.podIPs":
        return ",".join(one.get("ip", "") for one in found or ())
    return "" if found is None else str(found)


def sole_name(text: str) -> str:
    """The name that a field selector asks for, if that is all it asks for."""
    for sign in ("==", "="):
        head, found, name = text.partition(sign)
        if found and head == "metadata.name" and "," not in name:
            return name
    return ""
