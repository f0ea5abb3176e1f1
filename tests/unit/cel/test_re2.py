"""RE2 patterns: what Go accepts behaves as in Go, what Go refuses is refused."""

import pytest

from fishplate.cel.library.re2 import RegexError, compile_re2


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("b$", "ab\n", False),
        ("(?m)b$", "ab\nc", True),
        (r"\d", "٣", False),
        (r"\w+", "é", False),
        ("(?i)abc", "xABCx", True),
        ("a(?i)b", "aB", True),
        ("a(?i)b", "AB", False),
        ("(?i:a)b", "AB", False),
        ("[[:alpha:]]+", "abc", True),
        ("[^[:digit:]]", "7", False),
        (r"\Qa.b\E", "a.b", True),
        (r"\Qa.b\E", "axb", False),
        (r"\x{41}\x42", "AB", True),
        ("(?P<name>a)|b", "b", True),
        (r"a\z", "a", True),
        ("a{2,3}", "aa", True),
        ("x*", "", True),
        (r"[\d-]+", "-", True),
        ("(?s)a.b", "a\nb", True),
        ("a.b", "a\nb", False),
        ("a|(?i)b|c", "C", True),
    ],
)
def test_patterns_mean_what_they_mean_in_go(pattern: str, text: str, found: bool) -> None:
    assert bool(compile_re2(pattern).search(text)) is found


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "missing closing ): `(`"),
        (")", "unexpected ): `)`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[a", "missing closing ]: `[a`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        ("a(?=b)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<=a)", "invalid or unsupported Perl syntax: `(?<=`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
    ],
)
def test_what_go_refuses_is_refused_with_its_words(pattern: str, message: str) -> None:
    with pytest.raises(RegexError) as caught:
        compile_re2(pattern)
    assert str(caught.value) == f"error parsing regexp: {message}"
