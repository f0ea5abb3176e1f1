"""Answers that are no objects: `Status`, and the errors that become one.

The texts are interface: clients match on them, and people search for them.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    504: "Timeout",
}


class Cause(msgspec.Struct, frozen=True, gc=False):
    """One thing wrong with one field."""

    field: str
    message: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class ApiError(Exception):
    """A refusal, on its way to becoming a Status."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str | None = None,
        details: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = REASONS.get(code, "") if reason is None else reason
        self.details = details
        self.metadata = metadata or {}

    def body(self) -> dict[str, Any]:
        status = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata, "status": "Failure"}
        status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        return status | {"code": self.code}


class KindName(msgspec.Struct, frozen=True):
    """How messages name a kind."""

    kind: str
    plural: str
    group: str = ""

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def details(self, name: str = "", **more: object) -> dict[str, Any]:
        said = {"name": name, "group": self.group, "kind": self.plural}
        return {key: value for key, value in (said | more).items() if value}


def bad_request(message: str) -> ApiError:
    return ApiError(400, message)


def not_found(kind: KindName, name: str) -> ApiError:
    return ApiError(404, f'{kind.qualified} "{name}" not found', details=kind.details(name))


def no_such_resource() -> ApiError:
    return ApiError(404, "the server could not find the requested resource", details={})


def no_such_method() -> ApiError:
    return ApiError(405, "the server does not allow this method on the requested resource", details={})


def already_exists(kind: KindName, name: str) -> ApiError:
    message = f'{kind.qualified} "{name}" already exists'
    return ApiError(409, message, reason="AlreadyExists", details=kind.details(name))


def conflict(kind: KindName, name: str, message: str) -> ApiError:
    text = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {message}'
    return ApiError(409, text, details=kind.details(name))


def stale(kind: KindName, name: str) -> ApiError:
    said = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, said)


def forbidden(kind: KindName, name: str, message: str, causes: Sequence[Cause] = ()) -> ApiError:
    subject = f'{kind.qualified} "{name}"' if name else kind.qualified
    details = kind.details(name, causes=_causes(causes))
    return ApiError(403, f"{subject} is forbidden: {message}", details=details)


def invalid(kind: str, group: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """422 with every cause; a text that comes twice is said once."""
    texts = list(dict.fromkeys(str(cause) for cause in causes))
    said = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    details = {"name": name, "group": group, "kind": kind, "causes": _causes(causes)}
    details = {key: value for key, value in details.items() if value}
    return ApiError(422, f'{qualified} "{name}" is invalid: {said}', details=details)


def _causes(causes: Sequence[Cause]) -> list[dict[str, str]]:
    ordered = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    return [{key: value for key, value in cause.items() if value} for cause in ordered]


def expired(message: str, *, token: str = "") -> ApiError:
    return ApiError(410, message, metadata={"continue": token} if token else None)
