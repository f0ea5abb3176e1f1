"""The node's root file system, kernel and first-stage root, from Debian packages.

The host's own package sources are used, so nothing here names a mirror. Nothing is installed on the host: the kernel
package is unpacked, and only those of its modules that lab/node/packages.toml names go on the disk.
"""

import shutil
import tomllib
from pathlib import Path

import msgspec

from fishplate.errors import OutsideError
from lab import HERE
from lab.cache import cached, digest_files
from lab.cpio import pack_cpio
from lab.host import run_checked

NODE = HERE / "node"


class Packages(msgspec.Struct, frozen=True, kw_only=True):
    suite: str
    kernel: str
    packages: tuple[str, ...]
    module_trees: tuple[str, ...]
    first_stage: tuple[str, ...]
    boot: tuple[str, ...]


def read_packages() -> Packages:
    return msgspec.convert(tomllib.loads((NODE / "packages.toml").read_text()), Packages)


def find_sources(suite: str, apt: Path = Path("/etc/apt")) -> list[str]:
    """The host's package sources that serve this suite."""
    files = [
        apt / "sources.list",
        *sorted(apt.glob("sources.list.d/*.list")),
        *sorted(apt.glob("sources.list.d/*.sources")),
    ]
    found = [str(f) for f in files if f.is_file() and suite in f.read_text()]
    if not found:
        raise OutsideError(
            f"no package source serves {suite}", where=str(apt), remedy=f"add Debian's {suite} to the package sources"
        )
    return found


def debootstrap(directory: Path, suite: str, packages: tuple[str, ...], *hooks: str) -> None:
    """A minimal Debian in `directory`, without documentation and without the host's packages being touched."""
    exclude = [f"--dpkgopt=path-exclude=/usr/share/{d}/*" for d in ("doc", "man", "locale", "info")]
    argv = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}", *exclude]
    argv += ['--aptopt=APT::Install-Recommends "false"', *(f"--customize-hook={h}" for h in hooks)]
    run_checked([*argv, suite, str(directory), *find_sources(suite)], what="mmdebstrap")


def make_disk(directory: Path, image: Path, *, size: str | None = None, journal: bool = False) -> None:
    """An ext4 image of a directory; without a size it is as large as its content needs."""
    if size is None:
        used = sum(f.stat().st_size + 4096 for f in directory.rglob("*") if f.is_file() and not f.is_symlink())
        size = f"{used // 1024 * 5 // 4 + 8192}K"
    features = [] if journal else ["-O", "^has_journal"]
    argv = ["mke2fs", "-q", "-t", "ext4", "-m", "0", *features, "-E", "root_owner=0:0", "-d", str(directory)]
    run_checked([*argv, str(image), size], what="mke2fs")


def order_modules(dependencies: str, wanted: tuple[str, ...]) -> list[str]:
    """File names of the wanted modules and what they depend on, in the order in which they can be loaded."""
    needs = {line.split(":")[0]: line.split(":")[1].split() for line in dependencies.splitlines()}
    by_name = {Path(file).name.removesuffix(".ko").replace("-", "_"): file for file in needs}
    ordered: list[str] = []
    for name in wanted:
        file = by_name.get(name)
        # A module that the kernel has built in is not in the list, and needs no loading.
        for one in [*reversed(needs[file]), file] if file else []:
            if one not in ordered:
                ordered.append(one)
    return ordered


def choose_modules(dependencies: str, trees: tuple[str, ...]) -> list[str]:
    """File names of the modules below these places, and of all they depend on."""
    chosen: set[str] = set()
    for line in dependencies.splitlines():
        file, _, needs = line.partition(":")
        place = file.removeprefix("kernel/")
        if any(place == tree or place.startswith(f"{tree}/") for tree in trees):
            chosen |= {file, *needs.split()}
    return sorted(chosen)


def _install_modules(package: Path, root: Path, trees: tuple[str, ...]) -> Path:
    source = next((package / "lib/modules").iterdir())
    target = root / "usr/lib/modules" / source.name
    run_checked(["depmod", "-b", str(package), source.name], what="depmod")
    for name in choose_modules((source / "modules.dep").read_text(), trees):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / name, target / name)
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy2(source / name, target / name)
    run_checked(["depmod", "-b", str(root / "usr"), source.name], what="depmod")
    return target


def _furnish(root: Path) -> None:
    """What init needs to find the lab's own files, which are on another disk."""
    for name in ("opt/lab/tools", "opt/lab/payload"):
        (root / name).mkdir(parents=True)
    links = {
        "etc/inittab": "/opt/lab/payload/node/inittab",
        "etc/lab": "/opt/lab/payload/node",
        "usr/local/bin/fishplate": "/opt/lab/payload/node/fishplate",
        "sbin/init": "/bin/busybox",
    }
    for link, target in links.items():
        (root / link).unlink(missing_ok=True)
        (root / link).symlink_to(target)
    (root / "etc/resolv.conf").write_text("")
    path = "/opt/lab/tools/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    (root / "etc/profile.d/lab.sh").write_text(f"export PATH={path}\n")


def _build(out: Path) -> None:
    wanted, root = read_packages(), out / "root"
    # Inside mmdebstrap, with its sources, so that the kernel is that of the suite whatever the host runs.
    fetch = (
        f"cd {out} && export APT_CONFIG=$MMDEBSTRAP_APT_CONFIG && "
        f"apt-get -qq -o APT::Sandbox::User=root download "
        f"$(apt-cache depends {wanted.kernel} | sed -n 's/.*Depends: \\(linux-image-[^ ]*\\)/\\1/p' | head -n 1)"
    )
    debootstrap(root, wanted.suite, wanted.packages, fetch)
    archive = next(out.glob("linux-image-*.deb"))
    run_checked(["dpkg-deb", "-x", str(archive), str(out / "kernel")], what="dpkg-deb")
    modules = _install_modules(out / "kernel", root, wanted.module_trees)
    shutil.copy2(next((out / "kernel/boot").glob("vmlinuz-*")), out / "vmlinuz")
    files = {"bin/busybox": (root / "bin/busybox").read_bytes(), "init": (NODE / "first-stage").read_bytes()}
    for i, name in enumerate(order_modules((modules / "modules.dep").read_text(), wanted.first_stage)):
        files[f"modules/{i:02}-{Path(name).name}"] = (modules / name).read_bytes()
    (out / "first-stage.cpio").write_bytes(pack_cpio(files))
    shutil.copy2(root / "bin/busybox", out / "busybox")
    _furnish(root)
    make_disk(root, out / "root.img", size="6G")
    for leftover in (root, out / "kernel"):
        shutil.rmtree(leftover)
    archive.unlink()


def node_system() -> Path:
    """The cache entry with vmlinuz, first-stage.cpio, root.img and a static busybox."""
    sources = [NODE / "packages.toml", NODE / "first-stage", HERE / "rootfs.py", HERE / "cpio.py"]
    return cached("node-system", digest_files(sources), _build)
