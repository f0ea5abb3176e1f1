"""Kubernetes' named formats: `format.dns1123Label().validate(text)` gives an optional list of complaints."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime
from typing import TYPE_CHECKING

from fishplate.cel.library.urls import parse_request
from fishplate.cel.values import NONE, Opaque, Optional, Value

if TYPE_CHECKING:
    from collections.abc import Callable

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_UUID = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_DATETIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")


class Format(Opaque):
    __slots__ = ("name", "regex_size", "validate")
    type_name = "kubernetes.NamedFormat"

    def __init__(self, name: str, regex_size: int, validate: Callable[[str], list[str]]) -> None:
        self.name = name
        self.regex_size = regex_size
        self.validate = validate

    def same(self, other: Value) -> bool:
        return isinstance(other, Format) and self.name == other.name


def _length(text: str, most: int) -> list[str]:
    return [f"must be no more than {most} characters"] if len(text.encode()) > most else []


def _label(text: str) -> list[str]:
    errors = _length(text, 63)
    if not _LABEL.fullmatch(text):
        dotted = _SUBDOMAIN.fullmatch(text)
        errors.append("must not contain dots" if dotted else "a lowercase RFC 1123 label must consist of lower case "
                      "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
                      f"'my-name',  or '123-abc', regex used for validation is '{_LABEL.pattern}')")  # fmt: skip
    return errors


def _subdomain(text: str) -> list[str]:
    errors = _length(text, 253)
    if not _SUBDOMAIN.fullmatch(text):
        errors.append("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
                      "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
                      f"validation is '{_SUBDOMAIN.pattern}')")  # fmt: skip
    return errors


def _label_1035(text: str) -> list[str]:
    errors = _length(text, 63)
    if not _LABEL_1035.fullmatch(text):
        errors.append("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
                      "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
                      f"regex used for validation is '{_LABEL_1035.pattern}')")  # fmt: skip
    return errors


def _qualified_name(text: str) -> list[str]:
    errors: list[str] = []
    *prefixes, name = text.split("/")
    shape = (
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
        f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME.pattern}')"
    )
    if len(prefixes) > 1:
        return [f"a qualified name {shape} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    if prefixes:
        found = ["must be non-empty"] if not prefixes[0] else _subdomain(prefixes[0])
        errors += [f"prefix part {message}" for message in found]
    if not name:
        errors.append("name part must be non-empty")
    else:
        errors += [f"name part {message}" for message in _length(name, 63)]
    return errors if _NAME.fullmatch(name) else [*errors, f"name part {shape}"]


def _label_value(text: str) -> list[str]:
    errors = _length(text, 63)
    if text and not _NAME.fullmatch(text):
        errors.append("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
                      "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
                      f"'12345', regex used for validation is '({_NAME.pattern})?')")  # fmt: skip
    return errors


def _prefix(validate: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """For generateName: a trailing dash is as good as a letter."""
    return lambda text: validate(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)


def _uri(text: str) -> list[str]:
    parsed = parse_request(text)
    return [parsed] if isinstance(parsed, str) else []


def _check(accepts: Callable[[str], bool], complaint: str) -> Callable[[str], list[str]]:
    return lambda text: [] if accepts(text) else [complaint]


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return bool(text)


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    try:
        datetime.strptime(text, "%Y-%m-%d")
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    date, *times = text.lower().split("t")
    match = _DATETIME.fullmatch(times[0]) if times else None
    if match is None or not _is_date(date):
        return False
    return int(match[1]) <= 23 and int(match[2]) <= 59 and int(match[3]) <= 59


# The regex sizes enter the cost; they are those of k8s.io/apiserver/pkg/cel/library/format.go and go-openapi/strfmt.
FORMATS = {
    "dns1123Label": Format("DNS1123Label", 30, _label),
    "dns1123Subdomain": Format("DNS1123Subdomain", 60, _subdomain),
    "dns1035Label": Format("DNS1035Label", 30, _label_1035),
    "qualifiedName": Format("QualifiedName", 60, _qualified_name),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", 30, _prefix(_label)),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", 60, _prefix(_subdomain)),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", 30, _prefix(_label_1035)),
    "labelValue": Format("LabelValue", 40, _label_value),
    "uri": Format("URI", 1103, _uri),
    "uuid": Format("uuid", 70, _check(lambda text: bool(_UUID.fullmatch(text)), "does not match the UUID format")),
    "byte": Format("byte", 84, _check(_is_base64, "invalid base64")),
    "date": Format("date", 71, _check(_is_date, "invalid date")),
    "datetime": Format("datetime", 71, _check(_is_datetime, "invalid datetime")),
}


def named(name: str) -> Value:
    found = FORMATS.get(name)
    return NONE if found is None else Optional(found)


def validate(wanted: Format, text: str) -> Value:
    complaints = wanted.validate(text)
    return Optional(tuple(complaints)) if complaints else NONE


def _constant(wanted: Format) -> Callable[[], Value]:
    return lambda: wanted


OVERLOADS: dict[str, Callable[..., Value]] = {
    "format-named": named,
    "format-validate": validate,
    **{f"format.{name}": _constant(wanted) for name, wanted in FORMATS.items()},
}
