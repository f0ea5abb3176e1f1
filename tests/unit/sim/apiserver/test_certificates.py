"""Certificates that real TLS stacks take, and that are good for nothing else."""

import secrets
import ssl
import threading
from pathlib import Path

import pytest

from fishplate.sim.apiserver.certificates import Certificates, make_certificates


@pytest.fixture(scope="module")
def made() -> Certificates:
    return make_certificates(["localhost", "127.0.0.1"])


def _handshake(made: Certificates, authority: str, name: str, tmp_path: Path) -> str:
    """The client's verdict: nothing, or why it refused."""
    (tmp_path / "crt").write_text(made.certificate)
    (tmp_path / "key").write_text(made.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    client = ssl.create_default_context(cadata=authority)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=name)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return error.verify_message
    return ""


def test_a_strict_client_trusts_the_server_by_name_and_by_address(made: Certificates, tmp_path: Path) -> None:
    assert _handshake(made, made.authority, "localhost", tmp_path) == ""
    assert _handshake(made, made.authority, "127.0.0.1", tmp_path) == ""


def test_another_name_is_not_trusted(made: Certificates, tmp_path: Path) -> None:
    assert "not valid for" in _handshake(made, made.authority, "elsewhere.test", tmp_path)


def test_another_authority_of_the_same_name_is_not_trusted(made: Certificates, tmp_path: Path) -> None:
    other = make_certificates(["localhost"])
    assert _handshake(made, other.authority, "localhost", tmp_path)


def test_a_changed_certificate_is_not_trusted(made: Certificates, tmp_path: Path) -> None:
    """The signature covers the content: one other letter in the authority's text and the chain breaks."""
    lines = made.authority.splitlines()
    place = len(lines) // 2
    lines[place] = ("A" if lines[place][0] != "A" else "B") + lines[place][1:]
    with pytest.raises((ssl.SSLError, AssertionError)):
        assert _handshake(made, "\n".join(lines) + "\n", "localhost", tmp_path) == ""


def test_no_two_are_alike() -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(make_certificates(["x"]).key)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 3
    assert secrets.token_hex(4) not in found
