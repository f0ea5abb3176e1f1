"""The claim linter: every known trap, one rule each.

Kubernetes accepts most wrong claims. They fail later and silently: the pod waits for ever, or runs on a NIC of the
wrong NUMA node at half the speed. A rule says what it found, where, on what evidence and what to write instead. What a
rule cannot know (nothing is published, the GPU's place is nowhere written) it calls `cannot-tell`, never good.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from fishplate.dra import lint_devices, lint_form, lint_selectors
from fishplate.dra.lint_subject import Hit, Setting, Subject
from fishplate.findings import Finding


class Rule(NamedTuple):
    """What must be so, what to do where it is not, and the function that looks."""

    id: str
    sentence: str
    remedy: str
    find: Callable[[Subject, Setting], Iterator[Hit]]


RULES = (
    Rule(
        "claim-cel-compile",
        "Every selector compiles.",
        "correct the expression; `fishplate cel` tries it",
        lint_form.find_compile_errors,
    ),
    Rule(
        "claim-cel-cost",
        "Every selector is within the API server's limits of length and cost.",
        "compare fewer things, avoid loops over all attributes",
        lint_form.find_costly_selectors,
    ),
    Rule(
        "claim-request-form",
        "Every request has either `exactly` or `firstAvailable`.",
        "keep one of them",
        lint_form.find_shapeless_requests,
    ),
    Rule(
        "claim-constraint-form",
        "Every constraint has either matchAttribute or distinctAttribute.",
        "make two constraints of it, or take one name away",
        lint_form.find_double_constraints,
    ),
    Rule(
        "claim-unknown-request",
        "Constraints and configuration name requests that exist.",
        "use the name of a request, or request/alternative",
        lint_form.find_unknown_requests,
    ),
    Rule(
        "claim-limits",
        "A claim stays within the API's limits.",
        "split it into several claims of the same pod; constraints do not reach across them",
        lint_form.find_excess,
    ),
    Rule(
        "claim-parameters",
        "Parameters for the NIC driver are such that it accepts them.",
        "docs/metadata.md lists the fields",
        lint_form.find_bad_parameters,
    ),
    Rule(
        "claim-unknown-class",
        "Every DeviceClass exists.",
        "apply the DeviceClass, or lint it together with the claim",
        lint_form.find_unknown_classes,
    ),
    Rule(
        "claim-unknown-attribute",
        "Selectors and constraints name attributes that some device publishes.",
        "`fishplate inspect -o slice` shows the names",
        lint_selectors.find_unknown_attributes,
    ),
    Rule(
        "claim-selector-error",
        "No selector fails on a device of its class: the scheduler gives up on the pod when one does.",
        'guard it: device.attributes["domain"].?name.orValue("") == …, or has(device.attributes["domain"].name) && …',
        lint_selectors.find_missing_keys,
    ),
    Rule(
        "claim-wrong-type",
        "Attributes are compared with values of their own type.",
        "write the value as the attribute's type",
        lint_selectors.find_wrong_types,
    ),
    Rule(
        "claim-device-name",
        "No selector names a device by the order in which the kernel found it.",
        "select by dra.net/pciAddress, dra.net/rail or NUMA node: with accelerated networking mlx5_0 is another NIC",
        lint_selectors.find_device_names,
    ),
    Rule(
        "claim-no-device",
        "Every request finds a published device.",
        "relax the part that no device meets",
        lint_selectors.find_empty_requests,
    ),
    Rule(
        "claim-azure-pcie-root",
        "No constraint matches PCIe roots on Azure.",
        "match resource.kubernetes.io/numaNode; every device has a PCI domain, and so a root, of its own there",
        lint_devices.find_roots_on_azure,
    ),
    Rule(
        "claim-no-node",
        "Some node can take the claim.",
        "`fishplate claim new` writes one that fits; lower the counts, or drop a constraint",
        lint_devices.find_unfit,
    ),
    Rule(
        "claim-device-plugin",
        "No node hands out claimed hardware through a device plugin as well.",
        "turn the plugin off on nodes with a DRA driver: the two may hand out one device twice",
        lint_devices.find_plugin_nodes,
    ),
    Rule(
        "claim-misaligned",
        "GPUs and NICs of one claim sit on the same NUMA node.",
        "`fishplate claim new --align numa` writes a constraint that keeps them together",
        lint_devices.find_misaligned,
    ),
)


def lint_claim(subject: Subject, setting: Setting, rules: Iterable[Rule] = RULES) -> list[Finding]:
    """Everything found in one claim, in the order of the rules."""
    return [
        hit.as_finding(rule.id, subject.where(hit.path), rule.remedy)
        for rule in rules
        for hit in rule.find(subject, setting)
    ]
