"""The comparison with the real code lives beside the tests, in oracle/.

Tests marked `oracle` ask the real code, so they need Go. The first of them in a session builds the program they ask,
once for each minor version and content; the others wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oracle.client import build

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="session")
def build_oracle() -> Callable[[str], str]:
    """Have the oracle of a minor version built, and give that version back."""

    def make(minor: str) -> str:
        build(minor)
        return minor

    return make


@pytest.fixture(params=["1.36", "1.37"])
def minor(request: pytest.FixtureRequest, build_oracle: Callable[[str], str]) -> str:
    """A minor version that is followed exactly, with its oracle at hand."""
    return build_oracle(request.param)
