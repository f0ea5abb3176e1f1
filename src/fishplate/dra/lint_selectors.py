"""Rules about selectors: names, types and texts, held against what is published."""

import difflib
import re
from collections.abc import Iterable, Iterator

from fishplate.cel import Program
from fishplate.cel.access import device_path
from fishplate.cel.ast import Call, Expr, ListExpr, Literal, walk
from fishplate.cel.parser import parse
from fishplate.cel.source import Report, Source
from fishplate.dra.lint_subject import Hit, Selector, Setting, Subject
from fishplate.findings import Verdict

_COMPARISONS = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})
_PROBE_ORDER_NAME = re.compile(r"mlx[45]_\d+\Z")
_KINDS = {str: "string", bool: "bool", int: "int"}
_SHOWN = 3


def find_unknown_attributes(subject: Subject, setting: Setting) -> Iterator[Hit]:
    if not setting.devices:
        return
    for one in setting.read_selectors(subject):
        if isinstance(one.program, str):
            continue
        for kind, domain, name in sorted(one.program.reads.items):
            key = f"{domain}/{name}"
            if kind == "attribute" and key not in setting.kinds:
                failing = any(
                    failed is one or failed == one for failed, _, _ in setting.try_request(subject, one.asked).failures
                )
                verdict = Verdict.BAD if failing else Verdict.CANNOT_TELL
                yield _unknown(one.path, key, setting, verdict)
    for index, constraint in enumerate(subject.devices.constraints):
        for field, wanted in (
            ("matchAttribute", constraint.match_attribute),
            ("distinctAttribute", constraint.distinct_attribute),
        ):
            if wanted is not None and wanted not in setting.kinds:
                yield _unknown(("constraints", index, field), wanted, setting, Verdict.BAD)


def _unknown(path: tuple[str | int, ...], key: str, setting: Setting, verdict: Verdict) -> Hit:
    near = nearest_attributes(key, setting.kinds)
    remedy = f"did you mean {' or '.join(near)}?" if near else ""
    return Hit(path, f"no published device has the attribute {key}", remedy=remedy, verdict=verdict)


def nearest_attributes(key: str, known: Iterable[str]) -> list[str]:
    """The same id in another domain first, then names that look alike."""
    names = sorted(known)
    _, _, wanted = key.rpartition("/")
    same = [name for name in names if name.rpartition("/")[2].lower() == wanted.lower()]
    return same[:_SHOWN] or difflib.get_close_matches(key, names, n=2, cutoff=0.7) or _alike_by_id(wanted, names)


def _alike_by_id(wanted: str, names: list[str]) -> list[str]:
    ids = {name.rpartition("/")[2]: name for name in names}
    return [ids[near] for near in difflib.get_close_matches(wanted, ids, n=2)]


def find_missing_keys(subject: Subject, setting: Setting) -> Iterator[Hit]:
    """Run-time errors of any sort: the scheduler gives up on the pod at the first device that causes one."""
    for asked in subject.asked:
        trial = setting.try_request(subject, asked)
        shown = set()
        for one, known, message in trial.failures:
            if (one.path, message) in shown or _is_unknown(one, message, setting):
                continue
            shown.add((one.path, message))
            number = sum(failed.path == one.path for failed, _, _ in trial.failures)
            what = f"request {asked.name}: the selector fails on {number} of {len(trial.of_class)} devices: {message}"
            yield Hit(one.path, what, evidence=f"{known.driver}, node {known.node}, device {known.device.name}")


def _is_unknown(one: Selector, message: str, setting: Setting) -> bool:
    """Whether another rule says the same, and better: that nobody has this attribute."""
    assert isinstance(one.program, Program)
    reads = one.program.reads.items
    names = {name for kind, domain, name in reads if kind == "attribute" and f"{domain}/{name}" not in setting.kinds}
    return any(message == f"no such key: {name}" for name in names)


