"""One way to say what was found: lint rules, discovery, host checks and the benchmark judge all speak it.

A finding names its rule, the place it is about, what is so, the evidence for it and the remedy. Its verdict has three
values, because "cannot tell" is an answer of its own: a probe that could not look must never pass for good.
"""

from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    GOOD = "good"
    BAD = "bad"
    CANNOT_TELL = "cannot-tell"


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    place: str
    what: str
    verdict: Verdict
    evidence: str = ""
    remedy: str = ""


def worst(findings: list[Finding] | tuple[Finding, ...]) -> Verdict:
    """Bad beats cannot-tell beats good; nothing found at all is good."""
    verdicts = {finding.verdict for finding in findings}
    for verdict in (Verdict.BAD, Verdict.CANNOT_TELL):
        if verdict in verdicts:
            return verdict
    return Verdict.GOOD
