"""Where `fishplate claim new` learns what is published: a size, a fleet of some, files, or the live cluster."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fishplate.cli.fleets import Source, load_files
from fishplate.cli.sizes import find_rdma_size
from fishplate.errors import InputError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fishplate.dra.intent_classes import Vendor
    from fishplate.hardware.catalog import Catalog, Size
    from fishplate.k8s.resource import ResourceSlice

_NODES = 2  # enough to see what differs between nodes
_VM_SIZE = "azure.dra.net/vmSize"
_PLACEMENT_GROUP = "azure.dra.net/placementGroupId"


class Asked(NamedTuple):
    """The options that say for which machines. `driver` names GPU driver profiles, for what is made up."""

    sizes: tuple[str, ...]
    fleet: str | None
    files: tuple[Path, ...]
    context: str | None
    drivers: tuple[str, ...]
    gpu_uuid: bool

    @property
    def is_made_up(self) -> bool:
        return not self.files and bool(self.sizes or self.fleet)

    @property
    def is_live(self) -> bool:
        return not (self.files or self.sizes or self.fleet)


def check_source(asked: Asked) -> None:
    if asked.fleet is not None and (asked.sizes or asked.files):
        raise UsageError("--fleet excludes --for and --slices", remedy="a fleet names its sizes itself")
    if not asked.is_made_up and (asked.drivers or asked.gpu_uuid):
        raise UsageError(
            "--gpu-driver and --gpu-uuid say what would be published, --slices and the cluster say what is",
            remedy="give them with --for or --fleet",
        )


def read_source(asked: Asked, catalog: "Catalog", *, fabric: str = "", fabric_label: str = "") -> Source:
    """Nodes and slices. Made-up nodes carry `fabric_label`; those of a size alone are on the fabric that is asked for,
    because which one it is cannot be known of them."""
    if asked.files:
        return load_files(asked.files)
    if asked.is_live:
        return _read_live(asked.context)
    from fishplate.sim.fleet import make_fleet, parse_fleet

    parts = parse_fleet(asked.fleet) if asked.fleet is not None else tuple((name, _NODES) for name in asked.sizes)
    made = make_fleet(
        [(find_rdma_size(catalog, name).name, count) for name, count in parts],
        catalog,
        gpu_drivers=asked.drivers,
        publish_uuid=asked.gpu_uuid,
        fabric_label=fabric_label,
    )
    pinned = fabric if asked.fleet is None else ""
    return Source(made.nodes, tuple(_on_fabric(one, pinned) for one in made.slices) if pinned else made.slices)


def _read_live(context: str | None) -> Source:
    from fishplate.cli.cluster_view import read_surroundings

    try:
        return read_surroundings(context)
    except InputError as error:
        remedy = "give --for SIZE, --slices FILE with what is published, or --fleet SIZE=N"
        raise UsageError(f"for which machines? {error.what}", remedy=remedy) from error


def _on_fabric(one: "ResourceSlice", fabric: str) -> "ResourceSlice":
    import msgspec

    from fishplate.k8s.resource import DeviceAttribute

    group = {_PLACEMENT_GROUP: DeviceAttribute(string=fabric)}
    devices = tuple(
        msgspec.structs.replace(device, attributes=device.attributes | group)
        if _PLACEMENT_GROUP in device.attributes
        else device
        for device in one.spec.devices
    )
    return msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, devices=devices))


# -- whose GPUs, and where they sit ------------------------------------------------------------------------------


def choose_vendors(
    asked: Asked, wanted: str | None, gpus: int, slices: "Sequence[ResourceSlice]"
) -> "tuple[Vendor, ...]":
    """Whoever is named; where sizes are, they name their own. Without GPUs in the claim it does not matter."""
    from fishplate.dra.intent_published import vendors_in

    found = vendors_in(slices)
    if not gpus:
        return ()
    if wanted is not None and wanted != "any":
        return ("nvidia",) if wanted == "nvidia" else ("amd",)
    if len(found) > 1 and wanted is None and not asked.is_made_up:
        raise InputError(
            "the slices hold GPUs of two vendors",
            remedy="say whose: --vendor nvidia, --vendor amd, or --vendor any for a template that serves both",
        )
    return found


def find_gpu_places(
    asked: Asked, slices: "Sequence[ResourceSlice]", catalog: "Catalog"
) -> "dict[Vendor, dict[str, int]]":
    """Where the catalogue says that GPUs sit, by PCI address; of live slices, the size is on the NICs."""
    names = asked.sizes or sorted(_sizes_named(slices))
    places: dict[Vendor, dict[str, int]] = {}
    unclear: set[tuple[Vendor, str]] = set()
    for size in _known_sizes(names, catalog):
        if size.layout is None or size.gpu is None:
            continue
        vendor = size.gpu.vendor
        own = places.setdefault(vendor, {})
        for place in size.layout.gpus:
            if place.numa is None or own.get(place.address, place.numa) != place.numa:
                unclear.add((vendor, place.address))
            else:
                own[place.address] = place.numa
    for vendor, address in unclear:
        places[vendor].pop(address, None)  # one address, two places: a selector by address would be wrong on one size
    return places


def _sizes_named(slices: "Iterable[ResourceSlice]") -> set[str]:
    attributes = (device.attributes.get(_VM_SIZE) for one in slices for device in one.spec.devices)
    return {one.string for one in attributes if one is not None and one.string}


def _known_sizes(names: "Iterable[str]", catalog: "Catalog") -> "Iterable[Size]":
    for name in names:
        try:
            yield catalog.find(name)
        except UnknownNameError:
            continue
