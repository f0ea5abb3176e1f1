"""One template for node pools of two vendors: whichever GPU a node has, with a NIC near it.

The GPU request has an alternative for each vendor (`firstAvailable`), and each alternative its own constraint with the
NICs, on the attribute that this vendor's driver shares with them. One rule of the allocator decides whether that can
be: a constraint whose alternative was not taken still binds the NICs, so every NIC of either pool has to carry both
attributes, and enough of them alike. Where that is not so, there is a template for each vendor, and the reason is said.
The allocator has the last word: one template is offered only if it is worth as many pods as the vendor's own.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from fishplate.dra.intent import Claims, Intent, write_claims
from fishplate.dra.intent_attributes import NVIDIA_UUID, Need, judge
from fishplate.dra.intent_classes import GPU_DRIVERS, Vendor
from fishplate.dra.intent_proof import describe_worth, pods_per_node
from fishplate.dra.intent_published import OfferedNode, Published, read_published
from fishplate.dra.intent_templates import PLACEMENT_GROUP, either_request, match, nic_request, template
from fishplate.dra.profile import Profile
from fishplate.errors import InputError
from fishplate.k8s.claim import DeviceConstraint, ResourceClaimTemplate
from fishplate.k8s.resource import ResourceSlice

Places = Mapping[Vendor, Mapping[str, int]]


class _Pool(NamedTuple):
    """The nodes with GPUs of one vendor, and the claims that serve them alone."""

    published: Published
    claims: Claims


def write_for_vendors(
    intent: Intent,
    slices: Sequence[ResourceSlice],
    vendors: Sequence[Vendor],
    *,
    gpu_numa: Places,
    profile: Profile,
) -> Claims:
    """Claims for GPUs of these vendors. InputError if one of them cannot be served as asked."""
    wanted = _wanted(intent, slices, vendors)
    if len(wanted) < 2:
        vendor = next(iter(wanted), None)
        published = read_published(slices, vendor=vendor) if vendor else read_published(_without_gpus(slices))
        claims = write_claims(intent, published, gpu_numa=gpu_numa.get(vendor, {}) if vendor else {})
        return _with_worth(claims, published, slices, profile)
    pools = {vendor: _write_pool(intent, vendor, slices, gpu_numa) for vendor in wanted}
    together, why_not = _combine(intent, pools)
    if together is not None:
        why_not = _prove(together, pools, slices, profile)
        if not why_not:
            return together._replace(reasons=(*together.reasons, _worth(together, pools, slices, profile)))
    return _apart(pools, why_not, slices, profile)


def _wanted(intent: Intent, slices: Sequence[ResourceSlice], vendors: Sequence[Vendor]) -> Sequence[Vendor]:
    """Those with a node on the fabric that the claim is pinned to; a claim without GPUs is for NICs of any node."""
    if not intent.gpus or not intent.fabric:
        return vendors if intent.gpus else ()
    return [v for v in vendors if any(_is_on(node, intent.fabric) for node in _own_nodes(slices, v))] or vendors[:1]


def _without_gpus(slices: Sequence[ResourceSlice]) -> list[ResourceSlice]:
    return [one for one in slices if one.spec.driver not in GPU_DRIVERS.values()]


def _is_on(node: OfferedNode, fabric: str) -> bool:
    return any(nic.value(PLACEMENT_GROUP) == fabric for nic in node.nics)


def _own_nodes(slices: Sequence[ResourceSlice], vendor: Vendor) -> tuple[OfferedNode, ...]:
    return tuple(node for node in read_published(slices, vendor=vendor).nodes if node.gpus)


def _write_pool(intent: Intent, vendor: Vendor, slices: Sequence[ResourceSlice], gpu_numa: Places) -> _Pool:
    published = Published(_own_nodes(slices, vendor), vendor)
    own = msgspec.structs.replace(intent, name=f"{intent.template_name}-{vendor}")
    try:
        return _Pool(published, write_claims(own, published, gpu_numa=gpu_numa.get(vendor, {})))
    except InputError as error:
        others = " or ".join(f"--vendor {other}" for other in GPU_DRIVERS if other != vendor)
        raise InputError(
            f"{vendor}: {error.what}", remedy=f"{error.remedy}; or leave these nodes out: {others}"
        ) from error


# -- one for all -------------------------------------------------------------------------------------------------


def _combine(intent: Intent, pools: Mapping[Vendor, _Pool]) -> tuple[Claims | None, str]:
    """One template, or why there can be none."""
    for vendor, pool in pools.items():
        if len(pool.claims.templates) > 1:
            why = (
                f"on {vendor} nodes GPU and NIC are picked by place, and a NIC's selector cannot follow the alternative"
            )
            return None, why
        if pool.claims.attribute == NVIDIA_UUID:
            return None, f"{NVIDIA_UUID} is different on every NIC, so it would let {vendor} alone through"
    for vendor, pool in pools.items():
        for other, foreign in pools.items():
            judged = judge(pool.claims.attribute, foreign.published, Need(0, intent.nics))
            if vendor != other and pool.claims.attribute and intent.nics and not judged.usable:
                why = f"the constraint of {vendor} binds the NICs of {other} nodes too, and there {judged.why}"
                return None, why
    classes = {one.metadata.name: one for pool in pools.values() for one in pool.claims.classes}
    reasons = [
        f"One template serves the GPUs of {' and '.join(pools)}: the first alternative that a node has is taken.",
        *(f"{vendor}: {reason}" for vendor, pool in pools.items() for reason in pool.claims.reasons[:1]),
    ]
    warnings = tuple(f"{vendor}: {one}" for vendor, pool in pools.items() for one in pool.claims.warnings)
    attribute = " and ".join(dict.fromkeys(pool.claims.attribute for pool in pools.values() if pool.claims.attribute))
    written = (_template(intent, pools),)
    return Claims(tuple(classes.values()), written, attribute, tuple(reasons), warnings), ""


def _template(intent: Intent, pools: Mapping[Vendor, _Pool]) -> ResourceClaimTemplate:
    requests = [either_request("gpu", {vendor: GPU_DRIVERS[vendor] for vendor in pools}, intent.gpus)]
    if intent.nics:
        requests.append(nic_request(intent.nics, fabric=intent.fabric))
    return template(intent.template_name, requests, _constraints(pools))


def _constraints(pools: Mapping[Vendor, _Pool]) -> list[DeviceConstraint]:
    keys = {vendor: pool.claims.attribute for vendor, pool in pools.items() if pool.claims.attribute}
    if len(set(keys.values())) == 1 and len(keys) == len(pools):
        return [match(next(iter(keys.values())), "gpu", "nic")]
    return [match(key, f"gpu/{vendor}", "nic") for vendor, key in keys.items()]


def _prove(together: Claims, pools: Mapping[Vendor, _Pool], slices: Sequence[ResourceSlice], profile: Profile) -> str:
    """Why not, where the allocator makes less of the one template than of a vendor's own."""
    for vendor, pool in pools.items():
        (mine,) = pods_per_node(together, pool.published, slices, profile).values()
        (own,) = pods_per_node(pool.claims, pool.published, slices, profile).values()
        if mine.pods < own.pods:
            return f"the allocator places {mine.pods} pods of it on a {vendor} node, and {own.pods} of its own template"
    return ""


