"""`fishplate demo`: the story so far, told on simulated hosts by the real code."""

import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from fishplate.cli.matrix import print_inventory
from fishplate.cli.output import console
from fishplate.hardware.catalog import Catalog, load_catalog
from fishplate.node.scan import scan
from fishplate.node.tree import Tree
from fishplate.sim.host import host_name, write_host
from fishplate.sim.variations import Variations
from fishplate.topology.inventory import Inventory
from fishplate.topology.slices import publish_slices

_GB300, _MI300X = "Standard_ND128isr_GB300_v6", "Standard_ND96isr_MI300X_v5"


class Story:
    """Chapters with a pause between them, or a key press, or none of both."""

    def __init__(self, out: Console, *, fast: bool, step: bool) -> None:
        self.out = out
        self.fast = fast or not out.is_terminal
        self.step = step
        self.chapter = 0

    def tell(self, title: str, *lines: str) -> None:
        if self.chapter and self.step:
            click.pause("-- any key --", err=True)
        elif self.chapter and not self.fast:
            time.sleep(1.5)
        self.chapter += 1
        self.out.print(f"\n[bold cyan]{self.chapter}. {title}[/bold cyan]")
        for line in lines:
            self.out.print(line)


@click.command()
@click.option("--fast", is_flag=True, help="No pauses.")
@click.option("--step", is_flag=True, help="Wait for a key between chapters.")
def command(fast: bool, step: bool) -> None:
    """Tell the whole story on simulated hosts: no Kubernetes, no root, no GPU needed."""
    story = Story(console(), fast=fast, step=step)
    catalog = load_catalog()
    with tempfile.TemporaryDirectory(prefix="fishplate-demo-") as directory:
        _tell(story, catalog, Path(directory))


def _tell(story: Story, catalog: Catalog, root: Path) -> None:
    story.tell(
        "Four machines",
        "Simulated: two ND GB300 v6 and two ND MI300X v5, each a tree of sysfs, proc and dev files.",
        "Real: every line of code that reads them. It would read your host the same way.",
    )
    inventories: dict[str, Inventory] = {}
    for number, name in enumerate((_GB300, _GB300, _MI300X, _MI300X)):
        size = catalog.find(name)
        place = root / host_name(size, number)
        write_host(place, size, number=number)
        started = time.perf_counter()
        inventory = scan(Tree(place), catalog=catalog)
        took = (time.perf_counter() - started) * 1000
        inventories[inventory.host.name] = inventory
        recognised = " or ".join(inventory.host.sizes) or "nothing we know"
        story.out.print(
            f"  {inventory.host.name:<24} {len(inventory.gpus)} GPUs, {len(inventory.rdma_nics)} RDMA NICs, "
            f"read in {took:.0f} ms, recognised as {recognised}"
        )
    first = next(iter(inventories.values()))

    story.tell("Who is near whom", "A NIC on the wrong NUMA node costs half the bandwidth or more, in silence.")
    print_inventory(first)

    story.tell("What the scheduler gets to see", "The ResourceSlice that follows from that host; one device of four:")
    _show_device(story.out, first)
    story.out.print(
        "Templates written for DRANET find the names they know. The standard numaNode and gpu.amd.com/numaNode\n"
        "let one template line a NIC up with either vendor's GPU."
    )

    _tell_who_gets_what(story, catalog)

    story.tell("Machines as they are, not as they should be")
    for title, variations in (
        ("accelerated networking takes the name mlx5_0", Variations(accelerated_networking=True)),
        ("rail 2 is down", Variations(links_down=(2,))),
        ("the VM came up without rail 1", Variations(missing=(1,))),
        ("firmware gives no NUMA nodes", Variations(numa_unknown=True)),
    ):
        _show_variation(story.out, catalog, root / f"variation-{title.split()[0]}", title, variations)
    story.out.print("\nNothing is keyed on mlx5_N: rails follow the PCI address, and what is unknown stays unknown.")


def _tell_who_gets_what(story: Story, catalog: Catalog) -> None:
    """The published templates through the allocator, on a fleet of the same four machines."""
    from fishplate.cli.stories import print_explanation
    from fishplate.dra import Scene, profile
    from fishplate.dra.examples import write_examples
    from fishplate.dra.explain import explain
    from fishplate.k8s.claim import default_claim
    from fishplate.sim.fleet import make_fleet

    story.tell(
        "Who gets what, and why",
        "Simulated: the cluster. Real: the allocator, which follows kube-scheduler 1.36 device by device.",
        "Three templates published for DRANET, from the catalogue:",
    )
    fleet = make_fleet(((_GB300, 2), (_MI300X, 2)), catalog)
    scene = Scene(fleet.world(), profile())
    templates = {one.metadata.name: one for one in write_examples(catalog.find(_GB300))}
    for name in ("1nic-aligned", "1nic-unaligned", "ib-same-fabric"):
        claim = default_claim(templates[name].as_claim(name))
        story.out.print()
        print_explanation(name, explain(scene, fleet.nodes, [claim], catalog=catalog), [])


def _show_device(out: Console, inventory: Inventory) -> None:
    (slice_,) = publish_slices(inventory, node=inventory.host.name)
    device = slice_.spec.devices[0]
    out.print(f"  [bold]{device.name}[/bold]")
    for name, attribute in device.attributes.items():
        out.print(f"    {name:<34} {escape(str(attribute.value))}")


def _show_variation(out: Console, catalog: Catalog, place: Path, title: str, variations: Variations) -> None:
    write_host(place, catalog.find(_GB300), variations=variations)
    inventory = scan(Tree(place), catalog=catalog)
    out.print(f"\n  [bold]{title}[/bold]")
    for nic in inventory.rdma_nics:
        assert nic.pci is not None
        facts = [
            f"rail {'-' if nic.rail is None else nic.rail}",
            nic.rdma[0].name,
            f"NUMA {'?' if nic.numa_node is None else nic.numa_node}",
            nic.rdma[0].ports[0].state,
            f"not offered: {nic.excluded}" if nic.excluded else "offered",
        ]
        out.print(f"    {nic.pci.address}  {'  '.join(facts)}")
