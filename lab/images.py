"""The images that tests of the driver need on the nodes: the driver's own, and one to look around with in pods."""

from pathlib import Path

from lab import HERE, TREE
from lab.cache import cached, digest_files
from lab.host import require_commands
from lab.image import ImageSettings, assemble_image, fill_image

DRIVER = "lab.test/fishplate:1"
TOOLS = "lab.test/tools:1"

# Python to look around with, perftest and Soft-RoCE's user space to use a device with. No shell.
_TOOLS = ("python3-minimal", "libpython3-stdlib", "perftest", "ibverbs-providers", "ibverbs-utils")


def driver_image(out: Path) -> Path:
    """As users build it, from the working tree."""
    require_commands(("mmdebstrap",))
    settings = ImageSettings(name=DRIVER, entrypoint=("/usr/bin/fishplate",), command=("driver",))
    fill_image(out, settings, TREE / "deploy" / "image-root", {})
    return out


def tools_image() -> Path:
    require_commands(("mmdebstrap",))

    def build(out: Path) -> None:
        assemble_image(out / "tools.tar", ImageSettings(name=TOOLS), packages=_TOOLS, requirements=None)

    sources = [HERE / name for name in ("images.py", "image.py", "image-root")]
    return cached("image-tools", digest_files(sources), build) / "tools.tar"
