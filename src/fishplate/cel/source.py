"""Source text with positions, and error reports in the form users know from kubectl.

ERROR: <input>:1:18: undeclared reference to 'foo' (in container '')
 | device.driver == foo
 | .................^
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

# cel-go reports this many errors and counts the rest.
_MOST_ERRORS = 100
_LONGEST_SNIPPET = 16384


class Issue(NamedTuple):
    """One compile error. Lines and columns count from 1; line -1 means that the error has no place."""

    line: int
    column: int
    message: str


class Source:
    """The text of one expression. Offsets count characters, not bytes."""

    __slots__ = ("_breaks", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._breaks = [index for index, char in enumerate(text) if char == "\n"]

    def place(self, offset: int | None) -> tuple[int, int]:
        """Line and column, from 1, of an offset; (-1, 0) for nowhere."""
        if offset is None:
            return -1, 0
        line = bisect_right(self._breaks, offset - 1)
        start = self._breaks[line - 1] + 1 if line else 0
        return line + 1, offset - start + 1

    def line(self, number: int) -> str | None:
        lines = self.text.split("\n")
        return lines[number - 1] if 0 < number <= len(lines) else None

    def format(self, issues: list[Issue]) -> str:
        ordered = sorted(issues, key=lambda issue: (issue.line, issue.column))
        shown = [self._render(issue) for issue in ordered[:_MOST_ERRORS]]
        if len(issues) > _MOST_ERRORS:
            shown.append(f"{len(issues) - _MOST_ERRORS} more errors were truncated")
        return "\n".join(shown)

    def _render(self, issue: Issue) -> str:
        head = f"ERROR: <input>:{issue.line}:{issue.column}: {issue.message}"
        snippet = self.line(issue.line)
        if snippet is None or len(snippet.encode()) > _LONGEST_SNIPPET:
            return head
        snippet = snippet.replace("\t", " ")
        before = snippet[: issue.column - 1]
        # Wide characters get wide dots, so that the caret stands below the right one.
        dots = "".join("." if char < "\x80" else "\uff0e" for char in before)
        caret = "\uff3e" if snippet[issue.column - 1 : issue.column] >= "\x80" else "^"
        return f"{head}\n | {snippet}\n | {dots}{caret}"


class Report:
    """Collects the errors of one compilation."""

    __slots__ = ("issues", "source")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.issues: list[Issue] = []

    def add(self, offset: int | None, message: str) -> None:
        self.issues.append(Issue(*self.source.place(offset), message))

    def __bool__(self) -> bool:
        return bool(self.issues)

    def __str__(self) -> str:
        return self.source.format(self.issues)
