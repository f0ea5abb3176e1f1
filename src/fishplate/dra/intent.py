"""Claims from intent: so many GPUs, so many NICs, lined up like this, for what is published here.

The first choice is always ONE template that serves every GPU of a node, by `matchAttribute` on an attribute that both
drivers publish: then the scheduler picks any free GPU and a NIC near it. Only where no such attribute exists are there
several templates, one for each NUMA node, and whoever uses them has to spread the pods over them by hand. Every choice
comes with its reason in words.

Nothing is guessed: an attribute that some device lacks, a number that means "unknown", values that never meet are seen
and said. A claim that no node could ever satisfy is refused here: Kubernetes would accept it and let the pod wait.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec

from fishplate.dra.intent_attributes import (
    AMD_NUMA_NODE,
    NUMA_NODE,
    NVIDIA_UUID,
    PCIE_ROOT,
    Judgement,
    Need,
    count,
    judge,
)
from fishplate.dra.intent_classes import NIC_CLASS, Vendor, device_class
from fishplate.dra.intent_per_numa import per_numa_templates
from fishplate.dra.intent_published import Published
from fishplate.dra.intent_templates import PLACEMENT_GROUP, match, nic_request, request, template
from fishplate.errors import InputError
from fishplate.k8s.claim import DeviceClass, DeviceRequest, ResourceClaimTemplate
from fishplate.k8s.resource import MAX_RESULTS_PER_CLAIM
from fishplate.topology.names import is_dns_subdomain

# A pair of requests and a constraint for each GPU: the API takes 32 of each.
_MOST_PAIRS = MAX_RESULTS_PER_CLAIM // 2


class Align(StrEnum):
    NUMA = "numa"
    PCIE = "pcie"
    PAIR = "pair"
    NONE = "none"


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    gpus: int = 1
    nics: int = 1
    align: Align = Align.NUMA
    fabric: str = ""
    """The placement group that the claim is pinned to. Choosing one is the caller's business."""
    name: str = ""

    @property
    def need(self) -> Need:
        return Need(self.gpus, self.nics)

    @property
    def template_name(self) -> str:
        parts = [f"{self.gpus}gpu" if self.gpus else "", f"{self.nics}nic" if self.nics else ""]
        return self.name or "-".join(part for part in parts if part)


class Claims(NamedTuple):
    """What to apply, why it looks so, and what to know before relying on it.

    `attribute` is what holds GPUs and NICs together; empty where selectors do.
    """

    classes: tuple[DeviceClass, ...]
    templates: tuple[ResourceClaimTemplate, ...]
    attribute: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def manifests(self) -> list[dict[str, object]]:
        return [msgspec.to_builtins(one) for one in (*self.classes, *self.templates)]


class _Choice(NamedTuple):
    templates: tuple[ResourceClaimTemplate, ...]
    attribute: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def write_claims(intent: Intent, published: Published, *, gpu_numa: Mapping[str, int] | None = None) -> Claims:
    """The claims for this intent. `gpu_numa` maps a GPU's PCI address to its NUMA node, where somebody knows: it is
    needed only where the GPU driver does not tell. InputError if nothing published could satisfy it."""
    _check(intent)
    offered = _narrow(intent, published)
    if intent.align is Align.NONE or intent.gpus + intent.nics == 1 or (intent.gpus and not intent.nics):
        choice = _choose_nothing(intent, offered)
    elif intent.align is Align.PCIE:
        choice = _choose_root(intent, offered)
    elif intent.align is Align.PAIR:
        choice = _choose_pairs(intent, offered)
    else:
        choice = _choose_numa(intent, offered, gpu_numa or {})
    names = [NIC_CLASS] if intent.nics else []
    names += [offered.gpu_driver] if intent.gpus else []
    return Claims(tuple(map(device_class, names)), *choice)


# -- what is asked for -------------------------------------------------------------------------------------------


