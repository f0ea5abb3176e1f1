"""`python -m lab`: see docs/lab.md."""

import os
import sys
from pathlib import Path

import click

from fishplate.errors import FishplateError, UsageError
from fishplate.sim.gpu_drivers import profile_names
from lab import session
from lab.binaries import control_plane_binaries
from lab.footprint import compare_footprints, take_footprint
from lab.helm import build_helm, helm_argv
from lab.host import require_commands
from lab.image import ImageSettings, assemble_image, fill_image, write_image
from lab.machine import read_shapes
from lab.payload import node_tools, run_wheels
from lab.rootfs import node_system
from lab.state import Request, state_directory


@click.group()
@click.option("--name", default="default", help="which lab, where there are several")
@click.pass_context
def main(context: click.Context, name: str) -> None:
    """A real Kubernetes control plane and real RDMA nodes, on this machine alone."""
    context.obj = name


@main.command()
def build() -> None:
    """Build everything that `up` needs, into the cache."""
    require_commands()
    control_plane_binaries()
    node_tools(node_system())
    run_wheels()
    build_helm()


@main.command()
@click.option("--nodes", default=2, show_default=True, type=click.IntRange(1, 8))
@click.option("--shape", default="gb300", show_default=True, type=click.Choice(sorted(read_shapes())))
@click.option("--gpu-driver", default="", type=click.Choice(["", *profile_names()]), help="default: the shape's")
@click.option("--control-plane-only", is_flag=True, help="no nodes: API server, scheduler and controller manager")
@click.option("--feature-gates", default="", help="for every component, as Kubernetes spells them: A=true,B=false")
@click.pass_obj
def up(name: str, nodes: int, shape: str, gpu_driver: str, control_plane_only: bool, feature_gates: str) -> None:
    """Bring a lab up; one that is already there is replaced."""
    count = 0 if control_plane_only else nodes
    request = Request(nodes=count, shape=shape, gpu_driver=gpu_driver, feature_gates=feature_gates)
    lab = session.up(name, request)
    click.echo(f"export KUBECONFIG={lab.kubeconfig}")


@main.command()
@click.pass_obj
def down(name: str) -> None:
    """End the lab and remove its files, also after a crash."""
    if not session.down(name):
        click.echo(f"no lab {name}", err=True)


@main.command()
@click.pass_obj
def status(name: str) -> None:
    """What runs, and where."""
    lab = session.attach(name)
    click.echo(f"{name}: {lab.url}, {len(lab.processes())} processes, state in {lab.directory}")
    click.echo(lab.kubectl("get", "nodes", "-o", "wide").stdout, nl=False)


# Everything after the first word belongs to the other program, `--` included.
_PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}


@main.command(context_settings=_PASS_ON)
@click.argument("node")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def ssh(name: str, node: str, command: tuple[str, ...]) -> None:
    """A shell on a node (its name or number), or one command."""
    lab = session.attach(name)
    found = [n for i, n in enumerate(lab.nodes) if node in (n.name, str(i))]
    if not found:
        raise UsageError(f"no node {node}", where="lab ssh", remedy=f"nodes: {', '.join(n.name for n in lab.nodes)}")
    os.chdir(lab.directory)
    argv = found[0].argv(" ".join(command))
    os.execvp(argv[0], argv if command else [argv[0], "-t", *argv[1:-2]])


@main.command(context_settings=_PASS_ON)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def kubectl(name: str, args: tuple[str, ...]) -> None:
    """kubectl, as the lab's administrator."""
    lab = session.attach(name)
    os.execv(lab.state.kubectl, ["kubectl", "--kubeconfig", str(lab.kubeconfig), *args])


@main.command(context_settings=_PASS_ON)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def helm(name: str, args: tuple[str, ...]) -> None:
    """Helm, as the lab's administrator."""
    argv = [*helm_argv(session.attach(name).kubeconfig), *args]
    os.execv(argv[0], argv)


@main.command()
@click.argument("part", required=False)
@click.pass_obj
def logs(name: str, part: str | None) -> None:
    """The log of one part, or the names of all parts."""
    files = sorted((state_directory(name) / "logs").glob("*.log"))
    chosen = [f for f in files if f.stem == part]
    if part and not chosen:
        raise UsageError(f"no log of {part}", where="lab logs", remedy=f"there are: {', '.join(f.stem for f in files)}")
    click.echo(chosen[0].read_text(errors="replace") if chosen else "\n".join(f.stem for f in files))


@main.command()
@click.argument("archive", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_obj
def load(name: str, archive: Path) -> None:
    """Import an image archive into every node."""
    session.attach(name).load(archive)


@main.command()
@click.argument("profile", type=click.Choice(["none", *profile_names()]))
@click.pass_obj
def gpus(name: str, profile: str) -> None:
    """Publish the GPU stand-ins as another driver release would, or not at all."""
    lab = session.attach(name)
    if profile == "none":
        lab.stop_gpu_driver()
    else:
        lab.start_gpu_driver(profile)


@main.command()
@click.argument("tag")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--directory", type=click.Path(exists=True, file_okay=False, path_type=Path), help="the root, ready made")
@click.option(
    "--script", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="fills the root it is given"
)
@click.option("--package", "packages", multiple=True, help="a Debian package; may be repeated")
@click.option("--requirements", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="hashed wheels")
@click.option("--entrypoint", multiple=True, help="a word of the command; may be repeated")
@click.option("--cmd", multiple=True, help="a word of its default arguments; may be repeated")
@click.option("--arch", default="amd64", show_default=True, type=click.Choice(["amd64", "arm64"]))
def image(
    tag: str,
    output: Path,
    directory: Path | None,
    script: Path | None,
    packages: tuple[str, ...],
    requirements: Path | None,
    entrypoint: tuple[str, ...],
    cmd: tuple[str, ...],
    arch: str,
) -> None:
    """Write an OCI image archive from a directory, a script, or from Debian packages and wheels."""
    settings = ImageSettings(name=tag, entrypoint=entrypoint, command=cmd, architecture=arch)
    output.parent.mkdir(parents=True, exist_ok=True)
    if directory:
        write_image(directory, output, settings)
    elif script:
        require_commands(("mmdebstrap",))
        fill_image(output, settings, script, {})
    elif packages:
        require_commands(("mmdebstrap",))
        assemble_image(output, settings, packages=packages, requirements=requirements)
    else:
        raise UsageError(
            "nothing to put in the image", where="lab image", remedy="give --directory, --script or --package"
        )


@main.group()
def footprint() -> None:
    """What the machine holds that a lab could leave behind."""


@footprint.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def take(file: Path) -> None:
    """Write the footprint to a file."""
    take_footprint(file)


@footprint.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def compare(file: Path) -> None:
    """Fail if there is more than when the file was written."""
    more = compare_footprints(file)
    for line in more:
        click.echo(f"left behind: {line}", err=True)
    sys.exit(1 if more else 0)


def run() -> None:
    try:
        main(standalone_mode=True)
    except FishplateError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    run()
