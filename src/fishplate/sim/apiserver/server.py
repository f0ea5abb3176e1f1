"""The API server on its socket: certificates, tokens, kubeconfigs, and an orderly end."""

import asyncio
import base64
import contextlib
import errno
import json
import os
import secrets
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from fishplate.errors import OutsideError
from fishplate.sim.apiserver.certificates import make_certificates
from fishplate.sim.apiserver.http import Connection
from fishplate.sim.apiserver.request import Answer, Request
from fishplate.sim.apiserver.service import Service

ADMIN = "admin"
_NAMES = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", "::1"]
_BACKLOG = 1024
_MAX_CONNECTIONS = 4096


class ApiServer:
    """One that is listening. `directory` holds its certificates and kubeconfigs, and nothing else."""

    def __init__(self, directory: Path, service: Service, tokens: Mapping[str, str], host: str, port: int) -> None:
        self.directory = directory
        self.service = service
        self.host = host
        self.port = port
        self._tokens = {user: token for token, user in tokens.items()}
        self._connections: set[Connection] = set()
        self._listener: asyncio.Server | None = None
        self._collecting = False

    @property
    def url(self) -> str:
        return f"https://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def authority(self) -> Path:
        return self.directory / "ca.crt"

    def token(self, user: str = ADMIN) -> str:
        return self._tokens[user]

    def write_kubeconfig(self, path: Path, user: str = ADMIN) -> None:
        authority = base64.b64encode(self.authority.read_bytes()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fishplate",
            "clusters": [
                {"name": "fishplate", "cluster": {"server": self.url, "certificate-authority-data": authority}}
            ],
            "users": [{"name": user, "user": {"token": self.token(user)}}],
            "contexts": [{"name": "fishplate", "context": {"cluster": "fishplate", "user": user}}],
        }
        _write(path, json.dumps(config, indent=1))

    async def listen(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.directory / "server.crt", self.directory / "server.key")
        context.set_alpn_protocols(["http/1.1"])
        loop = asyncio.get_running_loop()
        try:
            self._listener = await loop.create_server(
                self._connect, self.host, self.port, ssl=context, backlog=_BACKLOG, reuse_address=True
            )
        except OSError as error:
            raise _cannot_listen(self.host, self.port, error) from error
        self.port = int(self._listener.sockets[0].getsockname()[1])
        self.service.address = f"{self.host}:{self.port}"
        self.write_kubeconfig(self.directory / "kubeconfig")

    def _connect(self) -> asyncio.Protocol:
        if len(self._connections) >= _MAX_CONNECTIONS:
            return _Refusal()
        return Connection(self._serve, self._connections)

    def _serve(self, request: Request) -> Answer:
        answer = self.service.answer(request)
        if not self.service.collector.is_idle and not self._collecting:
            self._collecting = True
            asyncio.get_running_loop().call_soon(self._collect)
        return answer

    def _collect(self) -> None:
        """The background's work, a little at a time, between requests."""
        self._collecting = self.service.collector.step()
        if self._collecting:
            asyncio.get_running_loop().call_soon(self._collect)

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.close()
        if self._listener is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._listener.wait_closed(), 2)
        for name in ("ca.crt", "server.crt", "server.key", "kubeconfig"):
            (self.directory / name).unlink(missing_ok=True)


class _Refusal(asyncio.Protocol):
    """One connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def _cannot_listen(host: str, port: int, error: OSError) -> OutsideError:
    where = f"{host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return OutsideError("the port is taken", where=where, remedy="give another one, or 0 for any that is free")
    if error.errno in (errno.EACCES, errno.EPERM):
        return OutsideError("no permission to listen there", where=where, remedy="give a port above 1023, or 0")
    return OutsideError(
        f"cannot listen: {error.strerror or error}", where=where, remedy="give an address of this machine"
    )


def _write(path: Path, text: str) -> None:
    """Readable by its owner alone, from the first byte."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _write_certificates(directory: Path, host: str) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        made = make_certificates(sorted({*_NAMES, host}))
        for name, text in (("ca.crt", made.authority), ("server.crt", made.certificate), ("server.key", made.key)):
            _write(directory / name, text)
    except OSError as error:
        said = f"cannot be written: {error.strerror or error}"
        raise OutsideError(said, where=str(directory), remedy="give a directory that you may write to") from error


async def start_server(
    directory: Path, *, host: str = "127.0.0.1", port: int = 0, users: tuple[str, ...] = (ADMIN,)
) -> ApiServer:
    """Listen, and write ca.crt and kubeconfig into `directory`, which is made if need be. Port 0 is any free one."""
    _write_certificates(directory, host)
    tokens = {secrets.token_hex(16): user for user in dict.fromkeys((ADMIN, *users))}
    server = ApiServer(directory, Service(tokens), tokens, host, port)
    try:
        await server.listen()
    except BaseException:
        await server.close()
        raise
    return server


@contextlib.asynccontextmanager
async def serving(
    directory: Path, *, host: str = "127.0.0.1", port: int = 0, users: tuple[str, ...] = (ADMIN,)
) -> AsyncIterator[ApiServer]:
    server = await start_server(directory, host=host, port=port, users=users)
    try:
        yield server
    finally:
        await server.close()
