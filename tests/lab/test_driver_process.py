"""The driver as a process, between a real API server and scheduler, the kubelet's own client code and the real NRI
adaptation. Hosts are synthetic: what is under /sys of a GB300 or MI300X machine."""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fishplate.dra.examples import write_examples
from fishplate.hardware.catalog import load_catalog
from fishplate.sim.fleet import Fleet, make_fleet, placement_group
from lab.bare import bare_node
from lab.session import Lab
from tests.integration.cluster_kit import DRA, SLICES, ClusterKit, allocated
from tests.integration.driver_node import DriverNode, wait_for

pytestmark = pytest.mark.lab

GB300 = "Standard_ND128isr_GB300_v6"
MI300X = "Standard_ND96isr_MI300X_v5"


class Site:
    """Two nodes of one size with their GPUs' slices; the drivers publish the NICs."""

    def __init__(self, lab: Lab, size: str, directory: Path) -> None:
        self.size = load_catalog().find(size)
        self.kit = ClusterKit(lab.api, f"drv-{size.split('_')[2].lower()}")
        self.fleet: Fleet = make_fleet([(size, 2)], load_catalog())
        self.names = [node.name for node in self.fleet.nodes]
        # Other tests' nodes have devices on which a selector fails, and that ends the whole attempt.
        self.label = {"fishplate.test/site": self.kit.namespace}
        self.drivers: list[DriverNode] = []
        self._lab = lab
        self._directory = directory

    def __enter__(self) -> "Site":
        self.kit.create_namespace()
        for device_class in self.fleet.classes:
            self.kit.delete(f"{DRA}/deviceclasses/{device_class.metadata.name}")
            self.kit.create(f"{DRA}/deviceclasses", device_class)
        for node in self.fleet.nodes:
            self.kit.create("/api/v1/nodes", bare_node(node.name, {**node.labels, **self.label}))
        for one in self.fleet.slices:
            if one.spec.driver != "dra.net":
                self.kit.create(SLICES, one)
        for number, name in enumerate(self.names):
            driver = DriverNode(
                self._directory / name,
                kubeconfig=self._lab.kubeconfig,
                name=name,
                size=self.size.name,
                number=number,
            )
            self.drivers.append(driver)
            driver.start_runtime()
            driver.start()
        for driver in self.drivers:
            driver.wait_ready()
        return self

    def __exit__(self, *_: object) -> None:
        for driver in self.drivers:
            driver.__exit__(None, None, None)
        for one in self.fleet.slices:
            self.kit.delete(f"{SLICES}/{one.metadata.name}")
        for name in self.names:
            for one in self.kit.slices(name):
                self.kit.delete(f"{SLICES}/{one['metadata']['name']}")
            self.kit.delete(f"/api/v1/nodes/{name}")

    def status_devices(self, claim: str) -> Any:  # noqa: ANN401
        return self.kit.claim(claim)["status"].get("devices")

    def driver_of(self, pod: Any) -> DriverNode:  # noqa: ANN401
        return self.drivers[self.names.index(pod["spec"]["nodeName"])]


@pytest.fixture(scope="module", params=[GB300, MI300X])
def site(control_plane: Lab, request: pytest.FixtureRequest) -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="fp-") as short, Site(control_plane, request.param, Path(short)) as made:
        yield made


def verbs(devices: list[str], site: Site, number: int) -> set[str]:
    """The nodes that these devices have on the host, read from its files and from nothing of ours."""
    root = site.drivers[number].root
    found = set()
    for device in devices:
        address = device.removeprefix("pci-")
        address = f"{address[:4]}:{address[5:7]}:{address[8:10]}.{address[11:]}"
        (rdma,) = (root / "sys/bus/pci/devices" / address / "infiniband").iterdir()
        for entry in (root / "sys/class/infiniband_verbs").iterdir():
            if entry.name.startswith("uverbs") and (entry / "ibdev").read_text().strip() == rdma.name:
                found.add(f"/dev/infiniband/{entry.name} {(entry / 'dev').read_text().strip()}")
    numbers = (root / "sys/class/misc/rdma_cm/dev").read_text().strip()
    return found | {f"/dev/infiniband/rdma_cm {numbers}"}


def test_the_slice_is_what_the_catalogue_says_of_such_a_node(site: Site) -> None:
    for number, name in enumerate(site.names):
        (live,) = site.kit.slices(name)
        expected = next(one for one in site.fleet.slices if one.spec.driver == "dra.net" and one.spec.node_name == name)
        wanted = {device.name: msgspec.to_builtins(device.attributes) for device in expected.spec.devices}
        seen = {device["name"]: device["attributes"] for device in live["spec"]["devices"]}
        for attributes in wanted.values():
            attributes.pop("azure.dra.net/vmSize", None)  # the facts file of the test says nothing of it
        assert seen == wanted
        assert placement_group(site.size, number) in str(seen)
        assert live["metadata"]["ownerReferences"][0]["name"] == name


def test_published_templates_are_allocated_prepared_and_injected(site: Site) -> None:
    """Each template in turn: the real scheduler allocates, the kubelet's client prepares, the real adaptation asks."""
    for template in write_examples(site.size, fabric=placement_group(site.size, 0)):
        name = template.metadata.name
        site.kit.create_template(template)
        site.kit.create_pod(f"pod-{name}", template=name, nodeSelector=site.label)
        pod, claim = site.kit.scheduled(f"pod-{name}")
        driver = site.driver_of(pod)
        devices = allocated(claim)
        assert devices
        wanted = verbs(devices, site, site.drivers.index(driver))

        answer = driver.prepare(claim)[claim["metadata"]["uid"]]
        assert not answer.get("error")
        assert sorted(one["device_name"] for one in answer["devices"]) == sorted(devices)
        assert all(one["request_names"] == ["nic"] for one in answer["devices"])
        ids = [one for device in answer["devices"] for one in device["cdi_device_ids"]]
        assert driver.nodes_of(ids) == wanted

        driver.run_pod(pod)
        assert driver.create_container(pod, "main", cdi=tuple(ids)) == wanted  # the peer does no CDI: NRI fills in
        assert driver.create_container(pod, "sidecar") == set()

        ready = wait_for(name, partial(site.status_devices, claim["metadata"]["name"]))
        assert {one["device"] for one in ready} == set(devices)
        assert all(one["conditions"][0]["status"] == "True" for one in ready)

        driver.remove_pod(pod)
        assert driver.unprepare(claim) == {claim["metadata"]["uid"]: {}}
        assert driver.specs() == {}
        site.kit.delete_pod(f"pod-{name}")
