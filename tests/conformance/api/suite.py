"""Every behaviour, by name, and how one is run against a server."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tests.conformance.api import objects
from tests.conformance.api.conversation import Conversation, Server

VECTORS = Path(__file__).parent / "recorded"

Behaviour = Callable[[Conversation], None]

MODULES = (
    "applies",
    "claims",
    "classes",
    "deletes",
    "discoveries",
    "fields",
    "lists",
    "nodes",
    "patches",
    "pods",
    "protocol",
    "selections",
    "slices",
    "tables",
    "watches",
    "writes",
)


def behaviours() -> dict[str, Behaviour]:
    """All functions of the modules above that take a conversation, as `module.name`."""
    found: dict[str, Behaviour] = {}
    for name in MODULES:
        module = importlib.import_module(f"tests.conformance.api.{name}")
        for key, value in vars(module).items():
            if callable(value) and getattr(value, "__module__", "") == module.__name__ and not key.startswith("_"):
                found[f"{name}.{key}"] = value
    return found


def read_recording(module: str) -> dict[str, Any]:
    """What the real server said, by behaviour."""
    path = VECTORS / f"{module}.json"
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Any]) if path.exists() else {}


def run(server: Server, name: str) -> list[dict[str, Any]]:
    """The transcript of one behaviour, in a namespace of its own."""
    talk = Conversation(server, name.partition(".")[2])
    path = f"/api/v1/namespaces/{talk.namespace}"
    try:
        talk.post("/api/v1/namespaces", objects.namespace(talk.namespace))
        talk.until(f"{path}/serviceaccounts/default", 200)
        talk.transcript.clear()
        behaviours()[name](talk)
        return talk.written()
    finally:
        talk.delete(path)
        talk.close()
