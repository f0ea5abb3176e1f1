"""Reads YAML that people wrote, and says everything that is wrong with it at once.

A good document takes the fast way: one YAML parse, one msgspec conversion. Only when that fails is it looked at again,
field by field and with line numbers, so that somebody who made three mistakes reads about three mistakes. Nothing is
guessed at: an unknown field is refused, because a typo would otherwise be a silent default.
"""

import datetime as dt
import difflib
import types
import typing
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import msgspec
import yaml

from fishplate.errors import DocumentError

T = TypeVar("T")
Path = tuple[str | int, ...]


class Problem(NamedTuple):
    """What is wrong with the field at `path`, and what to write instead."""

    path: Path
    what: str
    remedy: str = ""


class Document(NamedTuple):
    """One YAML document of a file: its value, and enough to find the line of any field of it."""

    value: object
    text: str
    where: str
    number: int = 0

    def line(self, path: Path = ()) -> int:
        """The line of a field; of what should hold it, when it is not there."""
        nodes = list(yaml.compose_all(self.text, Loader=yaml.CSafeLoader))
        return _find_line(nodes[self.number], path) if self.number < len(nodes) else 1


def parse_documents(text: str, where: str, *, remedy: str = "") -> list[Document]:
    """All documents of a file; empty ones are left out. Raises DocumentError if it is not YAML."""
    try:
        values = list(yaml.load_all(text, Loader=yaml.CSafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise DocumentError(
            f"not YAML: {error.problem or error.context}", where=f"{where}{line}", remedy=remedy
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DocumentError(f"not YAML: {error}", where=where, remedy=remedy) from error
    return [Document(value, text, where, number) for number, value in enumerate(values) if value is not None]


def convert(
    document: Document, wanted: type[T], *, what: str, remedy: str = "", path: Path = (), strict: bool = False
) -> T:
    """The document, or the part of it at `path`, as a value of type `wanted`. Raises one DocumentError with all
    problems; `what` names the thing. `strict` refuses unknown fields also where the type would let them pass: objects
    from a newer API server may carry some, what a person wrote may not. A Struct lists in `unread_fields` what exists
    and nobody here reads; `status` is the cluster's own writing and never strict."""
    raw = _part(document.value, path)
    try:
        value = msgspec.convert(raw, wanted)
    except msgspec.ValidationError as error:
        problems = list(find_problems(wanted, raw, path, strict=strict)) or [Problem(path, str(error))]
        raise complain(problems, document, what=what, remedy=remedy) from error
    if strict and (problems := list(find_problems(wanted, raw, path, strict=True))):
        raise complain(problems, document, what=what, remedy=remedy)
    return value


def _part(value: object, path: Path) -> object:
    for step in path:
        assert isinstance(value, list | dict)
        value = value[step]  # type: ignore[index]
    return value


def complain(problems: Sequence[Problem], document: Document, *, what: str, remedy: str = "") -> DocumentError:
    """All problems of a document as one error, in the order of their lines."""
    lines = {problem: document.line(problem.path) for problem in problems}
    shown = []
    for problem in sorted(problems, key=lambda problem: lines[problem]):
        hint = f" ({problem.remedy})" if problem.remedy else ""
        shown.append(f"line {lines[problem]}: {format_path(problem.path)}: {problem.what}{hint}")
    count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
    line = f":{lines[problems[0]]}" if len(problems) == 1 else ""
    return DocumentError(
        f"{count} in this {what}\n  " + "\n  ".join(shown), where=f"{document.where}{line}", remedy=remedy
    )


def format_path(path: Iterable[str | int]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.lstrip(".") or "the document"


# -- a value beside the type it should have ----------------------------------------------------------------------


def find_problems(expected: object, raw: object, path: Path, *, strict: bool = False) -> Iterator[Problem]:
    """Structs, lists and mappings are walked into; the rest is left to msgspec."""
    inner = _unwrap_optional(expected)
    origin, arguments = typing.get_origin(inner), typing.get_args(inner)
    if raw is None and inner is not expected:
        return
    if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        yield from _find_struct_problems(inner, raw, path, strict=strict)
    elif origin in (tuple, list) and isinstance(raw, list):
        for index, item in enumerate(raw):
            yield from find_problems(arguments[0], item, (*path, index), strict=strict)
    elif origin is dict and isinstance(raw, dict):
        for key, item in raw.items():
            yield from find_problems(arguments[1], item, (*path, str(key)), strict=strict)
    else:
        try:
            msgspec.convert(raw, expected)
        except msgspec.ValidationError as error:
            yield Problem(path, str(error).partition(" - at ")[0], _quote_hint(inner, raw))


def _find_struct_problems(struct: type[msgspec.Struct], raw: object, path: Path, *, strict: bool) -> Iterator[Problem]:
    if not isinstance(raw, dict):
        yield Problem(path, f"expected a mapping of fields, got {type(raw).__name__}")
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    if strict or struct.__struct_config__.forbid_unknown_fields:
        unread = getattr(struct, "unread_fields", ())
        for key in raw:
            if key not in fields and key not in unread:
                yield Problem((*path, str(key)), f"unknown field {key!r}", nearest_field(str(key), [*fields, *unread]))
    for name, field in fields.items():
        if name in raw:
            yield from find_problems(field.type, raw[name], (*path, name), strict=strict and name != "status")
        elif field.required:
            yield Problem((*path, name), "this field is missing")


def nearest_field(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = [one for one in names if one.startswith(name)] or difflib.get_close_matches(name, names)
    return f"did you mean {near[0]}?" if near else f"known fields: {', '.join(sorted(names))}"


def _unwrap_optional(expected: object) -> object:
    if typing.get_origin(expected) in (types.UnionType, typing.Union):
        inner = [argument for argument in typing.get_args(expected) if argument is not types.NoneType]
        if len(inner) == 1:
            return inner[0]
    return expected


def _quote_hint(expected: object, raw: object) -> str:
    """YAML reads 1021 as a number and 0101 as 65: the one mistake everybody makes with PCI identifiers."""
    if expected is str and isinstance(raw, int | float | dt.date):
        return 'put it in quotes, as in "0101"'
    return ""


# -- lines -------------------------------------------------------------------------------------------------------


def _find_line(node: yaml.Node, path: Path) -> int:
    line = node.start_mark.line + 1
    for step in path:
        if isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == str(step)]
            if not found:
                break
            line, node = found[0][0].start_mark.line + 1, found[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
        else:
            break
    return line
