"""YAML out, in a form that every reader takes the same way.

YAML 1.1 (PyYAML) and YAML 1.2 (Kubernetes) disagree on plain scalars: PyYAML writes the string `12e45678` unquoted and
Kubernetes reads a number, so a placement-group id would change its type on the way. Every string that any of the two
could take for something else is therefore quoted. Quoting too much harms nobody.
"""

import re
from collections.abc import Iterable
from typing import Any

import yaml

# Whatever starts like a number, and the words that some YAML reads as a boolean or as nothing.
_NUMBER_LIKE = re.compile(r"[-+]?\.?\d")
_WORDS = frozenset(
    {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "", ".nan", ".inf", "-.inf", "+.inf"}
)


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401 - PyYAML's own signature
        """Anchors (`&id001`) are legal and nobody expects them in a manifest."""
        return True


def _represent_str(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    plain_is_unsafe = _NUMBER_LIKE.match(text) or text.lower() in _WORDS
    style = '"' if plain_is_unsafe else ("|" if "\n" in text else None)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_str)


def dump_yaml(value: object) -> str:
    """One document, keys in the order given."""
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=120, allow_unicode=True)
    assert isinstance(text, str)
    return text


def dump_yaml_documents(values: Iterable[object]) -> str:
    return "---\n".join(dump_yaml(value) for value in values)
