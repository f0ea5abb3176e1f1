"""The ways in which a field can be wrong, in the words of k8s.io/apimachinery/pkg/util/validation/field."""

from collections.abc import Iterable

import msgspec

from fishplate.sim.apiserver.status import Cause


def quote(value: object) -> str:
    """A value as Go prints it in a message: strings quoted, the rest as JSON."""
    return msgspec.json.encode(value).decode()


def invalid(field: str, value: object, detail: str) -> Cause:
    return Cause(field, f"Invalid value: {quote(value)}: {detail}", "FieldValueInvalid")


def invalid_as(field: str, shown: str, detail: str) -> Cause:
    """The same for a value whose printed form is known already."""
    return Cause(field, f"Invalid value: {shown}: {detail}", "FieldValueInvalid")


def required(field: str, detail: str = "") -> Cause:
    return Cause(field, f"Required value: {detail}" if detail else "Required value", "FieldValueRequired")


def forbidden(field: str, detail: str) -> Cause:
    return Cause(field, f"Forbidden: {detail}", "FieldValueForbidden")


def duplicate(field: str, value: object) -> Cause:
    return Cause(field, f"Duplicate value: {quote(value)}", "FieldValueDuplicate")


def duplicate_as(field: str, shown: str) -> Cause:
    return Cause(field, f"Duplicate value: {shown}", "FieldValueDuplicate")


def unsupported(field: str, value: object, known: Iterable[str]) -> Cause:
    said = ", ".join(quote(one) for one in known)
    return Cause(field, f"Unsupported value: {quote(value)}: supported values: {said}", "FieldValueNotSupported")


def too_long(field: str, limit: int) -> Cause:
    return Cause(field, f"Too long: may not be more than {limit} bytes", "FieldValueTooLong")


def too_many(field: str, number: int, limit: int) -> Cause:
    return Cause(field, f"Too many: {number}: must have at most {limit} items", "FieldValueTooMany")


def missing(field: str, value: object, detail: str) -> Cause:
    return Cause(field, f"Not found: {quote(value)}: {detail}", "FieldValueNotFound")
