"""Facts from a file that an operator or an agent of the site writes: for on-premises and other clouds.

    fabric: island-3
    nvlinkDomain: rack-17
    node:
      site.example.com/island: island-3
    devices:
      "0000:1a:00.0": {site.example.com/leaf: sw-12, site.example.com/plane: 1}

JSON will do as well. What a person wrote is not sifted but refused with its line, so that it gets mended.
"""

import os
from collections.abc import Iterator, Sequence

import msgspec

from fishplate.documents import Problem, complain, convert, parse_documents
from fishplate.errors import DocumentError, OutsideError
from fishplate.hardware.pci_address import is_address
from fishplate.node.metadata.attribute_rules import find_name_problem, find_value_problem
from fishplate.node.metadata.facts import DeviceId, FactsState, NodeFacts, ProviderName, normalise_mac

_MOST_BYTES = 1 << 20
_REMEDY = "it has the fields fabric, nvlinkDomain, node and devices"


class FactsFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    fabric: str = ""
    nvlink_domain: str = ""
    node: dict[str, str | int | bool] = {}
    devices: dict[str, dict[str, str | int | bool]] = {}


class FileProvider:
    """Asked often, because looking whether a file changed costs nothing."""

    name: ProviderName = "file"
    interval = 10.0
    per_device = False

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._facts = NodeFacts()

    async def attributes(self, devices: Sequence[DeviceId]) -> NodeFacts:
        try:
            status = os.stat(self._path)
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            if seen != self._seen:
                self._facts = parse_facts(_read(self._path), self._path)
                self._seen = seen
        except OSError as error:
            raise OutsideError(error.strerror or str(error), where=self._path) from error
        except DocumentError as error:
            raise OutsideError(error.what, where=error.where, remedy=error.remedy) from error
        return self._facts


def _read(path: str) -> str:
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise DocumentError(f"larger than {_MOST_BYTES} bytes", where=path, remedy=_REMEDY)
    return data.decode("utf-8", "replace")


def parse_facts(text: str, where: str) -> NodeFacts:
    """Raises DocumentError with every problem and its line."""
    documents = parse_documents(text, where, remedy=_REMEDY)
    if len(documents) > 1:
        raise DocumentError("more than one document", where=where, remedy=_REMEDY)
    if not documents:
        return NodeFacts(state=FactsState(provider="file"))
    written = convert(documents[0], FactsFile, what="facts file", remedy=_REMEDY)
    if problems := list(_find_problems(written)):
        raise complain(problems, documents[0], what="facts file", remedy=_REMEDY)
    return NodeFacts(
        node=dict(sorted(written.node.items())),
        devices={_device_key(key): dict(sorted(own.items())) for key, own in written.devices.items()},
        fabric=written.fabric,
        nvlink_domain=written.nvlink_domain,
        state=FactsState(provider="file"),
    )


def _find_problems(written: FactsFile) -> Iterator[Problem]:
    parts: list[tuple[tuple[str, ...], dict[str, str | int | bool]]] = [(("node",), written.node)]
    parts += [(("devices", key), own) for key, own in written.devices.items()]
    for path, values in parts:
        for name, value in values.items():
            if problem := find_name_problem(name):
                yield Problem((*path, name), f"the name {problem}")
            if problem := find_value_problem(value):
                yield Problem((*path, name), f"the value {problem}")
    keys: dict[str, str] = {}
    for key in written.devices:
        other = keys.setdefault(_device_key(key), key)
        if other != key:
            yield Problem(("devices", key), f"the same device as {other!r}")


def _device_key(text: str) -> str:
    return text.lower() if is_address(text.lower()) else normalise_mac(text)
