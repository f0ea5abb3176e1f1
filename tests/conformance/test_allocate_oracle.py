"""A small share of the comparison by `python -m oracle.diff allocate`, for those who have built the oracle."""

from __future__ import annotations

from oracle.client import MINORS, is_built
from oracle.diff_allocate import run_allocate

WORLDS = 150


def test_random_worlds_agree_with_the_real_allocator() -> None:
    for minor in MINORS:
        if is_built(minor):
            tally = run_allocate(minor, WORLDS, seed=7, features=False)
            assert tally.disagreements == []
            assert tally.counts["worlds"] + tally.counts["worlds on which the real code panics"] == WORLDS
