"""What the driver remembers of a claim. The store keeps it, the kubelet side writes it, the NRI side reads it."""

from typing import Literal

import msgspec

from fishplate.topology.inventory import CharDevice

State = Literal["preparing", "prepared"]


class Held(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One device of a claim."""

    request: str  # as the claim's result names it, `request/subrequest` where there is one
    device: str
    pool: str
    rdma: tuple[str, ...] = ()  # names of the RDMA devices, for NCCL_IB_HCA
    nodes: tuple[CharDevice, ...] = ()
    admin: bool = False  # adminAccess: it does not occupy the device
    share_id: str = ""
    management: bool = False  # umad and issm were asked for
    interface: bool = False  # has a network interface, which stays where it is

    @property
    def base_request(self) -> str:
        """As containers name it: the kubelet knows no subrequests."""
        return self.request.partition("/")[0]


class Consumer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pod that may use the claim. `containers` says which of them, and which requests; an empty tuple of requests
    means all."""

    uid: str
    namespace: str = ""
    name: str = ""
    containers: dict[str, tuple[str, ...]] = {}


class Claim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    uid: str
    namespace: str
    name: str
    state: State = "preparing"
    held: tuple[Held, ...] = ()
    consumers: tuple[Consumer, ...] = ()
    nccl: bool = False  # set NCCL_IB_HCA in its containers
    shared: bool = False  # not owned by one pod: others may join later
    lost: str = ""  # why it cannot be used now: a device of it is gone
    since: float = 0.0  # when it was prepared, for the conditions in its status

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def devices_of(self, pod_uid: str, container: str) -> tuple[Held, ...]:
        """What this container of this pod gets of the claim."""
        for consumer in self.consumers:
            if consumer.uid == pod_uid and (requests := consumer.containers.get(container)) is not None:
                return tuple(one for one in self.held if not requests or one.base_request in requests)
        return ()
