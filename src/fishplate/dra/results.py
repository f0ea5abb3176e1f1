"""From a finished search to what the scheduler writes into status.allocation: devices, configuration, node selector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fishplate.errors import AllocationError
from fishplate.k8s.claim import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from fishplate.k8s.selection import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, pin_to_node

if TYPE_CHECKING:
    from collections.abc import Callable

    from fishplate.dra.profile import Profile
    from fishplate.dra.requests import Prepared, Wanted
    from fishplate.dra.search import Search, Taken
    from fishplate.dra.world import Node
    from fishplate.k8s.resource import QuantityText

FROM_CLASS = "FromClass"
FROM_CLAIM = "FromClaim"


def build_results(search: Search, node: Node, new_share_id: Callable[[], str]) -> tuple[AllocationResult, ...]:
    """One for each claim, in order."""
    results = []
    for index, (prepared, taken) in enumerate(zip(search.claims, search.results, strict=True)):
        chosen = [
            alternatives[search.chosen.get((index, position), 0)]
            for position, alternatives in enumerate(prepared.requests)
        ]
        devices = DeviceAllocationResult(
            results=tuple(_device(each, search.profile, new_share_id) for each in taken),
            config=_configuration(prepared, chosen, search.profile),
        )
        results.append(
            AllocationResult(devices=devices, node_selector=_select_nodes(prepared, taken, node, search.profile))
        )
    return tuple(results)


def _device(taken: Taken, profile: Profile, new_share_id: Callable[[], str]) -> DeviceRequestAllocationResult:
    wanted, candidate = taken.wanted, taken.candidate
    driver, pool, name = candidate.id
    device = candidate.device
    consumed: dict[str, QuantityText] | None = None
    if taken.consumed:
        consumed = {key: str(amount) for key, amount in taken.consumed.items()}
    binding = profile.binding_in_results
    return DeviceRequestAllocationResult(
        request=wanted.full_name,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=True if wanted.admin else None,
        tolerations=wanted.written.tolerations if profile.copies_tolerations else (),
        binding_conditions=(device.binding_conditions or ()) if binding else (),
        binding_failure_conditions=(device.binding_failure_conditions or ()) if binding else (),
        share_id=None if taken.consumed is None else new_share_id(),
        consumed_capacity=consumed,
    )


def _configuration(
    prepared: Prepared, chosen: list[Wanted], profile: Profile
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Each class's once, naming all requests of that class; then the claim's own."""
    users: dict[str, list[Wanted]] = {}
    for wanted in chosen:
        users.setdefault(wanted.device_class.metadata.name, []).append(wanted)
    entries = [
        DeviceAllocationConfiguration(
            source=FROM_CLASS, requests=tuple(wanted.full_name for wanted in same), opaque=config.opaque
        )
        for same in users.values()
        for config in same[0].device_class.spec.config
    ]
    for config in prepared.claim.spec.devices.config:
        entry = DeviceAllocationConfiguration(source=FROM_CLAIM, requests=config.requests, opaque=config.opaque)
        uses = sum(_names(config.requests, wanted) for wanted in chosen) if config.requests else 1
        # Up to 1.36 an entry is repeated for each request that it names.
        entries += [entry] * (min(uses, 1) if profile.tidies_config else uses)
    if profile.tidies_config:
        entries = [
            msgspec.structs.replace(entry, requests=())
            if all(_names(entry.requests, each) for each in chosen)
            else entry
            for entry in entries
        ]
    return tuple(entries)


def _names(requests: tuple[str, ...], wanted: Wanted) -> bool:
    return wanted.base_name in requests or (wanted.parent != "" and wanted.full_name in requests)


def _select_nodes(prepared: Prepared, taken: list[Taken], node: Node, profile: Profile) -> NodeSelector | None:
    """Where the devices can be reached from; None means everywhere."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for each in taken:
        spec, device = each.candidate.slice.spec, each.candidate.device
        place = device if spec.per_device_node_selection else spec
        if place.node_name is not None or (profile.knows_capacity and device.binds_to_node):
            return pin_to_node(node.name)
        terms = place.node_selector.node_selector_terms if place.node_selector is not None else ()
        if len(terms) > 1:
            name = prepared.claim.metadata.name
            text = f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            raise AllocationError(f"create NodeSelector for claim {name}: {text}")
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return NodeSelector(node_selector_terms=(term,))


def _add_new(known: list[NodeSelectorRequirement], more: tuple[NodeSelectorRequirement, ...]) -> None:
    for requirement in more:
        if not any(_same(requirement, other) for other in known):
            known.append(requirement)


def _same(left: NodeSelectorRequirement, right: NodeSelectorRequirement) -> bool:
    return (left.key, left.operator, set(left.values)) == (right.key, right.operator, set(right.values))
