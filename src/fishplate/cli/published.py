"""What drivers publish, as commands are given it: files of ResourceSlices, or a simulated fleet."""

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from fishplate.documents import Document, convert, parse_documents
from fishplate.errors import DocumentError
from fishplate.k8s.claim import DeviceClass
from fishplate.k8s.resource import ResourceSlice

_HINT = "`kubectl get resourceslices -o json` writes such a file"


class _List(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw] = []


class _Kind(msgspec.Struct, frozen=True):
    kind: str = ""


def read_text(path: Path) -> tuple[str, str]:
    """The text of a file, `-` being standard input, and how to call it."""
    if str(path) == "-":
        return sys.stdin.read(), "standard input"
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DocumentError(f"cannot be read: {reason}", where=str(path), remedy="check the path") from error
    except UnicodeDecodeError as error:
        raise DocumentError("not UTF-8 text", where=str(path), remedy="save the file as UTF-8 text") from error


def load_slices(paths: Sequence[Path]) -> tuple[tuple[ResourceSlice, ...], tuple[DeviceClass, ...]]:
    """ResourceSlices, and DeviceClasses where the files hold some; other kinds are left alone."""
    slices: list[ResourceSlice] = []
    classes: list[DeviceClass] = []
    for path in paths:
        text, where = read_text(path)
        if text.lstrip().startswith("{"):
            _read_json(text, where, slices, classes)
        else:
            for document in parse_documents(text, where, remedy=_HINT):
                _read_document(document, slices, classes)
    if not slices:
        raise DocumentError("no ResourceSlice in it", where=", ".join(map(str, paths)), remedy=_HINT)
    return tuple(slices), tuple(classes)


def _read_json(text: str, where: str, slices: list[ResourceSlice], classes: list[DeviceClass]) -> None:
    """The fast way: lists of ten thousand slices come as JSON."""
    try:
        items = [msgspec.Raw(text.encode())]
        if msgspec.json.decode(text, type=_Kind).kind.endswith("List"):
            items = msgspec.json.decode(text, type=_List).items
        for item in items:
            match msgspec.json.decode(item, type=_Kind).kind:
                case "ResourceSlice":
                    slices.append(msgspec.json.decode(item, type=ResourceSlice))
                case "DeviceClass":
                    classes.append(msgspec.json.decode(item, type=DeviceClass))
    except msgspec.DecodeError:
        for document in parse_documents(text, where, remedy=_HINT):  # again, for a message with a line
            _read_document(document, slices, classes)


def _read_document(document: Document, slices: list[ResourceSlice], classes: list[DeviceClass]) -> None:
    value = document.value
    if not isinstance(value, dict):
        raise DocumentError("no Kubernetes object", where=f"{document.where}:{document.line()}", remedy=_HINT)
    if str(value.get("kind", "")).endswith("List") and isinstance(value.get("items"), list):
        for item in value["items"]:
            _read_document(document._replace(value=item), slices, classes)
    elif value.get("kind") == "ResourceSlice":
        slices.append(convert(document, ResourceSlice, what="ResourceSlice", remedy=_HINT))
    elif value.get("kind") == "DeviceClass":
        classes.append(convert(document, DeviceClass, what="DeviceClass"))
