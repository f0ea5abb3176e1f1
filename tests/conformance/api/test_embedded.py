"""Every behaviour against the embedded server must read as it did on a real kube-apiserver."""

from collections.abc import Iterator

import pytest

from tests.conformance.api.conversation import Server
from tests.conformance.api.embedded import describe, embedded_server
from tests.conformance.api.suite import MODULES, VECTORS, behaviours, read_recording, run


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all, as the real one was."""
    with embedded_server(tmp_path_factory.mktemp("embedded") / "keys") as server:
        yield describe(server)


@pytest.mark.parametrize("name", sorted(behaviours()))
def test_the_embedded_server_answers_as_recorded(name: str, server: Server) -> None:
    module, _, behaviour = name.partition(".")
    assert run(server, name) == read_recording(module)[behaviour]


def test_every_recording_belongs_to_a_behaviour() -> None:
    recorded = {f"{path.stem}.{name}" for path in VECTORS.glob("*.json") for name in read_recording(path.stem)}
    assert recorded == set(behaviours())
    assert set(MODULES) == {path.stem for path in VECTORS.glob("*.json")}
    assert len(recorded) >= 60
