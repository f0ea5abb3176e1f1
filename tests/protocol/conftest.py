"""The real peers, built on demand. Where there is no Go, tests/conftest.py leaves these tests out, and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oracle.peers import build

if TYPE_CHECKING:
    from pathlib import Path

# The first of them waits for the Go compiler, perhaps with cold caches.
_TIMEOUT_S = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("go") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))


@pytest.fixture(scope="session", params=["nri-0.6", "nri-0.12"])
def runtime_binary(request: pytest.FixtureRequest) -> Path:
    return build(request.param)


@pytest.fixture(scope="session")
def new_runtime_binary() -> Path:
    return build("nri-0.12")


@pytest.fixture(scope="session")
def kubelet_binary() -> Path:
    return build("kubelet")
