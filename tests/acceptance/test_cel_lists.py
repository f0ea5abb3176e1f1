"""`fishplate cel --feature-gates`: list attributes, with the types and values that the scheduler gives them."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

Program = Callable[..., CompletedProcess[str]]
GATE = ("--feature-gates", "DRAListTypeAttributes=true")
RAILS = 'device.attributes["dra.net"].rails'


@pytest.fixture
def slices(fishplate: Program, tmp_path: Path) -> str:
    one = yaml.safe_load(fishplate("inspect", "--size", "Standard_HB120rs_v3", "-o", "slice").stdout)
    attributes = one["spec"]["devices"][0]["attributes"]
    attributes["dra.net/rails"] = {"ints": [1, 3]}
    attributes["dra.net/supported"] = {"versions": ["1.2.3", "2.0.0"]}
    path = tmp_path / "slices.yaml"
    path.write_text(yaml.safe_dump(one))
    return str(path)


def ask(fishplate: Program, slices: str, expression: str, minor: str, *more: str) -> tuple[str, Any, Any]:
    """Type, result and error."""
    answer = fishplate("cel", expression, "--slices", slices, "--kubernetes", minor, "-o", "json", *more)
    document = json.loads(answer.stdout)
    return document["type"], document["devices"][0]["result"], document["devices"][0]["error"]


@pytest.mark.parametrize(
    ("minor", "gates", "kind"),
    [("1.36", (), "google.protobuf.Any"), ("1.36", GATE, "dyn"), ("1.37", (), "dyn"), ("1.37", GATE, "dyn")],
)
def test_the_type_of_attributes_follows_the_gate(
    fishplate: Program, slices: str, minor: str, gates: tuple[str, ...], kind: str
) -> None:
    assert ask(fishplate, slices, RAILS, minor, *gates)[0] == kind


@pytest.mark.parametrize(("minor", "gates"), [("1.36", GATE), ("1.37", ()), ("1.37", GATE)])
def test_values_of_lists_are_read(fishplate: Program, slices: str, minor: str, gates: tuple[str, ...]) -> None:
    expression = (
        f"{RAILS} == [1, 3] && {RAILS}.exists(r, r == 3) && {RAILS}.includes(1)"
        ' && device.attributes["dra.net"].supported.exists(v, v.isGreaterThan(semver("1.9.0")))'
    )
    assert ask(fishplate, slices, expression, minor, *gates) == ("bool", True, None)
    kind = "CEL result of type list could not be converted to bool: type conversion error from list to 'bool'"
    assert ask(fishplate, slices, RAILS, minor, *gates) == ("dyn", None, kind)


def test_without_the_gate_such_a_device_fails_every_selector(fishplate: Program, slices: str) -> None:
    _, result, error = ask(fishplate, slices, "true", "1.36")
    assert result is None
    assert error == "attribute dra.net/rails: unsupported attribute value"