def _worth(together: Claims, pools: Mapping[Vendor, _Pool], slices: Sequence[ResourceSlice], profile: Profile) -> str:
    parts = []
    for vendor, pool in pools.items():
        (each,) = pods_per_node(together, pool.published, slices, profile).values()
        parts.append(f"{each.pods} with {vendor} GPUs")
    return f"An empty node takes so many such pods: {', '.join(parts)}."


# -- one for each ------------------------------------------------------------------------------------------------


def _apart(pools: Mapping[Vendor, _Pool], why_not: str, slices: Sequence[ResourceSlice], profile: Profile) -> Claims:
    each = {vendor: _with_worth(pool.claims, pool.published, slices, profile) for vendor, pool in pools.items()}
    classes = {one.metadata.name: one for claims in each.values() for one in claims.classes}
    return Claims(
        tuple(classes.values()),
        tuple(one for claims in each.values() for one in claims.templates),
        "",
        (
            f"A template for each vendor, because one cannot serve both: {why_not}.",
            *(f"{vendor}: {reason}" for vendor, claims in each.items() for reason in claims.reasons),
        ),
        tuple(f"{vendor}: {one}" for vendor, claims in each.items() for one in claims.warnings),
    )


def _with_worth(claims: Claims, published: Published, slices: Sequence[ResourceSlice], profile: Profile) -> Claims:
    worth = describe_worth(pods_per_node(claims, published, slices, profile))
    return claims._replace(reasons=(*claims.reasons, worth))
