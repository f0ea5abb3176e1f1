"""Keeps secrets out of results files: of the environment, and of log lines that are quoted.

nccl-tests writes its whole environment into its JSON, and launchers print theirs. Of variables only those are kept that
say something about a benchmark; whatever is quoted loses everything that looks like a credential, wherever it stands.
"""

import re
from collections.abc import Iterable

HIDDEN = "[hidden]"
MAX_TEXT = 300
_MAX_LOOKED_AT = 2000  # nothing beyond is ever shown

_KEPT = re.compile(
    r"(NCCL|RCCL|HSA|HIP|UCX|OMPI_MCA|PRTE_MCA|OMPI_COMM_WORLD|SHARP|FI|CUDA|MPI|GPU|ROCR|NVIDIA)_\w+|LD_LIBRARY_PATH"
)
_SECRET_NAME = (
    r"[\w.-]*(?:password|passwd|secret|token|credential|auth|(?:api|access|account|private|shared)[_-]?key)[\w.-]*"
)
_IS_SECRET_NAME = re.compile(_SECRET_NAME, re.IGNORECASE)
_PATTERNS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.?[\w-]*"),
    re.compile(r"\bgh[pousr]_\w{20,}|\bAKIA[0-9A-Z]{16}\b|\bsk-[\w-]{20,}|\bnvapi-[\w-]{20,}|\bhf_\w{20,}"),
    re.compile(r"(?<=[?&]sig=)[^&\s]+"),
)
_ASSIGNED = r"(\s*[=:]\s*|\"\s*:\s*\"|\s+set\s+(?:by\s+environment\s+)?to\s+)(?!\s)(\"[^\"]*\"|'[^']*'|[^\s,;\"']+)"
_ASSIGNMENT = re.compile(rf"\b({_SECRET_NAME}){_ASSIGNED}", re.IGNORECASE)
_BEARER = re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def scrub_setting(name: str, value: str) -> str:
    """The value of a variable; hidden altogether where its name speaks of a secret."""
    return HIDDEN if _IS_SECRET_NAME.fullmatch(name) else scrub(value)


def scrub(text: str) -> str:
    """One line without secrets and control characters, cut to a length that a person reads."""
    text = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text[:_MAX_LOOKED_AT])
    for pattern in _PATTERNS:
        text = pattern.sub(HIDDEN, text)
    text = _BEARER.sub(rf"\1 {HIDDEN}", text)
    text = _ASSIGNMENT.sub(rf"\1\2{HIDDEN}", text)
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


def keep_environment(variables: Iterable[str]) -> dict[str, str]:
    """`NAME=value` texts: those that say something about a benchmark, scrubbed."""
    pairs = (one.partition("=") for one in variables)
    return {name: scrub_setting(name, value) for name, equals, value in pairs if equals and _KEPT.fullmatch(name)}
