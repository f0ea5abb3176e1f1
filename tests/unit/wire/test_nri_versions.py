"""Which events a runtime can be asked for."""

import pytest

from fishplate.wire.nri import Event
from fishplate.wire.nri_versions import infer_nri_version, plan_events

NEW = Event.UPDATE_POD_SANDBOX | Event.POST_UPDATE_POD_SANDBOX


@pytest.mark.parametrize(
    ("name", "version", "told", "nri"),
    [
        ("containerd", "v1.7.13", "", (0, 4, 0)),
        ("containerd", "1.7.28", "", (0, 8, 0)),
        ("containerd", "v2.1.9", "", (0, 8, 0)),
        ("containerd", "v2.2.0", "", (0, 10, 0)),
        ("containerd", "v2.2.0-rc.1", "", (0, 8, 0)),
        ("containerd", "v2.2.1-azure.3", "", (0, 11, 0)),
        ("containerd", "v2.2.9+unknown", "", (0, 11, 0)),
        ("cri-o", "1.33.4", "", (0, 9, 0)),
        ("cri-o", "1.40.0", "", (0, 11, 0)),
        ("containerd", "v2.3.0", "v0.12.1", (0, 12, 1)),
        ("somebody", "1.0", "v0.13.0", (0, 13, 0)),
        ("somebody", "1.0", "0.0.0-unknown", (0, 12, 0)),
        ("somebody", "1.0", "(devel)", (0, 12, 0)),
        ("somebody", "1.0", "", None),
        ("containerd", "devel", "", None),
        ("containerd", "1.6.33", "", None),
    ],
)
def test_the_nri_of_a_runtime(name: str, version: str, told: str, nri: tuple[int, int, int] | None) -> None:
    assert infer_nri_version(name, version, told) == nri


@pytest.mark.parametrize("nri", [None, (0, 2, 0), (0, 6, 1), (0, 9, 0)])
def test_events_that_an_old_runtime_does_not_know_are_left_out(nri: tuple[int, int, int] | None) -> None:
    assert plan_events(Event.CREATE_CONTAINER | NEW, nri) == Event.CREATE_CONTAINER


@pytest.mark.parametrize("nri", [(0, 10, 0), (0, 12, 2), (1, 0, 0)])
def test_a_new_runtime_is_asked_for_all(nri: tuple[int, int, int]) -> None:
    assert plan_events(Event.CREATE_CONTAINER | NEW, nri) == Event.CREATE_CONTAINER | NEW
