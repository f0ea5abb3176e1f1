"""The ResourceSlice that a release of a vendor's GPU driver would publish for a host.

Which attributes a GPU carries decides how it can be lined up with a NIC, and that changed from release to release: so
each release is a profile, a data file in `data/gpu_drivers` with its source. The lab's stand-in driver reads the same
files. What follows from the GPU's model (product name, architecture, memory) comes from the catalogue.

On Hyper-V the drivers' own lookup of a PCIe root refuses a path through VMBUS, so a GPU below it has no root here,
though `topology` knows one. That is what the drivers do, not what is true.
"""

import difflib
import functools
from importlib import resources

import msgspec

from fishplate.errors import InputError, UnknownNameError
from fishplate.hardware.catalog import GpuSpec, Size
from fishplate.k8s.resource import (
    Device,
    DeviceAttribute,
    DeviceCapacity,
    ObjectMeta,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from fishplate.topology.inventory import Gpu, Inventory

_FIRST_RENDER = 128


class ProfileValue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A constant, a fact about the device (`from`), or one number for each GPU in bus order."""

    string: str | None = None
    version: str | None = None
    source: str = msgspec.field(default="", name="from")
    int_by_index: tuple[int, ...] = ()
    of_model: bool = False
    """The constant is that of the model the profile was taken from; other models have their own."""


class DriverProfile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    source: str
    released: str
    driver: str
    name: str
    attributes: dict[str, ProfileValue]
    capacity: dict[str, str] = {}
    oddity: str = ""
    """How this differs from what the release does on most machines; never a default."""


class _Models(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    source: str
    models: dict[str, dict[str, str]]


def _data(*parts: str) -> bytes:
    return resources.files("fishplate.sim").joinpath("data", *parts).read_bytes()


@functools.cache
def profile_names() -> tuple[str, ...]:
    folder = resources.files("fishplate.sim").joinpath("data", "gpu_drivers")
    return tuple(sorted(file.name.removesuffix(".json") for file in folder.iterdir() if file.name.endswith(".json")))


@functools.cache
def load_profile(name: str) -> DriverProfile:
    """The profile of this name; UnknownNameError with the nearest names otherwise."""
    if name not in profile_names():
        nearest = tuple(difflib.get_close_matches(name, profile_names(), n=2))
        raise UnknownNameError(
            f"no GPU driver profile is called {name!r}",
            nearest=nearest,
            remedy=f"known profiles: {', '.join(profile_names())}",
        )
    return msgspec.json.decode(_data("gpu_drivers", f"{name}.json"), type=DriverProfile)


@functools.cache
def _models() -> dict[str, dict[str, str]]:
    return msgspec.json.decode(_data("gpu_models.json"), type=_Models).models


def default_profile(size: Size) -> str:
    """The newest release for the size's GPUs."""
    if size.gpu is None:
        raise InputError(f"{size.name} has no GPUs, so no GPU driver publishes anything there")
    driver = driver_name(size.gpu)
    own = [name for name in profile_names() if load_profile(name).driver == driver and not load_profile(name).oddity]
    return max(own, key=lambda name: load_profile(name).released)


def driver_name(gpu: GpuSpec) -> str:
    return f"gpu.{gpu.vendor}.com"


def check_profile(name: str, size: Size) -> None:
    """InputError if the profile is another vendor's."""
    if size.gpu is not None and load_profile(name).driver != driver_name(size.gpu):
        own = [each for each in profile_names() if load_profile(each).driver == driver_name(size.gpu)]
        raise InputError(
            f"{name} is a driver for other GPUs than the {size.gpu.model} of {size.name}",
            remedy=f"profiles for it: {', '.join(own)}",
        )


def publish_gpu_slice(
    inventory: Inventory, profile: str, *, node: str, spec: GpuSpec | None = None, generation: int = 1
) -> ResourceSlice:
    """One pool per node, named after it, as both vendors do. Without a `spec` the model is the profile's own."""
    release = load_profile(profile)
    devices = tuple(
        _device(gpu, index, release, spec)
        for index, gpu in enumerate(inventory.gpus)
        if release.driver == f"gpu.{gpu.vendor}.com"
    )
    return ResourceSlice(
        metadata=ObjectMeta(name=f"00000-{release.driver}-{node}"),
        spec=ResourceSliceSpec(
            driver=release.driver,
            node_name=node,
            pool=ResourcePool(name=node, generation=generation, resource_slice_count=1),
            devices=devices,
        ),
    )


def _device(gpu: Gpu, index: int, profile: DriverProfile, spec: GpuSpec | None) -> Device:
    card = gpu.card if gpu.card is not None else index
    render = gpu.render if gpu.render is not None else _FIRST_RENDER + index
    name = profile.name.replace("{index}", str(card)).replace("{render}", str(render))
    attributes = {key: _attribute(key, value, gpu, index, spec) for key, value in profile.attributes.items()}
    return Device(
        name=name,
        attributes={key: attributes[key] for key in sorted(attributes) if attributes[key] != DeviceAttribute()},
        capacity={key: DeviceCapacity(value=_amount(key, text, spec)) for key, text in profile.capacity.items()},
    )


def _attribute(key: str, value: ProfileValue, gpu: Gpu, index: int, spec: GpuSpec | None) -> DeviceAttribute:
    """An attribute without a value where the driver leaves it out."""
    if value.int_by_index:
        known = index < len(value.int_by_index)
        return DeviceAttribute(int_=value.int_by_index[index] if known else None)
    if value.of_model and spec is not None:
        text = spec.product_name if key == "productName" else _models().get(spec.model, {}).get(key)
        return DeviceAttribute(string=text) if value.version is None else DeviceAttribute(version=text)
    root = None if gpu.pci.vmbus else gpu.pci.root
    # The drivers read the device's own file and nothing else; where that says -1 we may know better, they do not.
    numa = gpu.pci.numa_node if gpu.pci.numa_source == "kernel" else None
    match value.source:
        case "":
            return DeviceAttribute(string=value.string, version=value.version)
        case "busID":
            return DeviceAttribute(string=gpu.pci.address)
        case "busIDBesideRoot":
            return DeviceAttribute(string=gpu.pci.address if root else None)
        case "root":
            return DeviceAttribute(string=root)
        case "uuid":
            return DeviceAttribute(string=gpu.uuid or None)
        case "numaNode":
            return DeviceAttribute(int_=numa)
        case "numaNodeEvenIfUnknown":
            return DeviceAttribute(int_=-1 if numa is None else numa)
    raise InputError(f"no fact about a GPU is called {value.source!r}", where=key)


def _amount(key: str, text: str, spec: GpuSpec | None) -> str:
    """Memory is the model's where the profile speaks of another one; the rest is what the profile says."""
    if key != "memory" or spec is None or spec.vendor == "amd":
        return text
    return _models().get(spec.model, {}).get("memory") or f"{int(spec.memory_gib * 1024)}Mi"
