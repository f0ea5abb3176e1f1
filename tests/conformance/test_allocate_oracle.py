"""A small share of the comparison by `python -m oracle.diff allocate`."""

from __future__ import annotations

import pytest

from oracle.diff_allocate import run_allocate

WORLDS = 100

# A cold build of the oracle fetches and compiles half of Kubernetes.
pytestmark = [pytest.mark.go, pytest.mark.timeout(900)]


def test_random_worlds_agree_with_the_real_allocator(minor: str) -> None:
    tally = run_allocate(minor, WORLDS, seed=7, features=False)
    assert tally.disagreements == []
    assert tally.counts["worlds"] == WORLDS
