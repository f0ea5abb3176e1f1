"""Rules about how a pod uses its claims: what the API server takes and nobody meant."""

import difflib
from collections.abc import Iterator

from fishplate.dra.device_plugins import Hardware
from fishplate.dra.lint_pod_subject import PodSubject, plugin_resources
from fishplate.dra.lint_subject import Hit
from fishplate.findings import Verdict
from fishplate.k8s.pod import PodResourceClaim

_KINDS: tuple[Hardware, ...] = ("gpu", "nic")
_WORDS = {"gpu": "GPUs", "nic": "NICs"}


def find_shapeless_claims(subject: PodSubject) -> Iterator[Hit]:
    for index, one in enumerate(subject.spec.resource_claims):
        if (one.resource_claim_name is None) == (one.resource_claim_template_name is None):
            said = "neither" if one.resource_claim_name is None else "both"
            path = ("resourceClaims", index)
            yield Hit(path, f"claim {one.name} has {said} of resourceClaimName and resourceClaimTemplateName")


def find_unknown_claims(subject: PodSubject) -> Iterator[Hit]:
    for index, one in enumerate(subject.spec.resource_claims):
        if one.resource_claim_name is None and one.resource_claim_template_name is None:
            continue
        if subject.around.find(one) is None:
            yield _unknown(subject, index, one)


def _unknown(subject: PodSubject, index: int, one: PodResourceClaim) -> Hit:
    """It may be in the cluster; a name that looks like one of the files is a slip."""
    by_name = one.resource_claim_name is not None
    name = one.resource_claim_name or one.resource_claim_template_name or ""
    kind = "ResourceClaim" if by_name else "ResourceClaimTemplate"
    known, others = subject.around.claims, subject.around.templates
    if not by_name:
        known, others = others, known
    path = ("resourceClaims", index, "resourceClaimName" if by_name else "resourceClaimTemplateName")
    said = f"there is no {kind} {name!r} in these files"
    if name in others:
        field = "resourceClaimTemplateName" if by_name else "resourceClaimName"
        return Hit(path, f"{said}, but one of the other kind", remedy=f"write {field}: {name}")
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return Hit(path, said, remedy=f"did you mean {near[0]}?")
    return Hit(path, said, verdict=Verdict.CANNOT_TELL)


def find_undeclared_claims(subject: PodSubject) -> Iterator[Hit]:
    declared = {one.name for one in subject.spec.resource_claims}
    for path, container in subject.containers:
        for index, use in enumerate(container.resources.claims):
            if use.name not in declared:
                said = f"container {container.name} uses claim {use.name!r}, which the pod does not declare"
                evidence = f"resourceClaims: {', '.join(sorted(declared)) or 'none'}"
                yield Hit((*path, "resources", "claims", index, "name"), said, evidence=evidence)


def find_unknown_requests(subject: PodSubject) -> Iterator[Hit]:
    known = {one.name: subject.around.find(one) for one in subject.spec.resource_claims}
    for path, container in subject.containers:
        for index, use in enumerate(container.resources.claims):
            found = known.get(use.name)
            names = {request.name for request in found.devices.requests} if found else set()
            if found is None or not use.request or use.request in names:
                continue
            remedy = ""
            if use.request.partition("/")[0] in names:
                remedy = f"a pod names the request and not its alternative: {use.request.partition('/')[0]}"
            said = f"container {container.name} uses request {use.request!r}, which claim {use.name} does not have"
            place = (*path, "resources", "claims", index, "request")
            yield Hit(place, said, evidence=f"requests: {', '.join(sorted(names))}", remedy=remedy)


def find_unused_claims(subject: PodSubject) -> Iterator[Hit]:
    """Devices that are allocated, and reach no container."""
    uses = {(use.name, use.request) for _, container in subject.containers for use in container.resources.claims}
    for index, one in enumerate(subject.spec.resource_claims):
        own = {request for name, request in uses if name == one.name}
        if not own:
            yield Hit(("resourceClaims", index), f"no container uses claim {one.name}: its devices are held for nobody")
            continue
        found = subject.around.find(one)
        if found is None or "" in own:
            continue
        for request in found.devices.requests:
            if request.name not in own:
                said = f"no container uses request {request.name} of claim {one.name}: its devices are held for nobody"
                yield Hit(("resourceClaims", index), said)


def find_one_claim_for_all(subject: PodSubject) -> Iterator[Hit]:
    for index, one in enumerate(subject.spec.resource_claims):
        if one.resource_claim_name is not None and subject.copies > 1:
            said = f"all pods of {subject.name} share the one claim {one.resource_claim_name}, and so one node"
            yield Hit(("resourceClaims", index, "resourceClaimName"), said)


def find_split_claims(subject: PodSubject) -> Iterator[Hit]:
    """A constraint reaches as far as its claim."""
    by_claim: dict[str, set[Hardware]] = {}
    for one in subject.asked:
        by_claim.setdefault(one.claim, set()).add(one.hardware)
    gpus = [name for name, kinds in by_claim.items() if kinds == {"gpu"}]
    nics = [name for name, kinds in by_claim.items() if kinds == {"nic"}]
    if gpus and nics:
        said = f"GPUs come from claim {gpus[0]} and NICs from claim {nics[0]}: nothing lines them up"
        yield Hit(("resourceClaims",), said, verdict=Verdict.CANNOT_TELL)


def find_idle_launcher(subject: PodSubject) -> Iterator[Hit]:
    if subject.idle_launcher and subject.spec.resource_claims:
        said = "the launcher only starts the workers, and holds devices meanwhile"
        yield Hit(("resourceClaims",), said, verdict=Verdict.CANNOT_TELL)


# -- device plugins ----------------------------------------------------------------------------------------------


def find_plugin_mix(subject: PodSubject) -> Iterator[Hit]:
    """Claims and a device plugin for one kind of hardware."""
    for kind in _KINDS:
        if not subject.has(kind):
            continue
        for path, container in subject.containers:
            for resource, _ in plugin_resources(container, kind):
                if not subject.around.serves(resource):
                    said = (
                        f"container {container.name} asks for {resource}, and the pod's claims for {_WORDS[kind]} too"
                    )
                    yield Hit((*path, "resources"), said)


def find_plugin_gpus(subject: PodSubject) -> Iterator[Hit]:
    """Which GPUs a plugin hands out has nothing to do with which NICs the scheduler chose."""
    if not subject.has("nic") or subject.has("gpu"):
        return
    for path, container in subject.containers:
        for resource, number in plugin_resources(container, "gpu"):
            if not subject.around.serves(resource):
                said = f"container {container.name} gets {number} of {resource} from a plugin and NICs from a claim"
                place = (*path, "resources")
                yield Hit(place, f"{said}: nothing lines them up", verdict=Verdict.CANNOT_TELL)
