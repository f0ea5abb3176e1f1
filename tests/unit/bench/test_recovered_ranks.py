from fishplate.bench.busbw import recover_ranks


def test_a_ratio_that_no_number_of_ranks_gives_tells_nothing() -> None:
    assert recover_ranks("all_reduce", 5.0, 0.01) is None


def test_a_ratio_tells_the_ranks() -> None:
    assert recover_ranks("all_reduce", 1.5, 0.001) == (4, 4)