def _check(intent: Intent) -> None:
    total = intent.gpus + intent.nics
    if intent.gpus < 0 or intent.nics < 0 or total == 0:
        raise InputError("a claim needs at least one device", remedy="give --gpus, --nics or both")
    if total > MAX_RESULTS_PER_CLAIM:
        raise InputError(f"{total} devices in one claim", remedy=f"a claim holds at most {MAX_RESULTS_PER_CLAIM}")
    if not is_dns_subdomain(intent.template_name, limit=240):
        raise InputError(
            f"{intent.name[:80]!r} is no name for a template",
            remedy="Kubernetes takes lower-case letters, digits, dashes and dots",
        )
    if intent.fabric and not intent.nics:
        raise InputError("a fabric is a property of NICs, and none is asked for", remedy="ask for --nics")
    if intent.align is Align.PAIR and not (intent.gpus and intent.nics):
        raise InputError("a pair is a GPU and its NICs", remedy="ask for both, or use --align numa")


def _narrow(intent: Intent, published: Published) -> Published:
    """The nodes that have what the claim is about at all."""
    nodes = [node for node in published.nodes if (node.gpus or not intent.gpus) and (node.nics or not intent.nics)]
    if not nodes:
        missing = "GPUs" if intent.gpus and not published.gpus else "RDMA NICs" if not published.nics else "both"
        raise InputError(f"no node publishes {missing}", remedy="look at the slices: is the driver running?")
    if intent.fabric:
        nodes = [node for node in nodes if any(nic.value(PLACEMENT_GROUP) == intent.fabric for nic in node.nics)]
        if not nodes:
            raise _unknown_fabric(intent.fabric, published)
    offered = Published(tuple(nodes), published.vendor)
    most = max(nodes, key=lambda node: (min(len(node.gpus), intent.gpus), min(len(node.nics), intent.nics)))
    if len(most.gpus) < intent.gpus or len(most.nics) < intent.nics:
        raise InputError(
            f"no node has {count(intent.gpus, 'GPU')} and {count(intent.nics, 'RDMA NIC')}",
            remedy=f"a node has at most {count(len(most.gpus), 'GPU')} and {count(len(most.nics), 'RDMA NIC')}",
        )
    return offered


def _unknown_fabric(fabric: str, published: Published) -> InputError:
    known = sorted({str(value) for nic in published.nics if (value := nic.value(PLACEMENT_GROUP)) is not None})
    shown = ", ".join(known[:4]) + (f" and {len(known) - 4} more" if len(known) > 4 else "")
    return InputError(
        f"no NIC is published with placement group {fabric!r}",
        remedy=f"published: {shown}" if known else "these NICs carry no azure.dra.net/placementGroupId at all",
    )


def _gpu_request(intent: Intent, published: Published, number: int, name: str = "gpu") -> DeviceRequest:
    assert intent.gpus
    return request(name, published.gpu_driver, number)


# -- one template ------------------------------------------------------------------------------------------------


def _choose_nothing(intent: Intent, published: Published) -> _Choice:
    requests = [_gpu_request(intent, published, intent.gpus)] if intent.gpus else []
    requests += [nic_request(intent.nics, fabric=intent.fabric)] if intent.nics else []
    reason = "one kind of device" if not (intent.gpus and intent.nics) else "no alignment was asked for"
    return _Choice((template(intent.template_name, requests),), "", (f"One template without a constraint: {reason}.",))


def _one_template(intent: Intent, published: Published, chosen: Judgement) -> ResourceClaimTemplate:
    requests = [_gpu_request(intent, published, intent.gpus)] if intent.gpus else []
    requests.append(nic_request(intent.nics, fabric=intent.fabric))
    constraint = match(chosen.key, *(one.name for one in requests))
    return template(intent.template_name, requests, [constraint])


def _serve_all(intent: Intent, published: Published, chosen: Judgement, refused: list[Judgement]) -> _Choice:
    reasons = [f"{chosen.why}: one template serves every GPU of a node."]
    if not intent.gpus:
        reasons = [f"{chosen.why}: all NICs of the claim come from one value of it."]
    reasons += [f"Not {other.key}: {other.why}." for other in refused]
    return _Choice((_one_template(intent, published, chosen),), chosen.key, tuple(reasons), chosen.warnings)


