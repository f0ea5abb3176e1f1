"""Random and hostile trees: discovery always answers, and what is broken at one device stays with that device."""

import contextlib
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fishplate.cli.matrix import print_inventory
from fishplate.hardware.catalog import load_catalog
from fishplate.k8s.yaml import dump_yaml
from fishplate.node.scan import scan
from fishplate.node.tree import Tree
from fishplate.sim.host import write_host
from fishplate.topology.inventory import Inventory
from fishplate.topology.picture import draw
from fishplate.topology.slices import publish_slices

# Hundreds of trees are written and read; a busy machine takes its time.
pytestmark = pytest.mark.timeout(300)

CATALOG = load_catalog()
GARBAGE = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(
        [b"", b"-1", b"99999999999999999999", b"0x", b"\xff" * 64, b"4: ACTIVE\n" * 3, b"\0" * 4096, b"NaN"]
    ),
)
ACTIONS = st.sampled_from(["remove", "garble", "directory", "pipe", "loop", "dangling", "outside"])


def look(root: Path) -> Inventory:
    """A whole look: what the readers find must also be fit to draw and to publish."""
    inventory = scan(Tree(root), catalog=CATALOG)
    msgspec.json.encode(draw(inventory))
    with contextlib.redirect_stdout(io.StringIO()):
        print_inventory(inventory)
    for slice_ in publish_slices(inventory, node="node"):
        yaml.safe_load(dump_yaml(msgspec.to_builtins(slice_)))
    return inventory


class Pristine(NamedTuple):
    """A whole host: what is found on it, and to which device (or to none) each of its files belongs."""

    root: Path
    inventory: Inventory
    owners: dict[Path, str]

    def files_of(self, *addresses: str) -> list[Path]:
        return [path for path, address in self.owners.items() if address in addresses]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Pristine:
    root = tmp_path_factory.mktemp("pristine") / "host"
    write_host(root, CATALOG.find("Standard_ND96isr_H100_v5"))
    inventory = look(root)
    files = sorted(path for path in root.rglob("*") if path.is_symlink() or path.is_file())
    return Pristine(root, inventory, {path: owner(root, path, inventory) for path in files})


@contextlib.contextmanager
def damaged(path: Path, action: str, garbage: bytes) -> Iterator[None]:
    """Break one file (or link) and put it back afterwards: copying the tree for every example would take minutes."""
    link = path.readlink() if path.is_symlink() else None
    content = path.read_bytes() if link is None else b""
    mode = path.lstat().st_mode & 0o7777
    path.unlink()
    try:
        match action:
            case "garble":
                path.write_bytes(garbage)
            case "directory":
                path.mkdir()
            case "pipe":
                os.mkfifo(path)
            case "loop":
                path.symlink_to(path.name)
            case "dangling":
                path.symlink_to("../nowhere")
            case "outside":
                path.symlink_to("/etc/hostname")
        yield
    finally:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
        if link is not None:
            path.symlink_to(link)
        else:
            path.write_bytes(content)
            path.chmod(mode)


def owner(root: Path, path: Path, inventory: Inventory) -> str:
    """The PCI address of the device a file belongs to, "" for files of the whole machine."""
    addresses = [nic.pci.address for nic in inventory.rdma_nics if nic.pci] + [g.pci.address for g in inventory.gpus]
    text = str(path.relative_to(root))
    if path.is_symlink():
        text += f" {path.resolve()}"
    return next((address for address in addresses if address in text), _owner_of_node(text, inventory))


def _owner_of_node(text: str, inventory: Inventory) -> str:
    for nic in inventory.rdma_nics:
        nodes = [node.path for device in nic.rdma for node in device.char_devices]
        if nic.pci and any(text.startswith(node.lstrip("/")) for node in nodes):
            return nic.pci.address
    return ""


