"""Keys, certificates, tokens and kubeconfigs of one lab: made at `up`, gone at `down`, good for nothing else."""

import base64
import json
import secrets
from pathlib import Path

import msgspec

from lab.host import run_checked

_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]

# user -> groups. The controller manager acts for all controllers at once, hence its rights.
_USERS: dict[str, tuple[str, ...]] = {
    "admin": ("system:masters",),
    "system:kube-controller-manager": ("system:masters",),
    "system:kube-scheduler": (),
    "lab:gpu-driver": (),
}


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    directory: Path
    tokens: dict[str, str]

    @property
    def authority(self) -> Path:
        return self.directory / "ca.crt"


def node_user(node: str) -> str:
    return f"system:node:{node}"


def _certificate(directory: Path, name: str, subject: str, alternatives: list[str]) -> None:
    extra = ["-addext", f"subjectAltName={','.join(alternatives)}"] if alternatives else []
    issuer = ["-CA", str(directory / "ca.crt"), "-CAkey", str(directory / "ca.key")] if name != "ca" else []
    out = ["-keyout", str(directory / f"{name}.key"), "-out", str(directory / f"{name}.crt")]
    run_checked(["openssl", "req", "-x509", *_KEY, *issuer, "-subj", subject, *extra, *out], what="openssl req")


def make_credentials(directory: Path, nodes: list[str], addresses: list[str]) -> Credentials:
    """`addresses` are those under which the API server is reached."""
    directory.mkdir(mode=0o700)
    _certificate(directory, "ca", "/CN=fishplate-lab", [])
    names = ["DNS:localhost", "DNS:kubernetes", "DNS:kubernetes.default", "DNS:kubernetes.default.svc"]
    _certificate(directory, "api", "/CN=kube-apiserver", [*names, *(f"IP:{a}" for a in addresses)])
    _certificate(directory, "kubelet-client", "/O=system:masters/CN=kube-apiserver", ["DNS:kube-apiserver"])
    key = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    accounts = directory / "accounts.key"
    run_checked(["openssl", *key, "-out", str(accounts)], what="openssl genpkey")
    public = str(directory / "accounts.pub")
    run_checked(["openssl", "pkey", "-in", str(accounts), "-pubout", "-out", public], what="openssl pkey")
    users = _USERS | {node_user(n): ("system:nodes",) for n in nodes}
    tokens = {user: secrets.token_hex(16) for user in users}
    lines = [f'{tokens[user]},{user},{user},"{",".join(groups)}"' for user, groups in users.items()]
    (directory / "tokens.csv").write_text("\n".join(lines) + "\n")
    return Credentials(directory=directory, tokens=tokens)


def write_kubeconfig(path: Path, server: str, credentials: Credentials, user: str) -> None:
    authority = base64.b64encode(credentials.authority.read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": "lab", "user": {"token": credentials.tokens[user]}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
    }
    path.write_text(json.dumps(config))
    path.chmod(0o600)
