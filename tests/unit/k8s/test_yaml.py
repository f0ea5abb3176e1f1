import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fishplate.k8s.yaml import dump_yaml, dump_yaml_documents

# What YAML 1.1 or 1.2 would take for something else if it stood there unquoted.
TRAPS = [
    "12e45678",
    "1e3",
    "0101",
    "1:20",
    "0x1F",
    "0o17",
    ".5",
    "-1",
    "+1",
    "yes",
    "No",
    "on",
    "OFF",
    "y",
    "N",
    "true",
]
TRAPS += ["null", "~", "", ".inf", "-.INF", ".NaN", "2026-11-15", "1_000", "0b1"]


@pytest.mark.parametrize("text", TRAPS)
def test_strings_that_look_like_something_else_are_quoted(text: str) -> None:
    assert dump_yaml({"key": text}) in (f'key: "{text}"\n', f"key: '{text}'\n")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)
    )
)
def test_what_is_written_reads_back_the_same(value: object) -> None:
    assert yaml.load(dump_yaml(value), Loader=yaml.CSafeLoader) == value


def test_documents_are_separated_and_shared_values_written_out() -> None:
    shared = {"a": "1"}
    text = dump_yaml_documents([{"x": shared, "y": shared}, {"z": 1}])
    assert "&" not in text
    assert list(yaml.safe_load_all(text)) == [{"x": shared, "y": shared}, {"z": 1}]
