import pytest

from fishplate.cli.matrix import print_inventory
from fishplate.topology.inventory import Gpu, Inventory, Netdev, Nic, PciFunction, RdmaDevice


def test_names_in_brackets_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    pci = PciFunction(address="0101:00:00.0", driver="[/x]")
    nic = Nic(id="x", pci=pci, rdma=(RdmaDevice(name="[bold]mlx"),), netdevs=(Netdev(name="[/]"),))
    print_inventory(Inventory(gpus=(Gpu(pci=pci, vendor="nvidia", model="[red]GPU"),), nics=(nic,)))
    out = capsys.readouterr().out
    assert "[bold]mlx" in out
    assert "[/]" in out
    assert "[red]GPU" in out


def test_an_inferred_numa_node_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    pci = PciFunction(address="0101:00:00.0", numa_node=0, numa_source="single-node")
    print_inventory(Inventory(nics=(Nic(id="x", pci=pci, rdma=(RdmaDevice(name="mlx5_0"),)),)))
    assert "0*" in capsys.readouterr().out
