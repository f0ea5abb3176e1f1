"""What is a name, a label, a qualified name: the rules of k8s.io/apimachinery/pkg/util/validation, and its texts.

Each function returns the complaints about a value; none means that it is good.
"""

import re

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_C_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_IDENTIFIER_TEXT = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
_QUALIFIED_TEXT = (
    "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. "
    "'example.com/MyName')"
)


def _at_most(limit: int) -> str:
    return f"must be no more than {limit} characters"


def subdomain(value: str) -> list[str]:
    said = [_at_most(253)] if len(value) > 253 else []
    return said + ([] if _SUBDOMAIN.fullmatch(value) else [_SUBDOMAIN_TEXT])


def label(value: str) -> list[str]:
    said = [_at_most(63)] if len(value) > 63 else []
    return said + ([] if _LABEL.fullmatch(value) else [_LABEL_TEXT])


def label_value(value: str) -> list[str]:
    said = [_at_most(63)] if len(value) > 63 else []
    return said + ([] if _LABEL_VALUE.fullmatch(value) else [_VALUE_TEXT])


def c_identifier(value: str) -> list[str]:
    return [] if _C_IDENTIFIER.fullmatch(value) else [_IDENTIFIER_TEXT]


def qualified_name(value: str) -> list[str]:
    parts = value.split("/")
    if len(parts) > 2:
        return [_QUALIFIED_TEXT]
    said = []
    if len(parts) == 2:
        if not parts[0]:
            said.append("prefix part must be non-empty")
        said += [f"prefix part {text}" for text in subdomain(parts[0])] if parts[0] else []
    name = parts[-1]
    if not name:
        said.append("name part must be non-empty")
    elif len(name) > 63:
        said.append("name part must be no more than 63 characters")
    return said + ([] if _QUALIFIED.fullmatch(name) else [_NAME_PART])
