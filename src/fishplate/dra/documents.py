"""From YAML or JSON documents to a world: the edge where untyped values end.

Takes what `kubectl get -o yaml` prints and what people write by hand, lists included. Defaults are filled in as the API
server would; kinds that do not matter for allocation are passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from fishplate.dra.oddities import find_oddities
from fishplate.dra.world import Node, World
from fishplate.errors import DocumentError
from fishplate.k8s.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate, default_claim, default_claim_spec
from fishplate.k8s.resource import ResourceSlice

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

GROUP = "resource.k8s.io"
_VERSION = f"{GROUP}/v1"
_Kind = TypeVar("_Kind")


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    labels: dict[str, str] = {}


class _Node(msgspec.Struct, frozen=True):
    metadata: _Metadata


class Documents(NamedTuple):
    """`claims` are those without an allocation; the allocated ones are in the world."""

    world: World
    nodes: tuple[Node, ...]
    claims: tuple[ResourceClaim, ...]
    templates: tuple[ResourceClaimTemplate, ...]


def read_documents(documents: Iterable[tuple[str, object]]) -> Documents:
    """Documents with the place each came from (`file:line`), for messages."""
    slices: list[ResourceSlice] = []
    classes: list[DeviceClass] = []
    claims: list[ResourceClaim] = []
    templates: list[ResourceClaimTemplate] = []
    nodes: list[Node] = []
    for where, document in _flatten(documents):
        match document.get("kind"):
            case "ResourceSlice":
                slices.append(_convert(document, ResourceSlice, where))
            case "DeviceClass":
                classes.append(_convert(document, DeviceClass, where))
            case "ResourceClaim":
                claims.append(default_claim(_convert(document, ResourceClaim, where)))
            case "ResourceClaimTemplate":
                templates.append(_default_template(_convert(document, ResourceClaimTemplate, where)))
            case "Node":
                node = _convert(document, _Node, where)
                nodes.append(Node(name=node.metadata.name, labels=node.metadata.labels))
    held = tuple(claim for claim in claims if claim.status.allocation is not None)
    world = World(slices=tuple(slices), classes=tuple(classes), claims=held, odd=find_oddities(slices))
    waiting = tuple(claim for claim in claims if claim.status.allocation is None)
    return Documents(world, tuple(nodes), waiting, tuple(templates))


def _flatten(documents: Iterable[tuple[str, object]]) -> Iterator[tuple[str, Mapping[str, object]]]:
    for where, document in documents:
        if document is None:
            continue
        if not isinstance(document, dict):
            raise DocumentError("is no Kubernetes object", where=where, remedy="write `kind: …` and `apiVersion: …`")
        items = document.get("items")
        if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
            # Objects of a typed list carry neither kind nor version of their own.
            own = {"kind": str(document["kind"]).removesuffix("List"), "apiVersion": document.get("apiVersion", "")}
            yield from _flatten(
                (where, {**own, **item} if own["kind"] and isinstance(item, dict) else item) for item in items
            )
        else:
            yield where, document


def _convert(document: Mapping[str, object], kind: type[_Kind], where: str) -> _Kind:
    version = str(document.get("apiVersion", ""))
    if version.startswith(f"{GROUP}/") and version != _VERSION:
        raise DocumentError(
            f"{document['kind']} is of {version}", where=where, remedy=f"write it as {_VERSION}, served since 1.34"
        )
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise DocumentError(f"{document['kind']}: {error}", where=where, remedy="see `kubectl explain`") from error


def _default_template(template: ResourceClaimTemplate) -> ResourceClaimTemplate:
    inner = msgspec.structs.replace(template.spec, spec=default_claim_spec(template.spec.spec))
    return msgspec.structs.replace(template, spec=inner)
