"""Claims built from parts: requests, selectors, constraints, and the template around them."""

from collections.abc import Mapping, Sequence

from fishplate.dra.intent_classes import NIC_CLASS
from fishplate.k8s.claim import (
    CELDeviceSelector,
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from fishplate.k8s.resource import ObjectMeta

RDMA = 'device.attributes["dra.net"].rdma == true'
PLACEMENT_GROUP = "azure.dra.net/placementGroupId"


def reference(key: str) -> str:
    """How CEL reads an attribute."""
    domain, _, name = key.partition("/")
    return f'device.attributes["{domain}"].{name}'


def equals(key: str, value: int | bool | str) -> str:
    return f"{reference(key)} == {_literal(value)}"


def is_one_of(key: str, values: Sequence[str]) -> str:
    if len(values) == 1:
        return equals(key, values[0])
    return f"{reference(key)} in [{', '.join(map(_literal, values))}]"


def _literal(value: int | bool | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def request(name: str, class_name: str, count: int, *expressions: str) -> DeviceRequest:
    selectors = tuple(DeviceSelector(cel=CELDeviceSelector(expression=text)) for text in expressions if text)
    return DeviceRequest(
        name=name, exactly=ExactDeviceRequest(device_class_name=class_name, selectors=selectors, count=count)
    )


def either_request(name: str, class_names: Mapping[str, str], count: int) -> DeviceRequest:
    """Devices of the first class that has them; each alternative goes by its own name."""
    return DeviceRequest(
        name=name,
        first_available=tuple(
            DeviceSubRequest(name=other, device_class_name=class_name, count=count)
            for other, class_name in class_names.items()
        ),
    )


def nic_request(count: int, *expressions: str, name: str = "nic", fabric: str = "") -> DeviceRequest:
    """RDMA NICs; `fabric` pins them, and so the whole claim, to one placement group."""
    pinned = equals(PLACEMENT_GROUP, fabric) if fabric else ""
    return request(name, NIC_CLASS, count, " && ".join((RDMA, *expressions)), pinned)


def match(key: str, *requests: str) -> DeviceConstraint:
    return DeviceConstraint(requests=requests, match_attribute=key)


def template(
    name: str, requests: Sequence[DeviceRequest], constraints: Sequence[DeviceConstraint] = ()
) -> ResourceClaimTemplate:
    devices = DeviceClaim(requests=tuple(requests), constraints=tuple(constraints))
    return ResourceClaimTemplate(
        metadata=ObjectMeta(name=name), spec=ResourceClaimTemplateSpec(spec=ResourceClaimSpec(devices=devices))
    )
