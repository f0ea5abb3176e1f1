"""Which kernel modules go where, and where packages come from."""

from pathlib import Path

import pytest

from fishplate.errors import OutsideError
from lab.cpio import pack_cpio
from lab.rootfs import choose_modules, find_sources, order_modules

DEPENDENCIES = """\
kernel/drivers/block/virtio_blk.ko: kernel/drivers/virtio/virtio.ko
kernel/drivers/virtio/virtio.ko:
kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko kernel/lib/crc16.ko kernel/fs/mbcache.ko
kernel/fs/jbd2/jbd2.ko:
kernel/fs/mbcache.ko:
kernel/lib/crc16.ko:
kernel/drivers/infiniband/core/rdma_cm.ko: kernel/fs/configfs/configfs.ko
kernel/fs/configfs/configfs.ko:
kernel/drivers/virtiofoo/foo.ko:
"""


def test_a_module_is_loaded_after_what_it_needs_and_only_once() -> None:
    order = [Path(f).stem for f in order_modules(DEPENDENCIES, ("virtio_blk", "ext4", "virtio_blk"))]
    assert order == ["virtio", "virtio_blk", "mbcache", "crc16", "jbd2", "ext4"]


def test_a_module_that_is_built_in_needs_no_loading() -> None:
    assert order_modules(DEPENDENCIES, ("crc32c_generic",)) == []


def test_dependencies_outside_the_chosen_places_come_along() -> None:
    chosen = choose_modules(DEPENDENCIES, ("drivers/infiniband", "drivers/virtio"))
    assert [Path(f).stem for f in chosen] == ["rdma_cm", "virtio", "configfs"]


def test_only_sources_of_the_suite_are_used(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "a.sources").write_text("Suites: bookworm\n")
    (tmp_path / "sources.list.d" / "b.list").write_text("deb http://example.test trixie main\n")
    assert [Path(f).name for f in find_sources("bookworm", tmp_path)] == ["a.sources"]
    with pytest.raises(OutsideError, match="no package source serves sid"):
        find_sources("sid", tmp_path)


def test_cpio_entries_are_aligned_and_directories_come_before_their_files() -> None:
    packed = pack_cpio({"bin/busybox": b"12345", "init": b"x"})
    names, at = [], 0
    while packed[at : at + 6] == b"070701":
        fields = [int(packed[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        names.append(packed[at + 110 : at + 110 + fields[11] - 1].decode())
        body = at + (110 + fields[11] + 3) // 4 * 4
        at = body + (fields[6] + 3) // 4 * 4
    assert names == ["bin", "bin/busybox", "init", "TRAILER!!!"]
    assert at == len(packed)
