"""A synthetic GB300 node's driver without sockets: its inventory, store, specs, and claims on a shelf instead of an API
server."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from fishplate.driver.cdi import SpecDirectory
from fishplate.driver.claims import AllocatedClaim, ClaimReader, Reservation
from fishplate.driver.inventory import NodeInventory
from fishplate.driver.prepare import Listener, Preparer, Rules
from fishplate.driver.records import Claim, Consumer
from fishplate.driver.store import Store, open_store
from fishplate.errors import InputError
from fishplate.hardware.catalog import load_catalog
from fishplate.k8s.claim import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    OpaqueDeviceConfiguration,
)
from fishplate.k8s.pod import Pod
from fishplate.sim.host import synthesise
from fishplate.topology.inventory import Inventory
from fishplate.wire.kubelet import ClaimRef

SIZE = "Standard_ND128isr_GB300_v6"
NODE = "gb300-0"
NICS = ("pci-0101-00-00-0", "pci-0102-00-00-0", "pci-0103-00-00-0", "pci-0104-00-00-0")


def gb300() -> Inventory:
    catalog = load_catalog()
    return synthesise(catalog.find(SIZE), catalog)


def ref(uid: str) -> ClaimRef:
    return ClaimRef(namespace="ns", name=f"claim-{uid}", uid=uid)


class Shelf(ClaimReader):
    """Claims that the API server would have."""

    def __init__(self) -> None:
        self.claims: dict[str, AllocatedClaim] = {}
        self.users: dict[str, tuple[Consumer, ...]] = {}
        self.pods: dict[str, Pod] = {}
        self.reads = 0

    def put(
        self,
        uid: str,
        *devices: str,
        request: str = "nic",
        pool: str = NODE,
        driver: str = "dra.net",
        parameters: object = None,
        users: tuple[Consumer, ...] = (),
        admin: bool = False,
        shared: bool = False,
    ) -> ClaimRef:
        results = tuple(
            DeviceRequestAllocationResult(
                request=request, driver=driver, pool=pool, device=device, admin_access=admin or None
            )
            for device in devices
        )
        opaque = OpaqueDeviceConfiguration(driver="dra.net", parameters=parameters)
        config = (DeviceAllocationConfiguration(source="FromClaim", opaque=opaque),) if parameters else ()
        allocation = AllocationResult(devices=DeviceAllocationResult(results=results, config=config))
        self.claims[uid] = AllocatedClaim(
            ref=ref(uid),
            allocation=allocation,
            shared=shared,
            reserved_for=tuple(Reservation(resource="pods", name=one.name, uid=one.uid) for one in users),
        )
        self.users[uid] = users
        return ref(uid)

    async def read(self, ref: ClaimRef) -> AllocatedClaim:
        self.reads += 1
        if ref.uid not in self.claims:
            raise InputError("it does not exist (any more)")
        return self.claims[ref.uid]

    async def pod(self, namespace: str, name: str) -> Pod | None:
        return self.pods.get(name)

    async def consumers(self, claim: AllocatedClaim) -> tuple[Consumer, ...]:
        return self.users[claim.ref.uid]

    async def is_gone(self, ref: ClaimRef, *, driver: str, pool: str) -> bool:
        return ref.uid not in self.claims


class Diary(Listener):
    def __init__(self) -> None:
        self.entries: list[tuple[str, str]] = []

    def prepared(self, claim: Claim) -> None:
        self.entries.append(("prepared", claim.uid))

    def failed(self, claim: AllocatedClaim, reason: str) -> None:
        self.entries.append(("failed", reason))

    def changed(self, claim: Claim) -> None:
        self.entries.append(("changed", claim.lost))

    def forgotten(self, claim: Claim) -> None:
        self.entries.append(("forgotten", claim.uid))


class NodeKit:
    def __init__(self, directory: Path, *, running: Callable[[Claim], bool] = lambda _: False, **rules: bool) -> None:
        self.directory = directory
        self.host = gb300()
        self.shelf = Shelf()
        self.diary = Diary()
        self.running = running
        self.attached = True
        self.rules = Rules(driver="dra.net", node=NODE, **rules)
        self.start()

    def start(self) -> None:
        """As after a restart: everything but the files is new."""
        if hasattr(self, "store"):
            self.store.close()
        self.store: Store = open_store(str(self.directory / "driver.db"))
        self.inventory = NodeInventory(lambda: self.host)
        self.inventory._now = self.host
        self.preparer = Preparer(
            rules=self.rules,
            store=self.store,
            specs=SpecDirectory(str(self.directory / "cdi"), "dra.net"),
            inventory=self.inventory,
            reader=self.shelf,
            listener=self.diary,
            running=lambda claim: self.running(claim),
            attached=lambda: self.attached,
            clock=lambda: 1_800_000_000.0,
        )

    @property
    def specs(self) -> set[str]:
        return SpecDirectory(str(self.directory / "cdi"), "dra.net").claims()

    def without(self, device: str) -> Inventory:
        return msgspec.structs.replace(self.host, nics=tuple(nic for nic in self.host.nics if nic.id != device))
