"""Reads a catalogue file, and says everything that is wrong with it at once.

A good file takes the fast way: one YAML parse, one msgspec conversion. Only when that fails is the file looked at
again, field by field and with line numbers, so that a user who made three mistakes reads about three mistakes. The file
is never guessed at: an unknown field is refused, because a typo in `numa` would otherwise be a silent `not known`.
"""

import datetime as dt
import difflib
import types
import typing
from collections.abc import Iterable, Iterator

import msgspec
import yaml

from fishplate.errors import DocumentError
from fishplate.hardware.consistency import Problem, check_entry, check_sources
from fishplate.hardware.size import Document, Entry


def parse_document(text: str, where: str) -> Document:
    """The file's content, checked. Raises one DocumentError with all problems."""
    raw = _parse_yaml(text, where)
    try:
        document = msgspec.convert(raw, Document)
    except msgspec.ValidationError as error:
        problems = list(_find_form_problems(Document, raw, ())) or [Problem((), str(error))]
        raise _report(problems, text, where) from error
    problems = [
        Problem(("sizes", index, *problem.path), problem.what, problem.remedy)
        for index, entry in enumerate(document.sizes)
        for problem in _find_content_problems(entry, document.sources)
    ]
    problems += _find_duplicates(document)
    if problems:
        raise _report(problems, text, where)
    return document


def _find_content_problems(entry: Entry, sources: dict[str, str]) -> Iterator[Problem]:
    yield from check_entry(entry)
    yield from check_sources(entry, sources)


def _find_duplicates(document: Document) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for index, entry in enumerate(document.sizes):
        first = seen.setdefault(entry.name.lower(), index)
        if first != index:
            yield Problem(("sizes", index, "name"), f"{entry.name} is already entry {first + 1} of this file")


def _parse_yaml(text: str, where: str) -> object:
    try:
        return yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise DocumentError(
            f"not YAML: {error.problem or error.context}",
            where=f"{where}{line}",
            remedy="see docs/catalogue.md for the form of a catalogue file",
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DocumentError(
            f"not YAML: {error}", where=where, remedy="see docs/catalogue.md for the form of a catalogue file"
        ) from error


def _find_form_problems(expected: object, raw: object, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Walk a value beside the type it should have; Structs and tuples are walked into, the rest is left to msgspec."""
    inner = _unwrap_optional(expected)
    if raw is None and inner is not expected:
        return
    if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        yield from _find_struct_problems(inner, raw, path)
    elif typing.get_origin(inner) is tuple and isinstance(raw, list):
        for index, item in enumerate(raw):
            yield from _find_form_problems(typing.get_args(inner)[0], item, (*path, index))
    else:
        try:
            msgspec.convert(raw, expected)
        except msgspec.ValidationError as error:
            yield Problem(path, str(error).partition(" - at ")[0], _quote_hint(inner, raw))


def _find_struct_problems(struct: type[msgspec.Struct], raw: object, path: tuple[str | int, ...]) -> Iterator[Problem]:
    if not isinstance(raw, dict):
        yield Problem(path, f"expected a mapping of fields, got {type(raw).__name__}")
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    for key in raw:
        if key not in fields:
            near = [name for name in fields if name.startswith(str(key))] or difflib.get_close_matches(str(key), fields)
            remedy = f"did you mean {near[0]}?" if near else f"known fields: {', '.join(sorted(fields))}"
            yield Problem((*path, str(key)), f"unknown field {key!r}", remedy)
    for name, field in fields.items():
        if name in raw:
            yield from _find_form_problems(field.type, raw[name], (*path, name))
        elif field.required:
            yield Problem((*path, name), "this field is missing")


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


def _report(problems: list[Problem], text: str, where: str) -> DocumentError:
    lines = _Lines(text)
    shown = []
    for problem in sorted(problems, key=lambda problem: lines.find(problem.path)):
        line = f"line {lines.find(problem.path)}: "
        remedy = f" ({problem.remedy})" if problem.remedy else ""
        shown.append(f"{line}{format_path(problem.path)}: {problem.what}{remedy}")
    first = lines.find(problems[0].path) if len(problems) == 1 else 0
    count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
    return DocumentError(
        f"{count} in this catalogue file\n  " + "\n  ".join(shown),
        where=f"{where}:{first}" if first else where,
        remedy="see docs/catalogue.md for the form of a catalogue file",
    )


def format_path(path: Iterable[str | int]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.lstrip(".") or "the file"


class _Lines:
    """Line numbers by field path; a field that is not there has the line of what should hold it."""

    def __init__(self, text: str) -> None:
        self._top = yaml.compose(text, Loader=yaml.CSafeLoader)

    def find(self, path: tuple[str | int, ...]) -> int:
        node, line = self._top, 1
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
