"""The DeviceClasses that claims refer to, as the drivers' charts install them, and the names of drivers."""

from typing import Literal

from fishplate.k8s.claim import CELDeviceSelector, DeviceClass, DeviceClassSpec, DeviceSelector
from fishplate.k8s.resource import ObjectMeta

Vendor = Literal["nvidia", "amd"]

NIC_DRIVER = "dra.net"
NIC_CLASS = "dranet.net"
GPU_DRIVERS: dict[Vendor, str] = {"nvidia": "gpu.nvidia.com", "amd": "gpu.amd.com"}
# From the Helm charts of kubernetes-sigs/dra-driver-nvidia-gpu and ROCm/k8s-gpu-dra-driver, where a GPU class has the
# name of its driver. `dranet.net` is the class that DRANET's examples use.
_EXPRESSIONS = {
    NIC_CLASS: 'device.driver == "dra.net"',
    "gpu.nvidia.com": "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'",
    "gpu.amd.com": "device.driver == 'gpu.amd.com'",
}


def device_class(name: str) -> DeviceClass:
    selector = DeviceSelector(cel=CELDeviceSelector(expression=_EXPRESSIONS[name]))
    return DeviceClass(metadata=ObjectMeta(name=name), spec=DeviceClassSpec(selectors=(selector,)))


def device_classes() -> tuple[DeviceClass, ...]:
    return tuple(map(device_class, _EXPRESSIONS))
