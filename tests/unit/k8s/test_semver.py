"""Versions: strict reading, precedence without build metadata."""

import pytest

from fishplate.errors import InputError
from fishplate.k8s.semver import normalize_semver, parse_semver

ORDER = ["0.0.1", "0.10.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-rc.2", "1.0.0-rc.10", "1.0.0"]


def test_precedence_follows_semver() -> None:
    assert sorted(map(parse_semver, ORDER[::-1])) == [parse_semver(text) for text in ORDER]


def test_build_metadata_does_not_count() -> None:
    assert parse_semver("1.0.0+a") == parse_semver("1.0.0+b")
    assert str(parse_semver("1.0.0+a")) == "1.0.0+a"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Version string empty"),
        ("1.2", "No Major.Minor.Patch elements found"),
        ("v1.2.3", 'Invalid character(s) found in major number "v1"'),
        ("1.02.3", 'Minor number must not contain leading zeroes "02"'),
        ("1.2.3-", "Prerelease is empty"),
        ("1.2.3-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.2.3+", "Build meta data is empty"),
        ("1.2.3+a_b", 'Invalid character(s) found in build meta data "a_b"'),
    ],
)
def test_what_is_not_strict_semver_is_refused_with_the_known_words(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_semver(text)
    assert caught.value.what == message


def test_normalising_fills_in_and_strips() -> None:
    assert normalize_semver("v1") == "1.0.0"
    assert normalize_semver("01.002.3") == "1.2.3"
    with pytest.raises(InputError):
        normalize_semver("1.2-rc")
