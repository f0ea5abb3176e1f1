"""Reads a catalogue file: its form first, then whether what it says can be true. All problems are shown together."""

from collections.abc import Iterator

from fishplate.documents import Document as YamlDocument
from fishplate.documents import Problem, complain, convert, parse_documents
from fishplate.errors import DocumentError
from fishplate.hardware.consistency import check_entry, check_sources
from fishplate.hardware.size import Document

_REMEDY = "see docs/catalogue.md for the form of a catalogue file"
_WHAT = "catalogue file"


def parse_document(text: str, where: str) -> Document:
    """The file's content, checked. Raises one DocumentError with all problems."""
    documents = parse_documents(text, where, remedy=_REMEDY) or [YamlDocument(None, text, where)]
    if len(documents) > 1:
        raise DocumentError("a catalogue file is one YAML document", where=where, remedy="remove the `---` lines")
    file = convert(documents[0], Document, what=_WHAT, remedy=_REMEDY)
    problems = [*_find_content_problems(file), *_find_duplicates(file)]
    if problems:
        raise complain(problems, documents[0], what=_WHAT, remedy=_REMEDY)
    return file


def _find_content_problems(file: Document) -> Iterator[Problem]:
    for index, entry in enumerate(file.sizes):
        for problem in (*check_entry(entry), *check_sources(entry, file.sources)):
            yield Problem(("sizes", index, *problem.path), problem.what, problem.remedy)


def _find_duplicates(file: Document) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for index, entry in enumerate(file.sizes):
        first = seen.setdefault(entry.name.lower(), index)
        if first != index:
            yield Problem(("sizes", index, "name"), f"{entry.name} is already entry {first + 1} of this file")