def find_wrong_types(subject: Subject, setting: Setting) -> Iterator[Hit]:
    for one in setting.read_selectors(subject):
        for key, value in _compared(one.text):
            kinds = setting.kinds.get(key, set())
            written = _KINDS.get(type(value), "")
            if not kinds or not written or written in kinds or "list" in kinds:
                continue
            said = f"{key} is of type {' or '.join(sorted(kinds))} and is compared with the {written} {value!r}"
            yield Hit(
                one.path, f"request {one.asked.name}: {said}: they are never equal", remedy=_other_form(kinds, value)
            )


def _other_form(kinds: set[str], value: object) -> str:
    if "version" in kinds:
        return 'compare versions with .compareTo(semver("1.2.3"))'
    if "int" in kinds and isinstance(value, str) and value.lstrip("-").isdigit():
        return f"write {value} without quotes"
    if "bool" in kinds and isinstance(value, str) and value in ("true", "false"):
        return f"write {value} without quotes"
    if "string" in kinds:
        return f'write "{value}" with quotes'
    return ""


def _compared(text: str) -> Iterator[tuple[str, object]]:
    """Attributes beside the constants they are compared with."""
    for part in _parts(text):
        match part:
            case Call(args=[left, right]) if part.function in _COMPARISONS:
                for attribute, constant in ((left, right), (right, left)):
                    if (key := _attribute(attribute)) and isinstance(constant, Literal):
                        yield key, constant.value
            case Call(function="@in", args=[left, ListExpr() as constants]):
                if key := _attribute(left):
                    yield from ((key, one.value) for one in constants.elements if isinstance(one, Literal))


def _parts(text: str) -> Iterator[Expr]:
    """Every part of an expression; nothing if it cannot be parsed, which another rule says."""
    report = Report(Source(text))
    expr, _, _ = parse(text, report, escaped_names=True)
    if expr is not None and not report:
        yield from walk(expr)


def _attribute(expr: Expr) -> str:
    path = device_path(expr, {})
    return f"{path[1]}/{path[2]}" if path is not None and len(path) == 3 and path[0] == "attributes" else ""


def find_device_names(subject: Subject, setting: Setting) -> Iterator[Hit]:
    for one in setting.read_selectors(subject):
        for part in _parts(one.text):
            if isinstance(part, Literal) and isinstance(part.value, str) and _PROBE_ORDER_NAME.match(part.value):
                yield Hit(one.path, f"request {one.asked.name} names the device {part.value}", evidence=one.text)


def find_empty_requests(subject: Subject, setting: Setting) -> Iterator[Hit]:
    if setting.scene is None:
        return
    for asked in subject.asked:
        if asked.class_name not in setting.classes:
            continue
        trial = setting.try_request(subject, asked)
        if (
            trial.matching
            or trial.failures
            or any(isinstance(one.program, str) for one in setting.read_selectors(subject) if one.asked == asked)
        ):
            continue
        if not trial.of_class:
            yield Hit(asked.path, f"request {asked.name}: no published device is of class {asked.class_name}")
            continue
        what = (
            f"request {asked.name}: none of the {len(trial.of_class)} devices of class {asked.class_name} is selected"
        )
        yield Hit(asked.path, what, evidence=_first_false(subject, setting, asked.name))


def _first_false(subject: Subject, setting: Setting, name: str) -> str:
    """The clauses that no device meets, or else those that the first device does not."""
    own = [one for one in setting.read_selectors(subject) if one.asked.name == name]
    devices = setting.try_request(subject, own[0].asked).of_class if own else []
    never: dict[str, list[str]] = {}
    met: set[str] = set()
    for known in devices[:1000]:
        for one in own:
            assert isinstance(one.program, Program)
            for clause in one.program.explain(known.seen):
                if clause.result == "true":
                    met.add(clause.text)
                else:
                    seen = never.setdefault(clause.text, [])
                    seen += [each.value for each in clause.seen if each.value not in seen][:_SHOWN]
    lines = [f"{text} (published: {', '.join(seen[:8])})" for text, seen in never.items() if text not in met]
    return "; ".join(lines) or "every part is true of some device, but all of them together of none"
