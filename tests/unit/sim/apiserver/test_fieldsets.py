"""Sets of fields keep the laws of sets, and read as they were written."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fishplate.sim.apiserver.fieldsets import (
    Fields,
    decode_fields,
    difference,
    encode_fields,
    intersection,
    show_path,
    union,
    without_below,
)

_KEYS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
_PATHS = st.lists(st.lists(_KEYS, min_size=1, max_size=3).map(tuple), max_size=6)


def _build(paths: list[tuple[str, ...]]) -> Fields:
    fields = Fields()
    for path in paths:
        node = fields
        for key in path:
            node = node.child(key)
        node.here = True
    return fields


@given(_PATHS)
def test_what_is_written_is_read_back(paths: list[tuple[str, ...]]) -> None:
    fields = _build(paths)
    assert set(decode_fields(encode_fields(fields)).paths()) == set(paths)


@given(_PATHS, _PATHS)
def test_the_operations_are_those_of_sets(left: list[tuple[str, ...]], right: list[tuple[str, ...]]) -> None:
    a, b = _build(left), _build(right)
    assert set(union(a, b).paths()) == set(left) | set(right)
    assert set(difference(a, b).paths()) == set(left) - set(right)
    assert set(intersection(a, b).paths()) == set(left) & set(right)
    kept = {p for p in left if not any(p[: len(q)] == q for q in right)}
    assert set(without_below(a, b).paths()) == kept
    assert set(a.paths()) == set(left)


@given(_PATHS)
def test_an_empty_set_is_false(paths: list[tuple[str, ...]]) -> None:
    assert bool(_build(paths)) == bool(paths)
    assert not difference(_build(paths), _build(paths))


def test_paths_are_shown_as_conflicts_show_them() -> None:
    path = ("f:spec", "f:containers", 'k:{"name":"main"}', "f:image")
    assert show_path(path) == '.spec.containers[name="main"].image'
    assert show_path(("f:metadata", "f:finalizers", 'v:"a/b"')) == '.metadata.finalizers[="a/b"]'


def test_a_parent_that_is_owned_itself_is_marked() -> None:
    written: dict[str, Any] = {"f:data": {".": {}, "f:a": {}}}
    assert encode_fields(decode_fields(written)) == written
