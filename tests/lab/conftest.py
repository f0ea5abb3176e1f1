"""Fixtures for tests against real Kubernetes. A lab is made once per run and ends with it, however the run ends."""

import os
from collections.abc import Iterator

import pytest

from lab.session import Lab, attach, running
from lab.state import Request

# The first test of a lab waits for the boot of its nodes, under emulation and perhaps on a busy machine.
_TIMEOUT_S = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("lab") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))


def _name(kind: str) -> str:
    """Fixed, so that a run clears what a killed one left; per worker, so that workers do not."""
    return "-".join(["pytest", kind, os.environ.get("PYTEST_XDIST_WORKER", "main")])


@pytest.fixture(scope="session")
def control_plane() -> Iterator[Lab]:
    """API server, scheduler and controller manager; nodes are whatever the test writes."""
    with running(_name("plane"), Request(nodes=0)) as lab:
        yield lab


@pytest.fixture(scope="session")
def two_nodes() -> Iterator[Lab]:
    """Two booted nodes in the shape of a GB300 machine, joined by Soft-RoCE, with the newer GPU driver's stand-in.

    FISHPLATE_LAB names one that is up already, for whoever writes such tests."""
    if there := os.environ.get("FISHPLATE_LAB"):
        lab = attach(there)
        yield lab
        lab.api.close()
        return
    with running(_name("nodes"), Request(nodes=2, shape="gb300")) as lab:
        yield lab
