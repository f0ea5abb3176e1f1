"""What to write so that the cluster's slices say what this node has: decided here, done elsewhere.

Rules of the pool (kube-scheduler believes the newest generation, and only a complete one):
- slices of ours that nobody wants go first; then changed ones are updated, then missing ones created;
- one changed slice is one atomic write and keeps the generation; anything more is a new generation for all of them;
- a slice that says the same is not written.

Names are fixed (index, driver, node), so a driver that crashed half-way finds its own work again.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from fishplate.k8s.resource import Device, LiveMeta, OwnerReference, ResourceSlice, ResourceSliceSpec

LABEL = "app.kubernetes.io/managed-by"
MANAGER = "fishplate"


class LiveSlice(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A ResourceSlice with what it takes to replace or delete it."""

    api_version: Literal["resource.k8s.io/v1"] = "resource.k8s.io/v1"
    kind: Literal["ResourceSlice"] = "ResourceSlice"
    metadata: LiveMeta
    spec: ResourceSliceSpec

    @property
    def ours(self) -> bool:
        return self.metadata.labels.get(LABEL) == MANAGER


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    delete: tuple[LiveSlice, ...] = ()
    update: tuple[LiveSlice, ...] = ()
    create: tuple[LiveSlice, ...] = ()
    generation: int = 0

    @property
    def writes(self) -> int:
        return len(self.delete) + len(self.update) + len(self.create)


def plan_slices(
    wanted: Sequence[ResourceSlice],
    existing: Sequence[LiveSlice],
    *,
    owner: OwnerReference | None = None,
    accepted: dict[str, tuple[Device, ...]] | None = None,
) -> Plan:
    """`accepted` tells, by slice name, what the API server made of our devices when it dropped fields it does not know:
    that is as good as what we want, and writing it again would never end."""
    names = {one.metadata.name for one in wanted}
    current = {one.metadata.name: one for one in existing if one.metadata.name in names}
    obsolete = tuple(one for one in existing if one.metadata.name not in names)
    generation = max((one.spec.pool.generation for one in existing), default=0)
    changed = [one for one in wanted if _differs(one, current.get(one.metadata.name), generation, accepted or {})]
    if not changed and not obsolete:
        return Plan(generation=generation)
    if len(changed) > 1 or obsolete or any(one.metadata.name not in current for one in changed):
        generation += 1
        changed = list(wanted)
    stamped = [_stamp(one, current.get(one.metadata.name), generation, owner) for one in changed]
    return Plan(
        delete=obsolete,
        update=tuple(one for one in stamped if one.metadata.name in current),
        create=tuple(one for one in stamped if one.metadata.name not in current),
        generation=generation,
    )


def _differs(
    wanted: ResourceSlice, current: LiveSlice | None, generation: int, accepted: dict[str, tuple[Device, ...]]
) -> bool:
    if current is None or current.spec.pool.generation != generation:
        return True
    if current.spec.pool.resource_slice_count != wanted.spec.pool.resource_slice_count:
        return True
    devices = current.spec.devices
    return devices != wanted.spec.devices and devices != accepted.get(wanted.metadata.name)


def _stamp(
    wanted: ResourceSlice, current: LiveSlice | None, generation: int, owner: OwnerReference | None
) -> LiveSlice:
    metadata = LiveMeta(
        name=wanted.metadata.name,
        uid=current.metadata.uid if current else "",
        resource_version=current.metadata.resource_version if current else "",
        labels={LABEL: MANAGER},
        owner_references=(owner,) if owner else (),
    )
    pool = msgspec.structs.replace(wanted.spec.pool, generation=generation)
    return LiveSlice(metadata=metadata, spec=msgspec.structs.replace(wanted.spec, pool=pool))


def dropped_fields(sent: Sequence[Device], returned: Sequence[Device]) -> tuple[str, ...]:
    """What the API server left out of the devices it stored, as `device: attribute`."""
    kept = {device.name: device for device in returned}
    lost = []
    for device in sent:
        back = kept.get(device.name)
        if back is None:
            lost.append(device.name)
        elif back != device:
            lost += [f"{device.name}: {name}" for name in device.attributes if name not in back.attributes] or [
                f"{device.name}: {field}"
                for field in device.__struct_fields__
                if getattr(device, field) != getattr(back, field)
            ]
    return tuple(lost)
