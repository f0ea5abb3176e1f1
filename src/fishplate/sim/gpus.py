"""GPUs of a synthetic host: PCI functions, the NVIDIA driver's /proc files, AMD's compute topology."""

from itertools import permutations

from fishplate.hardware.catalog import GpuSpec, Place, Size
from fishplate.hardware.pci_address import address_key
from fishplate.sim.files import FileTree
from fishplate.sim.places import stable_uuid, write_function
from fishplate.sim.variations import Variations

_KFD = "/sys/devices/virtual/kfd/kfd/topology/nodes"


def write_gpus(tree: FileTree, size: Size, number: int, variations: Variations) -> None:
    if size.gpu is None or size.layout is None:
        return
    places = sorted(size.layout.gpus, key=lambda place: address_key(place.address))
    for index, place in enumerate(places):
        write = _write_nvidia if size.gpu.vendor == "nvidia" else _write_amd
        write(tree, size.gpu, place, index, number, variations)
    if size.gpu.vendor == "amd":
        _write_kfd(tree, places, size.numa_nodes or 1)
    else:
        tree.file("/sys/module/nvidia/version", "580.105.08")


def _ids(gpu: GpuSpec, class_code: str) -> dict[str, str | int]:
    return {"vendor": f"0x{gpu.pci_vendor}", "device": f"0x{gpu.pci_device}", "class": class_code}


def _write_nvidia(tree: FileTree, gpu: GpuSpec, place: Place, index: int, number: int, variations: Variations) -> None:
    write_function(tree, place, number, "nvidia", _ids(gpu, "0x030200"), variations)
    uuid = stable_uuid("gpu", place.address, number)
    tree.file(
        f"/proc/driver/nvidia/gpus/{place.address}/information",
        f"Model: \t\t {gpu.product_name}\nIRQ:   \t\t {100 + index}\nGPU UUID: \t GPU-{uuid}\n"
        f"Bus Type: \t PCIe\nBus Location: \t {place.address}\nDevice Minor: \t {index}",
    )


def _write_amd(tree: FileTree, gpu: GpuSpec, place: Place, index: int, number: int, variations: Variations) -> None:
    path = write_function(tree, place, number, "amdgpu", _ids(gpu, "0x120000"), variations)
    tree.file(f"{path}/unique_id", stable_uuid("gpu", place.address, number).hex[:16])
    tree.file(f"{path}/product_name", gpu.product_name)
    tree.directory(f"{path}/drm/card{index}")
    tree.directory(f"{path}/drm/renderD{128 + index}")
    tree.file("/sys/module/amdgpu/version", "6.12.12")


def _write_kfd(tree: FileTree, places: list[Place], cpus: int) -> None:
    """CPU nodes come first; every GPU is joined to every other by Infinity Fabric (link type 11)."""
    tree.link("/sys/class/kfd/kfd", "/sys/devices/virtual/kfd/kfd")
    for node in range(cpus):
        tree.file(f"{_KFD}/{node}/properties", "cpu_cores_count 48\nsimd_count 0\nlocation_id 0\ndomain 0")
    for index, place in enumerate(places):
        domain, bus, device, function = address_key(place.address)
        location = bus << 8 | device << 3 | function
        facts = f"cpu_cores_count 0\nsimd_count 1216\nlocation_id {location}\ndomain {domain}"
        tree.file(f"{_KFD}/{cpus + index}/properties", facts)
    for a, b in permutations(range(len(places)), 2):
        link = f"{_KFD}/{cpus + a}/io_links/{b}/properties"
        tree.file(link, f"type 11\nnode_from {cpus + a}\nnode_to {cpus + b}\nweight 15")