@settings(max_examples=80)
@given(data=st.data(), action=ACTIONS, garbage=GARBAGE)
def test_a_removed_or_garbled_file_never_loses_another_device(
    pristine: Pristine, data: st.DataObject, action: str, garbage: bytes
) -> None:
    before = pristine.inventory
    victim = data.draw(st.sampled_from([path for path, address in pristine.owners.items() if address]))
    broken = pristine.owners[victim]
    with damaged(victim, action, garbage):
        after = look(pristine.root)
    kept = {nic.pci.address: nic for nic in after.nics if nic.pci}
    for nic in before.rdma_nics:
        assert nic.pci is not None
        if nic.pci.address != broken:
            found = kept[nic.pci.address]
            assert (found.pci, found.rdma, found.netdevs) == (nic.pci, nic.rdma, nic.netdevs)
            assert (found.rail, found.excluded) == (nic.rail, nic.excluded)
            assert found.paired_gpu in (nic.paired_gpu, "" if nic.paired_gpu == broken else nic.paired_gpu)
    gpus = {gpu.pci.address: gpu for gpu in after.gpus}
    for gpu in before.gpus:
        if gpu.pci.address != broken:
            assert gpus[gpu.pci.address] == gpu
    links = {(link.a, link.b): link.word for link in after.gpu_links}
    for link in before.gpu_links:
        if broken not in (link.a, link.b):
            assert links[link.a, link.b] == link.word


@settings(max_examples=60)
@given(data=st.data(), action=ACTIONS, garbage=GARBAGE)
def test_damage_to_files_of_the_machine_loses_no_device(
    pristine: Pristine, data: st.DataObject, action: str, garbage: bytes
) -> None:
    before = pristine.inventory
    with damaged(data.draw(st.sampled_from(pristine.files_of(""))), action, garbage):
        after = look(pristine.root)
    assert {nic.id for nic in before.rdma_nics} <= {nic.id for nic in after.nics}
    assert [gpu.pci.address for gpu in before.gpus] == [gpu.pci.address for gpu in after.gpus]


@settings(max_examples=25)
@given(data=st.data())
def test_several_broken_devices_leave_the_last_one_whole(pristine: Pristine, data: st.DataObject) -> None:
    spared = "0104:00:00.0"
    candidates = pristine.files_of("0101:00:00.0", "0102:00:00.0", "0105:00:00.0", "0002:00:00.0")
    victims = data.draw(st.lists(st.sampled_from(candidates), min_size=2, max_size=12, unique=True))
    with contextlib.ExitStack() as stack:
        for victim in victims:
            stack.enter_context(damaged(victim, data.draw(ACTIONS), data.draw(GARBAGE)))
        after = look(pristine.root)
    assert after.nic(spared) == pristine.inventory.nic(spared)


NAMES = st.one_of(
    st.sampled_from(
        ["0000:00:01.0", "0101:00:00.0", "mlx5_0", "eth0", "uverbs0", "umad0", "1", "ports", "gids", "device", "vendor"]
    ),
    st.sampled_from(["[bold]", "[/]", "\x1b[31m", "\udcff\udcfe", "a\nb", "{x}", "%s", "-", "0101:00:00.0 "]),
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20).filter(
        lambda name: name not in (".", "..") and len(name.encode()) < 200
    ),
)
STEMS = st.sampled_from(
    [
        "sys/bus/pci/devices",
        "sys/class/infiniband",
        "sys/class/infiniband_verbs",
        "sys/class/infiniband_mad",
        "sys/class/net",
        "sys/class/misc/rdma_cm",
        "sys/class/kfd/kfd/topology/nodes",
        "sys/devices/system/node",
        "sys/devices/pci0000:00",
        "proc/net",
        "proc/driver/nvidia/gpus",
    ]
)


@settings(max_examples=100)
@given(
    entries=st.lists(st.tuples(STEMS, st.lists(NAMES, min_size=1, max_size=4), GARBAGE), max_size=25),
    links=st.lists(st.tuples(STEMS, NAMES, STEMS, NAMES), max_size=8),
)
def test_any_tree_gives_an_answer(
    tmp_path_factory: pytest.TempPathFactory,
    entries: list[tuple[str, list[str], bytes]],
    links: list[tuple[str, str, str, str]],
) -> None:
    root = tmp_path_factory.mktemp("any")
    (root / "sys").mkdir()
    for stem, names, content in entries:
        with contextlib.suppress(OSError):  # two entries may want one name to be a file and a directory
            path = root / stem / "/".join(names)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    for stem, name, target_stem, target in links:
        with contextlib.suppress(OSError):
            path = root / stem / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(os.path.relpath(root / target_stem / target, path.parent))
    try:
        look(root)
    finally:
        shutil.rmtree(root)
