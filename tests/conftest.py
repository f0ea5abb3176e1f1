"""What tests of all rooms share: the catalogue, synthetic hosts, and the program as a user runs it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from fishplate.hardware.catalog import Catalog, load_catalog
from fishplate.node.scan import scan
from fishplate.node.tree import Tree
from fishplate.sim.host import write_host
from fishplate.sim.variations import TEXTBOOK, Variations
from fishplate.topology.inventory import Inventory

Program = Callable[..., subprocess.CompletedProcess[str]]
Host = Callable[..., Path]
Scan = Callable[[Path], Inventory]

_HAVE_GO = shutil.which("go") is not None

# Examples share the machine with whatever else runs on it: how long one takes says nothing about the code.
# Shrinking a failure can take minutes; the example that failed is printed as it is.
settings.register_profile(
    "fishplate",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    # In CI the same examples every time: a new one is found by whoever runs the tests, not by the merge.
    derandomize="CI" in os.environ,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
settings.load_profile("fishplate")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that ask the real code need Go; without it they are left out, and `pytest_terminal_summary` tells."""
    if not _HAVE_GO:
        left_out = [item for item in items if item.get_closest_marker("go")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _HAVE_GO:
        told = (
            "tests that ask the real code of Kubernetes and containerd are left out: Go is not installed "
            "(recorded answers are checked)"
        )
        terminalreporter.write_line(told, yellow=True)


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(scope="session")
def fishplate() -> Program:
    """Run the program in a process of its own, as a user does."""

    def run(*args: str, timeout: float = 50, **kwargs: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "fishplate", *args]
        return subprocess.run(argv, capture_output=True, text=True, timeout=timeout, check=False, cwd=kwargs.get("cwd"))

    return run


@pytest.fixture
def make_host(tmp_path: Path, catalog: Catalog) -> Host:
    """Write a synthetic host and give its root."""

    def make(size: str = "Standard_ND128isr_GB300_v6", *, number: int = 0, variations: Variations = TEXTBOOK) -> Path:
        root = tmp_path / f"host{number}-{len(list(tmp_path.iterdir()))}"
        write_host(root, catalog.find(size), number=number, variations=variations)
        return root

    return make


@pytest.fixture
def scan_host(catalog: Catalog) -> Scan:
    return lambda root: scan(Tree(root), catalog=catalog)
