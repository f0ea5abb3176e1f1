import pytest

from fishplate.node.cpus import parse_cpu_list


def test_ranges_and_single_numbers() -> None:
    assert parse_cpu_list("0-3,8,10-11\n") == {0, 1, 2, 3, 8, 10, 11}
    assert parse_cpu_list("") == frozenset()


@pytest.mark.parametrize("text", ["a", "3-1", "1-", "0-99999999", "1;2", "-1"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a list of CPUs"):
        parse_cpu_list(text)
