"""RE2 patterns on Python's `re`.

CEL's regular expressions are RE2's: no look-around, no back-references, ASCII classes, flags that hold from where they
stand. This module reads a pattern by RE2's rules, refuses what RE2 refuses with Go's messages, and writes an equal
pattern for `re`. What it cannot promise is RE2's linear time: `re` backtracks.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache

_MOST_REPEATS = 1000
_PERL = {"d": "0-9", "s": r"\t\n\f\r ", "w": "0-9A-Za-z_"}
_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ", "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ",
    "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_ESCAPES = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
# General categories of Unicode, by their one or two letters; scripts are not known here.
_CATEGORY = re.compile("L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfo]?")
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


class RegexError(ValueError):
    def __init__(self, code: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {code}: `{part}`")


@lru_cache(maxsize=256)
def compile_re2(pattern: str) -> re.Pattern[str]:
    return re.compile(_Translator(pattern).run())


class _Translator:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._flags = ""
        self._groups = 0

    def run(self) -> str:
        out = self._alternation(0)
        if self._at < len(self._text):
            raise RegexError("unexpected )", self._text)
        return out

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _alternation(self, depth: int) -> str:
        if depth > _MOST_REPEATS:
            raise RegexError("expression nests too deeply", self._text)
        branches = [""]
        closers = 0
        while self._at < len(self._text) and self._peek() != ")":
            if self._peek() == "|":
                self._at += 1
                branches[-1] += ")" * closers
                branches.append(f"(?{self._python_flags()}:" if closers else "")
                closers = 1 if closers else 0
                continue
            if flags := self._bare_flags():
                # Flags hold to the end of the group: open an inner group that the branch's end closes.
                self._flags = flags
                branches[-1] += f"(?{self._python_flags()}:"
                closers += 1
                continue
            branches[-1] += self._repeated(depth)
        branches[-1] += ")" * closers
        return "|".join(branches)

    def _python_flags(self) -> str:
        on = "".join(flag for flag in "ims" if flag in self._flags)
        off = "".join(flag for flag in "ims" if flag not in self._flags)
        return f"{on}-{off}" if off else on

    def _bare_flags(self) -> str:
        match = re.compile(r"\(\?([imsU]*)(-[imsU]+)?\)").match(self._text, self._at)
        if match is None or not (match[1] or match[2]):
            return ""
        self._at = match.end()
        return self._changed(match[1], match[2] or "") or "-"

    def _changed(self, on: str, off: str) -> str:
        flags = set(self._flags.replace("-", "")) | set(on)
        return "".join(sorted(flags - set(off)))

    def _repeated(self, depth: int) -> str:
        start = self._at
        if self._peek() in ("*", "+", "?") or self._count():
            raise RegexError("missing argument to repetition operator", self._operator(start))
        atom = self._atom(depth)
        previous = ""
        while True:
            begin = self._at
            operator = self._operator(begin)
            if not operator:
                return atom
            if previous:
                raise RegexError("invalid nested repetition operator", previous + operator)
            self._at += len(operator)
            lazy = operator.endswith("?") and len(operator) > 1
            core = operator[:-1] if lazy else operator
            if "U" in self._flags:
                lazy = not lazy
            atom = f"(?:{atom}){core}{'?' if lazy else ''}"
            previous = operator

    def _count(self) -> re.Match[str] | None:
        return re.compile(r"\{([0-9]+)(,([0-9]*))?\}").match(self._text, self._at)

    def _operator(self, start: int) -> str:
        char = self._text[start : start + 1]
        if char and char in "*+?":
            return char + ("?" if self._text[start + 1 : start + 2] == "?" else "")
        match = self._count()
        if match is None:
            return ""
        low, high = int(match[1]), int(match[3] or match[1])
        if low > _MOST_REPEATS or high > _MOST_REPEATS or low > high:
            raise RegexError("invalid repeat count", match.group())
        return match.group() + ("?" if self._text[match.end() : match.end() + 1] == "?" else "")

    def _atom(self, depth: int) -> str:
        char = self._peek()
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escape()
        self._at += 1
        if char == "$":
            return r"(?m:$)" if "m" in self._flags else r"\Z"
        if char == "^":
            return r"(?m:^)" if "m" in self._flags else r"\A"
        return char if char == "." else re.escape(char)

    def _group(self, depth: int) -> str:
        start, saved = self._at, self._flags
        match = re.compile(r"\((?:\?P?<([A-Za-z0-9_]+)>|\?([imsU]*)(-[imsU]+)?:|(?!\?))").match(self._text, start)
        if match is None:
            self._refuse_group()
        assert match is not None
        self._at = match.end()
        opened = "("
        if match[2] is not None:
            self._flags = self._changed(match[2], match[3] or "")
            opened = f"(?{self._python_flags()}:"
        inner = self._alternation(depth + 1)
        if self._peek() != ")":
            raise RegexError("missing closing )", self._text)
        self._at += 1
        self._flags = saved
        return f"{opened}{inner})"

    def _refuse_group(self) -> None:
        rest = self._text[self._at :]
        if rest.startswith(("(?P<", "(?<")) and not rest.startswith(("(?<=", "(?<!")):
            named, end, _ = rest.partition(">")
            raise RegexError("invalid named capture", named + end)
        if rest.startswith(("(?<=", "(?<!", "(?=", "(?!")):
            raise RegexError("invalid or unsupported Perl syntax", rest[:4] if rest[2] == "<" else rest[:3])
        match = re.match(r"\(\?[a-zA-Z-]*", rest)
        shown = rest[: match.end() + 1] if match else rest[:3]
        if ")" not in rest and ":" not in rest:
            raise RegexError("missing closing )", self._text)
        raise RegexError("invalid or unsupported Perl syntax", shown)

    def _escape(self) -> str:
        rest = self._text[self._at :]
        if len(rest) < 2:
            raise RegexError("trailing backslash at end of expression", "")
        kind = rest[1]
        if kind == "Q":
            body, _, _ = rest[2:].partition("\\E")
            self._at += min(len(rest), 2 + len(body) + 2)
            return re.escape(body)
        if kind in "AbBz":
            self._at += 2
            word = "0-9A-Za-z_"
            edge = rf"(?:(?<=[{word}])(?![{word}])|(?<![{word}])(?=[{word}]))"
            inside = rf"(?:(?<=[{word}])(?=[{word}])|(?<![{word}])(?![{word}]))"
            return {"A": r"\A", "z": r"\Z", "b": edge, "B": inside}[kind]
        if kind.lower() in _PERL:
            self._at += 2
            return f"[{'^' if kind.isupper() else ''}{_PERL[kind.lower()]}]"
        if kind in "pP":
            return self._unicode()
        return re.escape(self._character())

    def _unicode(self) -> str:
        match = re.compile(r"\\([pP])(?:\{(\^?)([A-Za-z]+)\}|([A-Za-z]))").match(self._text, self._at)
        name = match and (match[3] or match[4])
        if match is None or not name or not _CATEGORY.fullmatch(name):
            raise RegexError("invalid character class range", self._text[self._at : match.end() if match else None])
        self._at = match.end()
        positive = (match[1] == "p") != bool(match[2])
        return f"[{'' if positive else '^'}{_category(name)}]"

    def _character(self) -> str:
        """One escaped character, as itself."""
        rest = self._text[self._at :]
        match = re.match(r"\\x\{([0-9A-Fa-f]+)\}|\\x([0-9A-Fa-f]{2})|\\([1-7][0-7]{1,2}|0[0-7]{0,2})", rest)
        if match:
            self._at += match.end()
            code = int(match[3], 8) if match[3] else int(match[1] or match[2], 16)
            if code <= 0x10FFFF:
                return chr(code)
        kind = rest[1:2]
        if not match and (kind in _ESCAPES or kind in _PUNCTUATION):
            self._at += 2
            return _ESCAPES.get(kind, kind)
        raise RegexError("invalid escape sequence", match.group() if match else rest[:2])

    def _class(self) -> str:
        start = self._at
        self._at += 1
        negated = self._peek() == "^"
        self._at += negated
        out, first = "", True
        while self._peek() != "]" or first:
            if self._at >= len(self._text):
                raise RegexError("missing closing ]", self._text[start:])
            out += self._class_item(start)
            first = False
        self._at += 1
        return f"[{'^' if negated else ''}{out}]"

    def _class_item(self, start: int) -> str:
        posix = re.compile(r"\[:(\^?)([a-z]+):\]").match(self._text, self._at)
        if posix:
            if posix[2] not in _POSIX:
                raise RegexError("invalid character class range", posix.group())
            self._at = posix.end()
            return _negate(_POSIX[posix[2]]) if posix[1] else _POSIX[posix[2]]
        kind = self._text[self._at + 1 : self._at + 2]
        if self._peek() == "\\" and kind.lower() in _PERL and kind:
            self._at += 2
            return _negate(_PERL[kind.lower()]) if kind.isupper() else _PERL[kind]
        begin = self._at
        low = self._class_character(start)
        if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
            self._at += 1
            high = self._class_character(start)
            if high < low:
                raise RegexError("invalid character class range", self._text[begin : self._at])
            return f"{re.escape(low)}-{re.escape(high)}"
        return re.escape(low)

    def _class_character(self, start: int) -> str:
        if self._at >= len(self._text):
            raise RegexError("missing closing ]", self._text[start:])
        if self._peek() == "\\":
            if self._at + 1 >= len(self._text):
                raise RegexError("trailing backslash at end of expression", "")
            return self._character()
        self._at += 1
        return self._text[self._at - 1]


@lru_cache(maxsize=8)
def _category(name: str) -> str:
    """The characters of a general category, as ranges. Walks all of Unicode, so only when asked and only once."""
    ranges: list[list[int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code)).startswith(name):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)


def _negate(ranges: str) -> str:
    """The complement of an ASCII class, as ranges."""
    members = re.compile(f"[{ranges}]")
    outside = [code for code in range(128) if not members.match(chr(code))]
    return "".join(f"\\x{code:02x}" for code in outside) + "\\x80-\U0010ffff"
