"""Image archives: valid by their digests, the same for the same input, no owner or time of this machine in them."""

import gzip
import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from fishplate.errors import UsageError
from lab.image import ImageSettings, pack_image, pack_layer, read_identity, write_image

SETTINGS = ImageSettings(name="lab.test/thing:1", entrypoint=("/bin/thing",))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "root"
    (directory / "bin").mkdir(parents=True)
    (directory / "bin" / "thing").write_text("#!/bin/sh\n")
    (directory / "bin" / "thing").chmod(0o755)
    (directory / "bin" / "other").symlink_to("thing")
    return directory


def test_every_blob_has_the_digest_it_is_named_after(root: Path) -> None:
    files = pack_image(pack_layer(root), SETTINGS)
    blobs = {n.rpartition("/")[2]: c for n, c in files.items() if n.startswith("blobs/")}
    assert blobs
    assert all(hashlib.sha256(content).hexdigest() == name for name, content in blobs.items())


def test_index_leads_to_manifest_config_and_layer(root: Path) -> None:
    files = pack_image(pack_layer(root), SETTINGS)

    def blob(descriptor: dict[str, str]) -> bytes:
        content = files["blobs/" + descriptor["digest"].replace(":", "/")]
        assert len(content) == int(descriptor["size"])
        return content

    entry = json.loads(files["index.json"])["manifests"][0]
    assert entry["annotations"]["io.containerd.image.name"] == "lab.test/thing:1"
    manifest = json.loads(blob(entry))
    config = json.loads(blob(manifest["config"]))
    assert config["config"]["Entrypoint"] == ["/bin/thing"]
    layer = gzip.decompress(blob(manifest["layers"][0]))
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        assert {m.name: m.mode & 0o777 for m in tar if m.isreg()} == {"bin/thing": 0o755}
        assert tar.getmember("bin/other").linkname == "thing"


def test_same_content_gives_the_same_archive_whoever_made_it_and_when(root: Path, tmp_path: Path) -> None:
    write_image(root, tmp_path / "one.tar", SETTINGS)
    os.utime(root / "bin" / "thing", (1, 1))
    write_image(root, tmp_path / "two.tar", SETTINGS)
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


def test_an_archive_is_known_by_its_name_and_its_content(root: Path, tmp_path: Path) -> None:
    write_image(root, tmp_path / "one.tar", SETTINGS)
    (root / "bin" / "thing").write_text("#!/bin/false\n")
    write_image(root, tmp_path / "two.tar", SETTINGS)
    one, two = read_identity(tmp_path / "one.tar"), read_identity(tmp_path / "two.tar")
    assert one[0] == two[0] == SETTINGS.name
    assert one[1] != two[1]


def test_a_name_without_a_tag_is_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a tag"):
        write_image(root, tmp_path / "x.tar", ImageSettings(name="lab.test:5000/thing"))