def _choose_numa(intent: Intent, published: Published, gpu_numa: Mapping[str, int]) -> _Choice:
    keys = [NUMA_NODE, *([AMD_NUMA_NODE] if published.vendor == "amd" else []), PCIE_ROOT]
    refused: list[Judgement] = []
    for key in keys:
        judged = judge(key, published, intent.need)
        if judged.usable:
            return _serve_all(intent, published, judged, refused)
        if judged.short and key != PCIE_ROOT:
            raise _too_many(intent, judged.why)
        refused.append(judged)
    if intent.gpus == 1 and published.vendor == "nvidia":
        paired = _judge_pairs(intent, published)
        if paired.usable:
            return _serve_all(intent, published, paired, refused)
        refused.append(paired)
    templates, how, warnings = per_numa_templates(intent, published, gpu_numa)
    reasons = (
        f"One template for each NUMA node, because no attribute can hold GPU and NIC together. {how}",
        *(f"Not {other.key}: {other.why}." for other in refused),
        "Pods have to be spread over these templates by hand: one whose devices are taken does not use another's.",
    )
    return _Choice(templates, "", reasons, warnings)


def _too_many(intent: Intent, why: str) -> InputError:
    wanted = " and ".join(
        count(number, noun) for number, noun in ((intent.gpus, "GPU"), (intent.nics, "NIC")) if number
    )
    return InputError(
        f"{wanted} on one NUMA node: {why}",
        remedy="ask for fewer, or give up alignment for this claim with --align none",
    )


def _choose_root(intent: Intent, published: Published) -> _Choice:
    judged = judge(PCIE_ROOT, published, intent.need)
    if not judged.usable:
        raise InputError(f"cannot align by PCIe root: {judged.why}", remedy="use --align numa, or --align pair")
    return _serve_all(intent, published, judged, [])


# -- pairs -------------------------------------------------------------------------------------------------------


def _judge_pairs(intent: Intent, published: Published) -> Judgement:
    each = Need(1, intent.nics // intent.gpus)
    return judge(NVIDIA_UUID, published, each)


def _choose_pairs(intent: Intent, published: Published) -> _Choice:
    """Each GPU with the NICs that belong to it alone; several GPUs are as many request pairs and constraints."""
    if intent.nics % intent.gpus:
        raise InputError(
            f"{count(intent.nics, 'NIC')} cannot be shared out evenly among {count(intent.gpus, 'GPU')}",
            remedy="with --align pair, --nics is a multiple of --gpus",
        )
    if intent.gpus > _MOST_PAIRS:
        raise InputError(f"{intent.gpus} pairs in one claim", remedy=f"a claim holds at most {_MOST_PAIRS}")
    judged = _judge_pairs(intent, published)
    if not judged.usable:
        raise InputError(
            f"cannot pair each GPU with its own NICs: {judged.why}",
            remedy="pairs need NICs that carry the UUID of their GPU (where the machine has pairs, the NIC driver can"
            " publish it); otherwise use --align numa",
        )
    if intent.gpus == 1:
        return _serve_all(intent, published, judged, [])
    each = intent.nics // intent.gpus
    requests, constraints = [], []
    for index in range(intent.gpus):
        gpu, nic = f"gpu-{index}", f"nic-{index}"
        requests += [request(gpu, published.gpu_driver, 1), nic_request(each, name=nic, fabric=intent.fabric)]
        constraints.append(match(NVIDIA_UUID, gpu, nic))
    reason = f"{judged.why}, the NICs that of the one GPU they belong to: one template, a constraint for each GPU."
    chosen = template(intent.template_name, requests, constraints)
    return _Choice((chosen,), NVIDIA_UUID, (reason,), judged.warnings)


__all__ = ["Align", "Claims", "Intent", "Vendor", "write_claims"]
