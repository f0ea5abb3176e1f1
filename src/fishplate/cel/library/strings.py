"""String functions: those of the language, and version 2 of cel-go's strings extension."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishplate.cel import gotext
from fishplate.cel.library.re2 import RegexError, compile_re2
from fishplate.cel.operators import unsupported
from fishplate.cel.values import NO_SUCH_OVERLOAD, Err, Value, type_name

if TYPE_CHECKING:
    from collections.abc import Callable

# Unicode's White_Space, as Go's unicode.IsSpace has it.
_SPACE = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_QUOTED = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def starts_with(text: Value, prefix: Value) -> Value:
    return text.startswith(prefix) if isinstance(text, str) and isinstance(prefix, str) else NO_SUCH_OVERLOAD


def ends_with(text: Value, suffix: Value) -> Value:
    return text.endswith(suffix) if isinstance(text, str) and isinstance(suffix, str) else NO_SUCH_OVERLOAD


def contains(text: Value, part: Value) -> Value:
    return part in text if isinstance(text, str) and isinstance(part, str) else NO_SUCH_OVERLOAD


def matches(text: Value, pattern: Value) -> Value:
    if not isinstance(text, str):
        return unsupported("matches", text)
    if not isinstance(pattern, str):
        return NO_SUCH_OVERLOAD
    try:
        return compile_re2(pattern).search(text) is not None
    except RegexError as error:
        return Err(str(error))


def find(text: str, pattern: str) -> Value:
    try:
        found = compile_re2(pattern).search(text)
    except RegexError as error:
        return Err(f"Illegal regex: {error}")
    return found.group() if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> Value:
    try:
        compiled = compile_re2(pattern)
    except RegexError as error:
        return Err(f"Illegal regex: {error}")
    out: list[str] = []
    previous = -1
    for match in compiled.finditer(text):
        if 0 <= limit <= len(out):
            break
        # Go drops an empty match that touches the match before it.
        if match.end() == match.start() == previous:
            continue
        out.append(match.group())
        previous = match.end()
    return tuple(out)


def char_at(text: str, index: int) -> Value:
    if not 0 <= index <= len(text):
        return Err(f"index out of range: {index}")
    return text[index : index + 1]


def index_of(text: str, part: str, offset: int = 0) -> Value:
    if not part:
        return offset
    if offset < 0:
        return Err(f"index out of range: {offset}")
    return text.find(part, offset)


def index_of_clamped(text: str, part: str, offset: int = 0) -> Value:
    """From cel-go 0.29 on, an offset beyond the end counts as the end."""
    if offset < 0:
        return Err(f"index out of range: {offset}")
    return text.find(part, offset) if part else min(offset, len(text))


def last_index_of_clamped(text: str, part: str, offset: int) -> Value:
    if offset < 0:
        return Err(f"index out of range: {offset}")
    return last_index_of(text, part, offset) if part else min(offset, len(text))


def last_index_of(text: str, part: str, offset: int | None = None) -> Value:
    if offset is None:
        if not part:
            return len(text)
        if len(text.encode()) < len(part.encode()):
            return -1
        offset = len(text) - 1
    if not part:
        return offset
    if offset < 0:
        return Err(f"index out of range: {offset}")
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def lower_ascii(text: str) -> Value:
    return text.lower() if text.isascii() else "".join(char.lower() if char < "\x80" else char for char in text)


def upper_ascii(text: str) -> Value:
    return text.upper() if text.isascii() else "".join(char.upper() if char < "\x80" else char for char in text)


def replace(text: str, old: str, new: str, limit: int = -1) -> Value:
    return text.replace(old, new, max(limit, -1))


def split(text: str, separator: str, limit: int = -1) -> Value:
    if limit == 0:
        return ()
    if not separator:
        if limit < 0 or limit > len(text):
            limit = len(text)
        return (*text[: limit - 1], text[limit - 1 :]) if limit else ()
    return tuple(text.split(separator) if limit < 0 else text.split(separator, limit - 1))


def substring(text: str, start: int, end: int | None = None) -> Value:
    if end is None:
        return text[start:] if 0 <= start <= len(text) else Err(f"index out of range: {start}")
    if start > end:
        return Err(f"invalid substring range. start: {start}, end: {end}")
    for bound in (start, end):
        if not 0 <= bound <= len(text):
            return Err(f"index out of range: {bound}")
    return text[start:end]


def trim(text: str) -> Value:
    return text.strip(_SPACE)


def join(parts: tuple[Value, ...], separator: str = "") -> Value:
    for part in parts:
        if not isinstance(part, str):
            return Err(f"join: invalid input: {_shown(part)}")
    return separator.join(str(part) for part in parts)


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return gotext.format_g(value)
    return str(value) if isinstance(value, int) else type_name(value)


def quote(text: str) -> Value:
    return '"' + "".join(_QUOTED.get(char, char) for char in text) + '"'


OVERLOADS: dict[str, Callable[..., Value]] = {
    "starts_with_string": starts_with,
    "ends_with_string": ends_with,
    "contains_string": contains,
    "string_find_string": find,
    "string_find_all_string": find_all,
    "string_find_all_string_int": find_all,
    "string_char_at_int": char_at,
    "string_index_of_string": index_of,
    "string_index_of_string_int": index_of,
    "string_last_index_of_string": last_index_of,
    "string_last_index_of_string_int": last_index_of,
    "string_lower_ascii": lower_ascii,
    "string_upper_ascii": upper_ascii,
    "string_replace_string_string": replace,
    "string_replace_string_string_int": replace,
    "string_split_string": split,
    "string_split_string_int": split,
    "string_substring_int": substring,
    "string_substring_int_int": substring,
    "string_trim": trim,
    "list_join": join,
    "list_join_string": join,
    "strings_quote": quote,
}

# Where cel-go 0.29 (Kubernetes 1.37) differs.
MODERN: dict[str, Callable[..., Value]] = {
    "string_index_of_string_int": index_of_clamped,
    "string_last_index_of_string_int": last_index_of_clamped,
}
