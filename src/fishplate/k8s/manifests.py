"""Manifests that people wrote, as typed objects, each with the place it came from.

What is refused is refused with file, line and field path: not YAML, not Kubernetes, a kind nobody here knows, an API
version that reads differently, a misspelt field. Lists (`kind: List`, `kubectl get -o yaml`) are taken apart.
"""

import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from fishplate.documents import Document, Problem, complain, convert, parse_documents
from fishplate.documents import Path as FieldPath
from fishplate.errors import DocumentError
from fishplate.k8s.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate
from fishplate.k8s.kueue import Topology
from fishplate.k8s.node import Node
from fishplate.k8s.pod import Pod
from fishplate.k8s.resource import ResourceSlice
from fishplate.k8s.workloads import WORKLOADS, Workload

Object: TypeAlias = (
    ResourceSlice | DeviceClass | ResourceClaim | ResourceClaimTemplate | Pod | Node | Topology | Workload
)
_KINDS: dict[str, type[msgspec.Struct]] = {
    "ResourceSlice": ResourceSlice,
    "DeviceClass": DeviceClass,
    "ResourceClaim": ResourceClaim,
    "ResourceClaimTemplate": ResourceClaimTemplate,
    "Pod": Pod,
    "Node": Node,
    "Topology": Topology,
    **WORKLOADS,
}
# Of these only the parts we read are described; the API server checks the rest.
_LOOSE = frozenset({"Pod", "Node", "Topology", *WORKLOADS})
# Versions that read the same as the one we write.
_ALSO = {"Topology": ("kueue.x-k8s.io/v1alpha1", "kueue.x-k8s.io/v1beta2")}
_OLD_SHAPE = "resource.k8s.io/v1 puts the fields of a request under `exactly`, and those of a device beside its name"


class Manifest(NamedTuple):
    """One object; `path` is where it stands in its document (`items[3]` of a list)."""

    value: Object
    document: Document
    path: FieldPath = ()

    @property
    def kind(self) -> str:
        return type(self.value).__name__

    @property
    def where(self) -> str:
        return f"{self.document.where}:{self.document.line(self.path)}"


def read_text(path: str | Path) -> tuple[str, str]:
    """A file's text and its name for messages; `-` is standard input."""
    if str(path) == "-":
        return sys.stdin.read(), "standard input"
    try:
        return Path(path).read_text(encoding="utf-8"), str(path)
    except UnicodeDecodeError as error:
        raise DocumentError("not a text file", where=str(path), remedy="give YAML or JSON") from error
    except OSError as error:
        raise DocumentError(
            f"cannot be read: {error.strerror or error}", where=str(path), remedy="give a file, or - for standard input"
        ) from error


def load_manifests(
    paths: Sequence[str | Path], *, kinds: Collection[str] = tuple(_KINDS), pass_over: bool = False
) -> list[Manifest]:
    """All objects of these files, in order. `kinds` are those that make sense to the caller; others are refused, or
    left out with `pass_over`."""
    return [one for path in paths for one in parse_manifests(*read_text(path), kinds=kinds, pass_over=pass_over)]


def parse_manifests(
    text: str, where: str, *, kinds: Collection[str] = tuple(_KINDS), pass_over: bool = False
) -> list[Manifest]:
    documents = parse_documents(text, where, remedy="give Kubernetes manifests in YAML or JSON")
    if not documents:
        raise DocumentError("the file is empty", where=where, remedy=f"it should hold {_list(kinds)}")
    return [one for document in documents for one in _take_apart(document, (), kinds, pass_over=pass_over)]


def _take_apart(document: Document, path: FieldPath, kinds: Collection[str], *, pass_over: bool) -> Iterator[Manifest]:
    raw = document.value
    for step in path:
        raw = raw[step]  # type: ignore[index]
    if not isinstance(raw, dict) or not isinstance(raw.get("kind"), str) or "apiVersion" not in raw:
        problem = Problem(path, "not a Kubernetes object: `apiVersion` and `kind` are missing")
        raise complain([problem], document, what="manifest", remedy=f"it should hold {_list(kinds)}")
    kind = raw["kind"]
    if kind.endswith("List") and isinstance(raw.get("items"), list):
        for index, item in enumerate(raw["items"]):
            # Objects of a typed list carry neither kind nor version of their own.
            if isinstance(item, dict) and kind != "List":
                item.setdefault("kind", kind.removesuffix("List"))
                item.setdefault("apiVersion", raw["apiVersion"])
            yield from _take_apart(document, (*path, "items", index), kinds, pass_over=pass_over)
        return
    if pass_over and kind not in kinds:
        return
    if kind not in kinds or kind not in _KINDS:
        problem = Problem((*path, "kind"), f"{kind} is of no use here")
        raise complain([problem], document, what="manifest", remedy=f"give {_list(kinds)}")
    wanted = _KINDS[kind]
    _check_version(document, path, str(raw["apiVersion"]), wanted)
    value = convert(
        document, wanted, what=kind, path=path, strict=kind not in _LOOSE and "managedFields" not in str(raw)
    )
    yield Manifest(value, document, path)  # type: ignore[arg-type]


def _check_version(document: Document, path: FieldPath, said: str, wanted: type[msgspec.Struct]) -> None:
    (right,) = (field.default for field in msgspec.structs.fields(wanted) if field.name == "api_version")
    if said != right and said not in _ALSO.get(wanted.__name__, ()):
        remedy = _OLD_SHAPE if said.startswith("resource.k8s.io/") else ""
        problem = Problem((*path, "apiVersion"), f"{said!r} is not {right!r}", remedy)
        raise complain([problem], document, what=str(wanted.__name__))


def _list(kinds: Collection[str]) -> str:
    names = sorted(kinds)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
