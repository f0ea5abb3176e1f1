"""The catalogue: every VM size and server we know, by name.

Built-in data lies in `data/sizes/*.yaml`; a user's own files in the same form add to it. A built-in file is parsed only
when something in it is asked for: parsing all of them costs more than a short command otherwise takes, and most
commands ask for one size. To know which file holds a name without parsing, the files are searched for their
`- name:` lines; a test holds that index against the parsed files.
"""

import difflib
import fnmatch
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path

import msgspec

from fishplate.errors import DocumentError, UnknownNameError
from fishplate.hardware.document import parse_document
from fishplate.hardware.size import (
    AksPreconditions,
    Document,
    Entry,
    Expectation,
    GpuSpec,
    Layout,
    NicSpec,
    Place,
    Size,
)

__all__ = [
    "AksPreconditions",
    "Catalog",
    "Expectation",
    "GpuSpec",
    "Layout",
    "NicSpec",
    "Place",
    "Size",
    "load_catalog",
]

_NAME_LINE = re.compile(r"^  - (?:&\w+ )?name: (\S+)", re.MULTILINE)
_CONSTRAINED = re.compile(r"^(standard_[a-z]+\d+)-\d+")


class Catalog:
    """Sizes by name. Names compare without case and with or without the prefix `Standard_`."""

    def __init__(self, shelves: Sequence["_Shelf"]) -> None:
        self._shelves = tuple(shelves)

    @functools.cached_property
    def sizes(self) -> tuple[Size, ...]:
        every = (size for shelf in self._shelves for size in shelf.sizes.values())
        return tuple(sorted(every, key=lambda size: _sort_key(size.name)))

    def rdma_sizes(self) -> tuple[Size, ...]:
        return tuple(size for size in self.sizes if size.rdma)

    def find(self, name: str) -> Size:
        """The size of this name; UnknownNameError with the nearest names otherwise."""
        for key in _keys(name):
            for shelf in self._shelves:
                if shelf.holds(key):
                    return shelf.sizes[key]
        raise self._unknown(name)

    def sources_of(self, size: Size) -> Mapping[str, str]:
        """What the source keys of this size, its layout and its expectations stand for."""
        key = size.name.lower()
        return next((shelf.document.sources for shelf in self._shelves if shelf.holds(key)), {})

    def match_dmi(self, product: str) -> Size | None:
        """The server whose DMI product name this is, if any."""
        wanted = product.strip().lower()
        for size in self.sizes:
            if any(fnmatch.fnmatchcase(wanted, pattern.lower()) for pattern in size.dmi_products):
                return size
        return None

    def _unknown(self, name: str) -> UnknownNameError:
        # The common prefix would make every Azure name look alike, so it is left out of the comparison.
        known = {size.name.lower().removeprefix("standard_"): size.name for size in self.sizes}
        wanted = name.strip().lower().removeprefix("standard_")
        nearest = tuple(known[near] for near in difflib.get_close_matches(wanted, known, n=3))
        hint = f"Nearest: {', '.join(nearest)}." if nearest else "`fishplate catalog` lists the names known."
        return UnknownNameError(
            f"the catalogue has no size or server named {name!r}",
            nearest=nearest,
            remedy=f"{hint} A server of your own can be added with a catalogue file (docs/catalogue.md).",
        )


class _Shelf:
    """One catalogue file, parsed when first needed."""

    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where
        self.names = frozenset(name.lower() for name in _NAME_LINE.findall(text))

    def holds(self, key: str) -> bool:
        """Answered from the index alone unless the name is that of a constrained size."""
        return key in self.names or (_CONSTRAINED.sub(r"\1", key) in self.names and key in self.sizes)

    @functools.cached_property
    def document(self) -> Document:
        return parse_document(self._text, self._where)

    @functools.cached_property
    def sizes(self) -> dict[str, Size]:
        return {size.name.lower(): size for entry in self.document.sizes for size in expand_entry(entry)}


class _UserShelf(_Shelf):
    """A user's file: parsed at once, so that its mistakes are shown before anything is done with it."""

    def __init__(self, text: str, where: str) -> None:
        super().__init__(text, where)
        self.names = frozenset(self.sizes)


def expand_entry(entry: Entry) -> Iterator[Size]:
    """The size itself, then its constrained sizes: same NIC, memory and NUMA nodes, fewer vCPUs."""
    fields = {name: getattr(entry, name) for name in Size.__struct_fields__}
    full = Size(**fields)
    yield full
    for vcpus in entry.constrained:
        name = re.sub(r"(?<=\D)(\d+)", rf"\1-{vcpus}", entry.name, count=1)
        yield msgspec.structs.replace(full, name=name, vcpus=vcpus, constrained_from=entry.name)


def load_catalog(extra: Sequence[Path] = ()) -> Catalog:
    """The built-in catalogue, and the user's files on top. A name may be given only once."""
    shelves = list(_builtin_shelves())
    problems = []
    for path in extra:
        shelf = _UserShelf(_read(path), str(path))
        twice = (name for name in shelf.names if any(other.holds(name) for other in shelves))
        problems += [f"{path}: {shelf.sizes[name].name} is already in the catalogue" for name in twice]
        shelves.append(shelf)
    if problems:
        raise DocumentError(
            "names given twice\n  " + "\n  ".join(sorted(problems)), remedy="give your entry a name of its own"
        )
    return Catalog(shelves)


@functools.cache
def _builtin_shelves() -> tuple[_Shelf, ...]:
    folder = resources.files("fishplate.hardware").joinpath("data", "sizes")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".yaml")), key=lambda file: file.name)
    return tuple(_Shelf(file.read_text(encoding="utf-8"), f"data/sizes/{file.name}") for file in files)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DocumentError(
            f"cannot be read: {error.strerror or error}", where=str(path), remedy="check the path and its rights"
        ) from error
    except UnicodeDecodeError as error:
        raise DocumentError("not UTF-8 text", where=str(path), remedy="save the file as UTF-8 text") from error


def _keys(name: str) -> tuple[str, ...]:
    key = name.strip().lower()
    return (key,) if key.startswith("standard_") else (key, f"standard_{key}")


def _sort_key(name: str) -> list[tuple[int, str]]:
    """HB120-16 before HB120-96 before HB176: numbers compare as numbers."""
    return [(int(part), "") if part.isdigit() else (-1, part.lower()) for part in re.findall(r"\d+|\D+", name)]
