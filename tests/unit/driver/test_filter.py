"""`--filter`, held against what cel-go says of the same struct (ext.NativeTypes of resource/v1 DeviceAttribute)."""

import subprocess
import sys

import pytest

from fishplate.driver.filter import DEFAULT_FILTER, Verdict, compile_filter, filter_devices
from fishplate.driver.filter_cel import CelFilter
from fishplate.errors import CelCompileError
from fishplate.k8s.resource import Device, DeviceAttribute

ATTRIBUTES = {
    "s": DeviceAttribute(string="eth1"),
    "i": DeviceAttribute(int_=7),
    "b": DeviceAttribute(bool_=True),
    "e": DeviceAttribute(string=""),
    "v": DeviceAttribute(version="1.2.3"),
    "z": DeviceAttribute(int_=0),
    "f": DeviceAttribute(bool_=False),
    "dra.net/type": DeviceAttribute(string="eth1"),
}

# Answers of cel-go 0.29.2.
ANSWERS = {
    DEFAULT_FILTER: True,
    'attributes["i"].StringValue == "veth"': False,
    'attributes["i"].StringValue != "veth"': True,
    'attributes["i"].StringValue == ""': True,
    'attributes["i"].StringValue.startsWith("x")': False,
    'attributes["s"].IntValue == 0': True,
    'attributes["s"].IntValue > 0': False,
    'attributes["s"].BoolValue': False,
    '!attributes["s"].BoolValue': True,
    'attributes["s"].VersionValue == "1.2.3"': False,
    'attributes["v"].VersionValue == "1.2.3"': True,
    'has(attributes["s"].StringValue)': True,
    'has(attributes["i"].StringValue)': False,
    'has(attributes["e"].StringValue)': True,
    'has(attributes["z"].IntValue)': True,
    'has(attributes["f"].BoolValue)': True,
    'has(attributes["s"].StringValues)': False,
    'attributes["s"].IntValues == []': True,
    'attributes.s.StringValue == "eth1"': True,
    'attributes.exists(k, k.startsWith("dra"))': True,
    'attributes.exists(k, attributes[k].StringValue == "eth1")': True,
    "attributes.all(k, attributes[k].IntValue == 7)": False,
    "attributes.filter(k, has(attributes[k].IntValue)).size() == 2": True,
    'attributes["s"] == attributes["dra.net/type"]': True,
    'attributes["s"] == attributes["i"]': False,
    "size(attributes) == 8": True,
    'attributes["s"].StringValue in ["eth1", "eth2"]': True,
    'attributes["i"].StringValue in ["eth0"]': False,
    'attributes["s"].StringValue.matches("^eth")': True,
    'attributes["missing"].BoolValue || true': True,
    'attributes["s"].IntValue < attributes["i"].IntValue': True,
    'attributes["b"].BoolValue ? true : false': True,
}


@pytest.mark.parametrize(("expression", "answer"), ANSWERS.items())
def test_expressions_mean_what_cel_go_says(expression: str, answer: bool) -> None:
    assert CelFilter(expression).judge(ATTRIBUTES) == Verdict(keep=answer)


@pytest.mark.parametrize("text", ["dra.net/type", "other"])
@pytest.mark.parametrize("kind", ["veth", "ipoib", ""])
def test_the_default_needs_no_cel_and_says_the_same(text: str, kind: str) -> None:
    attributes = {text: DeviceAttribute(string=kind)}
    assert compile_filter().judge(attributes) == CelFilter(DEFAULT_FILTER).judge(attributes)
    assert compile_filter().judge(attributes).keep == (text != "dra.net/type" or kind != "veth")


def test_the_default_does_not_load_the_engine() -> None:
    program = (
        "import sys; from fishplate.driver.filter import compile_filter; compile_filter(); print(sorted(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "fishplate.driver.filter" in loaded
    assert "fishplate.cel" not in loaded


def test_upstreams_spelling_of_the_default_is_the_default() -> None:
    upstream = '!("dra.net/type" in attributes) || attributes["dra.net/type"].StringValue  != "veth"'
    assert type(compile_filter(upstream)) is type(compile_filter())


def test_a_device_on_which_it_fails_is_kept_and_told() -> None:
    verdict = compile_filter('attributes["dra.net/rdma"].BoolValue').judge({})
    assert verdict == Verdict(keep=True, error="no such key: dra.net/rdma")


def test_what_is_not_a_bool_drops_the_device_and_is_told() -> None:
    verdict = compile_filter('attributes["s"].StringValue').judge(ATTRIBUTES)
    assert verdict == Verdict(keep=False, error="the filter gives string, not bool")


def test_an_expression_that_would_run_for_ever_is_stopped_and_the_device_kept() -> None:
    loops = "".join(f"attributes.all({name}, " for name in "abcdefgh")
    verdict = compile_filter(f"{loops}true{')' * 8}").judge(ATTRIBUTES)
    assert verdict.keep
    assert "cost limit exceeded" in verdict.error


def test_an_empty_filter_keeps_everything() -> None:
    assert compile_filter(" ").judge({"dra.net/type": DeviceAttribute(string="veth")}).keep


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ('attributes["s"].Nope', "undefined field 'Nope'\n | attributes[\"s\"].Nope\n | ...............^"),
        ('attributes["s"].stringValue', "undefined field 'stringValue'"),
        ('attributes["s"]["StringValue"]', "no matching overload for '_[_]' applied to '(v1.DeviceAttribute, string)'"),
        ('attributes["s"].StringValue == 1', "no matching overload for '_==_' applied to '(string, int)'"),
        ('device.driver == "x"', "undeclared reference to 'device'"),
        ("attributes[", "Syntax error"),
        ('attributes["s"].StringValue.matches("(")', "invalid matches argument"),
        ('int("x") == 1', "type conversion error"),
    ],
)
def test_what_does_not_compile_is_refused_at_the_start(expression: str, said: str) -> None:
    with pytest.raises(CelCompileError) as caught:
        compile_filter(expression)
    assert said in str(caught.value)
    assert str(caught.value).startswith("--filter does not compile: ")


def test_devices_are_kept_in_order_with_the_reasons_of_those_in_doubt() -> None:
    devices = [
        Device(name="a", attributes={"x": DeviceAttribute(bool_=True)}),
        Device(name="b", attributes={"x": DeviceAttribute(bool_=False)}),
        Device(name="c"),
    ]
    filtered = filter_devices(compile_filter('attributes["x"].BoolValue'), devices)
    assert [device.name for device in filtered.kept] == ["a", "c"]
    assert filtered.errors == {"c": "no such key: x"}
