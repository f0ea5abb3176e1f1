"""Runs every behaviour on the lab's real API server and keeps what it said.

python -m tests.conformance.api.record [NAME...]
"""

import contextlib
import sys
import urllib.request
from pathlib import Path
from typing import Any

import msgspec

from lab.api import ApiError, Object
from lab.controlplane import wait_until
from lab.session import Lab, running
from lab.state import Request
from tests.conformance.api.conversation import Server
from tests.conformance.api.suite import VECTORS, behaviours, read_recording, run

# A kind that the API server learns of late: its cache knows no history, so old versions of it are gone.
_YOUNG = "things.conformance.test"
_YOUNG_KIND: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": _YOUNG},
    "spec": {
        "group": "conformance.test",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def real_server(lab: Lab) -> Server:
    return Server(port=lab.state.api_port, authority=lab.authority, token=lab.token, age=lambda: age(lab))


def age(lab: Lab) -> str:
    with contextlib.suppress(ApiError):
        lab.api.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _YOUNG_KIND)
    lab.kubectl("wait", "--for=condition=Established", f"crd/{_YOUNG}")
    things = "/apis/conformance.test/v1/namespaces/default/things"
    wait_until(lambda: _can_list(lab, f"{things}?resourceVersion=0"), things, within_s=30, check=lambda: None)
    listed: Any = lab.api.request("GET", "/api/v1/namespaces?limit=1")
    _compact_etcd(lab, int(listed["metadata"]["resourceVersion"]))
    return things


def _can_list(lab: Lab, path: str) -> bool:
    try:
        return "items" in lab.api.request("GET", path)
    except ApiError:
        return False


def _compact_etcd(lab: Lab, revision: int) -> None:
    """Through etcd's own HTTP door; its port stands on its command line."""
    argv = [Path(f"/proc/{pid}/cmdline").read_text().split("\0") for pid in lab.processes()]
    url = next(a.partition("=")[2] for words in argv for a in words if a.startswith("--advertise-client-urls="))
    body = msgspec.json.encode({"revision": str(revision), "physical": True})
    with urllib.request.urlopen(f"{url}/v3/kv/compaction", data=body, timeout=20):
        pass


def keep(names: list[str], server: Server) -> None:
    for module in sorted({name.partition(".")[0] for name in names}):
        kept = read_recording(module)
        for name in names:
            if name.startswith(f"{module}."):
                kept[name.partition(".")[2]] = run(server, name)
        known = {name.partition(".")[2] for name in behaviours() if name.startswith(f"{module}.")}
        ordered = {key: kept[key] for key in sorted(kept) if key in known}
        VECTORS.mkdir(exist_ok=True)
        text = msgspec.json.format(msgspec.json.encode(ordered, order="sorted"), indent=1)
        (VECTORS / f"{module}.json").write_bytes(text + b"\n")


if __name__ == "__main__":
    with running("record", Request(nodes=0)) as lab:
        keep(sys.argv[1:] or list(behaviours()), real_server(lab))
