import pytest

from fishplate.driver.exposition import Family, Histogram, Number
from fishplate.driver.metrics import Metrics


def test_a_counter_is_there_from_the_start_and_counts() -> None:
    metrics = Metrics()
    assert "fishplate_nri_connections_total 0.0\n" in metrics.text().decode()
    metrics.nri_connections.inc()
    assert "fishplate_nri_connections_total 1.0\n" in metrics.text().decode()


def test_names_and_labels_are_dranets() -> None:
    metrics = Metrics()
    metrics.nri_requests.of("CreateContainer", "noop").inc()
    metrics.nri_seconds.of("CreateContainer", "noop").observe(0.002)
    text = metrics.text().decode()
    assert 'dranet_driver_nri_plugin_requests_total{method="CreateContainer",status="noop"} 1.0' in text
    assert '_latency_seconds_bucket{method="CreateContainer",status="noop",le="0.0025"} 1' in text
    assert '_latency_seconds_bucket{method="CreateContainer",status="noop",le="0.001"} 0' in text


def test_buckets_add_up_and_bounds_belong_to_their_bucket() -> None:
    histogram = Histogram()
    for value in (0.0005, 0.3, 99.0):
        histogram.observe(value)
    lines = list(histogram.lines("x", ""))
    assert 'x_bucket{le="0.0005"} 1' in lines
    assert 'x_bucket{le="10.0"} 2' in lines
    assert lines[-3:] == ['x_bucket{le="+Inf"} 3', "x_sum 99.3005", "x_count 3"]


def test_label_values_cannot_break_the_format() -> None:
    family = Family("counter", "x_total", "help", ("why",), Number)
    family.of('a"b\\c\nd').inc()
    assert list(family.expose())[-1] == 'x_total{why="a\\"b\\\\c\\nd"} 1.0'


def test_a_label_too_few_is_a_fault_of_ours() -> None:
    with pytest.raises(ValueError, match="labels"):
        Family("counter", "x_total", "help", ("a", "b"), Number).of("only")
