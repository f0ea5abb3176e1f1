"""Socket files: names, modes, and what is in the way."""

import socket
import stat
from pathlib import Path

import pytest

from fishplate.errors import InputError, OutsideError
from fishplate.wire.sockets import SocketFile, plan_socket_paths, remove_stale_socket

UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
KUBELET = Path("/var/lib/kubelet")


def plan(driver: str, pod_uid: str = "", *, registry: Path = KUBELET / "plugins_registry") -> tuple[str, str]:
    paths = plan_socket_paths(driver, plugins=KUBELET / "plugins", registry=registry, pod_uid=pod_uid)
    return str(paths.service), str(paths.registration)


def listen(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    return server


def test_the_names_are_those_that_the_kubelet_and_upstream_use() -> None:
    assert plan("dra.net") == (
        "/var/lib/kubelet/plugins/dra.net/dra.sock",
        "/var/lib/kubelet/plugins_registry/dra.net-reg.sock",
    )


def test_a_rolling_update_has_names_of_its_own() -> None:
    assert plan("dra.net", UID) == (
        f"/var/lib/kubelet/plugins/dra.net/dra-{UID}.sock",
        f"/var/lib/kubelet/plugins_registry/dra.net-{UID}-reg.sock",
    )


def test_a_name_too_long_is_shortened_in_two_steps() -> None:
    driver = "a-rather-long-driver-name.example.com"
    service, registration = plan(driver, UID)
    # What upstream's RollingUpdateRegistrarSocketFile (v0.37.2) gives for the same names.
    assert registration.endswith(f"/{driver}-yBLh7bZEF9Y-reg.sock")
    assert service.endswith("/dra-yBLh7bZEF9Y.sock")
    deep = KUBELET / "plugins_registry" / ("d" * 28)
    assert plan(driver, UID, registry=deep)[1] == str(deep / "dra-SUv5a27WGF2awwzgeaONSw-reg.sock")


def test_a_path_that_no_socket_can_have_is_refused() -> None:
    with pytest.raises(InputError, match="107 bytes"):
        plan("dra.net", registry=Path("/" + "d" * 100))
    with pytest.raises(InputError, match="107 bytes"):
        plan("d" * 90)


def test_a_stale_socket_is_removed(tmp_path: Path) -> None:
    listen(tmp_path / "s").close()
    assert (tmp_path / "s").is_socket()
    remove_stale_socket(tmp_path / "s")
    remove_stale_socket(tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_what_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    precious = tmp_path / "s"
    precious.write_text("important")
    with pytest.raises(OutsideError, match="no socket"):
        remove_stale_socket(precious)
    with pytest.raises(OutsideError, match="no socket"):
        SocketFile(precious).prepare()
    assert precious.read_text() == "important"


def test_a_socket_is_shown_with_its_mode_set_in_place_of_a_stale_one(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "dra.sock"
    path.parent.mkdir()
    listen(path).close()
    file = SocketFile(path)
    file.prepare()
    with listen(file.hidden):
        assert not file.is_shown
        file.show()
        assert file.is_shown
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
    file.remove()
    assert list(path.parent.iterdir()) == []


def test_a_hidden_name_is_one_that_the_kubelet_ignores_and_no_longer_than_the_shown_one(tmp_path: Path) -> None:
    file = SocketFile(tmp_path / "dra.net-reg.sock")
    assert file.hidden.name.startswith(".")
    assert len(file.hidden.name) <= len(file.path.name)


def test_a_successors_socket_is_not_removed(tmp_path: Path) -> None:
    old, new = SocketFile(tmp_path / "s"), SocketFile(tmp_path / "s")
    with listen(old.hidden), listen(new.hidden):
        old.show()
        new.show()
        old.remove()
        assert (old.is_shown, new.is_shown) == (False, True)
        new.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_directory_is_made_for_root_and_its_group(tmp_path: Path) -> None:
    file = SocketFile(tmp_path / "plugins" / "dra.sock")
    file.prepare()
    assert stat.S_IMODE(file.path.parent.stat().st_mode) & 0o007 == 0
