"""`--filter`: which devices are published, in DRANET's dialect of CEL.

As upstream: a device on which the expression fails is kept, and one for which it does not give a bool is dropped. What
differs: the caller is told why, where upstream logs a line per device and scan.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from fishplate.k8s.resource import Device, DeviceAttribute

DEFAULT_FILTER = '!("dra.net/type" in attributes) || attributes["dra.net/type"].StringValue != "veth"'
_TYPE = "dra.net/type"


class Verdict(NamedTuple):
    """Whether to publish a device; `error` where the expression could not tell."""

    keep: bool
    error: str = ""


class Filtered(NamedTuple):
    """The devices to publish, and for each that the expression failed on, why."""

    kept: tuple[Device, ...]
    errors: dict[str, str]


class Filter(Protocol):
    def judge(self, attributes: Mapping[str, DeviceAttribute]) -> Verdict: ...


def compile_filter(expression: str = DEFAULT_FILTER) -> Filter:
    """Raises CelCompileError, with a caret below the place. An empty expression keeps every device."""
    if not expression.strip():
        return _KeepAll()
    if "".join(expression.split()) == "".join(DEFAULT_FILTER.split()):
        # What nearly everybody runs needs no CEL, which would be 8 MB of a driver that may have 58.
        return _NoVeth()
    from fishplate.driver.filter_cel import CelFilter

    return CelFilter(expression)


def filter_devices(chosen: Filter, devices: Iterable[Device]) -> Filtered:
    kept, errors = [], {}
    for device in devices:
        verdict = chosen.judge(device.attributes)
        if verdict.error:
            errors[device.name] = verdict.error
        if verdict.keep:
            kept.append(device)
    return Filtered(tuple(kept), errors)


class _KeepAll:
    def judge(self, attributes: Mapping[str, DeviceAttribute]) -> Verdict:
        return Verdict(keep=True)


class _NoVeth:
    def judge(self, attributes: Mapping[str, DeviceAttribute]) -> Verdict:
        return Verdict(keep=_TYPE not in attributes or attributes[_TYPE].string != "veth")
