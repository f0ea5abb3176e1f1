"""The pod linter: how pods use claims, and what RDMA needs of them. One rule for each trap.

A wrong pod runs, and that is the trouble: on TCP, on somebody else's NIC, or until it registers its first large buffer.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from fishplate.dra import lint_pod_claims, lint_pod_host
from fishplate.dra.lint_pod_subject import PodSubject
from fishplate.dra.lint_subject import Hit
from fishplate.findings import Finding


class PodRule(NamedTuple):
    """What must be so, what to do where it is not, and the function that looks."""

    id: str
    sentence: str
    remedy: str
    find: Callable[[PodSubject], Iterator[Hit]]


POD_RULES = (
    PodRule(
        "pod-claim-form",
        "Every claim of a pod names either a ResourceClaim or a ResourceClaimTemplate.",
        "keep one of them",
        lint_pod_claims.find_shapeless_claims,
    ),
    PodRule(
        "pod-unknown-claim",
        "The claims and templates that a pod names exist.",
        "give the file that holds it as well; if it is in the cluster already, all is well",
        lint_pod_claims.find_unknown_claims,
    ),
    PodRule(
        "pod-undeclared-claim",
        "Containers use claims that the pod declares.",
        "add it to the pod's resourceClaims, or correct the name",
        lint_pod_claims.find_undeclared_claims,
    ),
    PodRule(
        "pod-unknown-request",
        "Containers use requests that the claim has.",
        "use the name of a request, or leave `request` out to get all of the claim",
        lint_pod_claims.find_unknown_requests,
    ),
    PodRule(
        "pod-unused-claim",
        "Some container uses each claim, and each request of it.",
        "add it to the resources.claims of the container that shall have the devices",
        lint_pod_claims.find_unused_claims,
    ),
    PodRule(
        "pod-one-claim",
        "Pods of one object have claims of their own.",
        "write a ResourceClaimTemplate and name it with resourceClaimTemplateName",
        lint_pod_claims.find_one_claim_for_all,
    ),
    PodRule(
        "pod-split-claims",
        "GPUs and NICs that shall be near each other are in one claim.",
        "put both requests into one claim: a constraint does not reach beyond it",
        lint_pod_claims.find_split_claims,
    ),
    PodRule(
        "pod-idle-launcher",
        "An MPI launcher that does no work claims no devices.",
        "move the claim to the workers, or set runLauncherAsWorker",
        lint_pod_claims.find_idle_launcher,
    ),
    PodRule(
        "pod-plugin-mix",
        "One kind of hardware comes from claims or from a device plugin, never from both.",
        "drop the extended resource: plugin and driver know nothing of each other and may hand out one device twice",
        lint_pod_claims.find_plugin_mix,
    ),
    PodRule(
        "pod-plugin-gpu",
        "GPUs that shall be near claimed NICs are claimed too.",
        "claim the GPUs as well; with a plugin only a pod that takes the whole node is aligned",
        lint_pod_claims.find_plugin_gpus,
    ),
    PodRule(
        "pod-host-network",
        "Pods that claim NICs have a network of their own.",
        "drop hostNetwork",
        lint_pod_host.find_host_network,
    ),
    PodRule(
        "pod-memlock",
        "Containers that use RDMA may lock memory.",
        "add securityContext.capabilities.add: [IPC_LOCK]; check `ulimit -l` in the sessions that mpirun opens",
        lint_pod_host.find_locked_memory,
    ),
    PodRule(
        "pod-privileged",
        "Containers with claims are not privileged.",
        "drop privileged; IPC_LOCK is all that RDMA needs",
        lint_pod_host.find_privileged,
    ),
    PodRule(
        "pod-host-device",
        "No pod mounts the host's RDMA devices.",
        "drop the volume and claim the NICs: the driver brings the devices of the claim, and those alone",
        lint_pod_host.find_host_devices,
    ),
    PodRule(
        "pod-shared-memory",
        "Containers with several GPUs have shared memory to speak through.",
        "mount an emptyDir with medium: Memory at /dev/shm",
        lint_pod_host.find_shared_memory,
    ),
)


def lint_pod(subject: PodSubject, rules: Iterable[PodRule] = POD_RULES) -> list[Finding]:
    """Everything found in one pod, in the order of the rules."""
    return [
        hit.as_finding(rule.id, subject.where(hit.path), rule.remedy) for rule in rules for hit in rule.find(subject)
    ]
