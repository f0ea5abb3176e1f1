import pytest

from fishplate.bench.busbw import factor, infer_test, name_test, recover_ranks
from fishplate.bench.ceiling import find_ceiling, load_model
from fishplate.bench.results import Context
from fishplate.errors import InputError
from fishplate.hardware.catalog import Catalog

H100 = "Standard_ND96isr_H100_v5"
GB300 = "Standard_ND128isr_GB300_v6"
MI300X = "Standard_ND96isr_MI300X_v5"


@pytest.mark.parametrize(("ranks", "wanted"), [(2, 1.0), (16, 1.875), (1, 0.0)])
def test_all_reduce_moves_every_byte_almost_twice(ranks: int, wanted: float) -> None:
    assert factor("all_reduce", ranks) == wanted


@pytest.mark.parametrize("ranks", [2, 3, 8, 16, 64, 128])
def test_the_rank_count_comes_back_from_the_ratio(ranks: int) -> None:
    for test in ("all_reduce", "all_gather"):
        ratio = factor(test, ranks)
        assert ratio is not None
        assert recover_ranks(test, ratio, 1e-6) == (ranks, ranks)


def test_only_all_reduce_is_told_from_its_numbers() -> None:
    assert infer_test(1.875, 16, 1e-4) == "all_reduce"
    assert infer_test(0.9375, 16, 1e-4) == infer_test(1.0, 2, 1e-4) == ""


def test_programs_are_named_by_their_test() -> None:
    assert name_test("/opt/nccl_tests/build/all_reduce_perf") == "all_reduce"
    assert name_test("alltoall_perf_mpi") == "alltoall"
    assert name_test("ls") == ""


@pytest.mark.parametrize(
    ("size", "nodes", "gpus", "nics", "busbw"),
    [
        (GB300, 2, 1, 1, 56.175),
        (GB300, 2, 1, 2, 112.35),
        (H100, 8, 8, 8, 450.0),
        (H100, 2, 8, 8, 480.0),
        (H100, 2, 1, 1, 50.0),
        (MI300X, 2, 8, 8, 400.0),
        ("Standard_ND96asr_v4", 2, 8, 8, 200.0),
    ],
)
def test_ceilings(catalog: Catalog, size: str, nodes: int, gpus: int, nics: int, busbw: float) -> None:
    found = find_ceiling(catalog.find(size), Context(nodes=nodes, gpus=gpus, nics=nics))
    assert found.busbw == pytest.approx(busbw)
    assert found.good_from == pytest.approx(0.85 * found.ring)
    assert found.sources


def test_data_direct_leaves_the_pcie_path_out(catalog: Catalog) -> None:
    found = find_ceiling(catalog.find(GB300), Context(nodes=2, gpus=1, nics=1), data_direct=True)
    assert found.busbw == 100


def test_across_numa_nodes_a_measured_rate_is_taken_where_there_is_one(catalog: Catalog) -> None:
    far = Context(nodes=2, gpus=1, nics=1, align="none")
    assert find_ceiling(catalog.find(GB300), far).busbw == 25
    assert any("not published" in step for step in find_ceiling(catalog.find(H100), far).steps)


def test_ranks_of_a_node_share_its_nics_in_an_alltoall(catalog: Catalog) -> None:
    found = find_ceiling(catalog.find(H100), Context(nodes=2, gpus=8, nics=8), test="alltoall")
    assert found.busbw == pytest.approx(400 * 15 / 64)


@pytest.mark.parametrize(("context", "test"), [(Context(nodes=1), "all_reduce"), (Context(nodes=2), "gather")])
def test_where_the_model_does_not_reach_it_refuses(catalog: Catalog, context: Context, test: str) -> None:
    with pytest.raises(InputError):
        find_ceiling(catalog.find(H100), context, test=test)


def test_every_figure_of_the_model_names_its_source() -> None:
    model = load_model()
    assert all(key in model.sources for gpu in model.gpus.values() for key in gpu.sources)
    assert all(gpu.sources for gpu in model.gpus.values())
