"""Each rule of the pod linter finds its trap, and a good pod has none."""

from typing import Any

import msgspec
import pytest
import yaml

from fishplate.dra.intent_classes import device_classes
from fishplate.dra.lint_pod_subject import Around, PodSubject
from fishplate.dra.lint_pods import POD_RULES, lint_pod
from fishplate.findings import Finding, Verdict
from fishplate.k8s.claim import DeviceClass, ResourceClaimSpec
from fishplate.k8s.pod import Pod, PodSpec
from fishplate.k8s.workloads import MPIJob, PodUse, find_pods


def spec_of(*requests: tuple[str, str, int]) -> ResourceClaimSpec:
    written = [
        {"name": name, "exactly": {"deviceClassName": class_name, "count": count}}
        for name, class_name, count in requests
    ]
    return msgspec.convert({"devices": {"requests": written}}, ResourceClaimSpec)


EITHER = msgspec.convert(
    {
        "devices": {
            "requests": [
                {
                    "name": "gpu",
                    "firstAvailable": [
                        {"name": "nvidia", "deviceClassName": "gpu.nvidia.com"},
                        {"name": "amd", "deviceClassName": "gpu.amd.com"},
                    ],
                },
                {"name": "nic", "exactly": {"deviceClassName": "dranet.net"}},
            ]
        }
    },
    ResourceClaimSpec,
)
TEMPLATES = {
    "pair": spec_of(("gpu", "gpu.nvidia.com", 1), ("nic", "dranet.net", 1)),
    "two": spec_of(("gpu", "gpu.amd.com", 2), ("nic", "dranet.net", 2)),
    "nics": spec_of(("nic", "dranet.net", 8)),
    "gpus": spec_of(("gpu", "gpu.nvidia.com", 4)),
    "either": EITHER,
}
CLASSES: dict[str, DeviceClass] = {one.metadata.name: one for one in device_classes()}
AROUND = Around({"shared": TEMPLATES["pair"]}, TEMPLATES, CLASSES)
SHM = {"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}


def container(*claims: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """A container as it should be, using these claims (`claim` or `claim.request`)."""
    uses = [{"name": one.split(".")[0], "request": one.partition(".")[2]} for one in claims]
    return {
        "name": "main",
        "resources": {"claims": uses, **fields.pop("resources", {})},
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
        **fields,
    }


def pod(template: str, *containers: dict[str, Any], **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    claims = [{"name": "c", "resourceClaimTemplateName": template}] if template else []
    return {"resourceClaims": claims, "containers": list(containers or (container("c"),)), **SHM, **fields}


def lint(spec: dict[str, Any], *, copies: int = 1, launcher: bool = False, around: Around = AROUND) -> list[Finding]:
    read = msgspec.convert(spec, PodSpec)
    use = PodUse("Pod p", read, ("spec",), copies, launcher)
    return lint_pod(PodSubject(use, around, lambda path: ".".join(map(str, path))))


GOOD = {
    "pair": pod("pair"),
    "two": pod("two"),
    "each container its request": pod("pair", container("c.gpu"), container("c.nic")),
    "alternatives": pod("either", container("c.gpu", "c.nic")),
    "an init container": pod("pair", initContainers=[container("c")]),
    "no devices, hostNetwork, privileged": pod(
        "", {"name": "main", "securityContext": {"privileged": True}}, hostNetwork=True
    ),
    "one GPU, NCCL told not to use shared memory": pod(
        "pair", container("c", volumeMounts=[], env=[{"name": "NCCL_SHM_DISABLE", "value": "1"}])
    ),
    "GPUs of a plugin without NICs": pod("", container(resources={"limits": {"nvidia.com/gpu": 8}})),
    "the host's shared memory": pod("two", volumes=[{"name": "shm", "hostPath": {"path": "/dev/shm"}}]),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_pod_has_nothing_found(name: str) -> None:
    assert lint(GOOD[name]) == []


TRAPS: dict[str, list[tuple[dict[str, Any], dict[str, Any], str]]] = {
    "pod-claim-form": [
        (pod("", container("c"), resourceClaims=[{"name": "c"}]), {}, "resourceClaims.0"),
        (
            pod(
                "",
                container("c"),
                resourceClaims=[{"name": "c", "resourceClaimName": "shared", "resourceClaimTemplateName": "pair"}],
            ),
            {},
            "resourceClaims.0",
        ),
    ],
    "pod-unknown-claim": [(pod("nowhere"), {}, "resourceClaims.0.resourceClaimTemplateName")],
    "pod-undeclared-claim": [
        (pod("pair", container("c", "d")), {}, "containers.0.resources.claims.1.name"),
        (pod("pair", initContainers=[container("d")]), {}, "initContainers.0.resources.claims.0.name"),
    ],
    "pod-unknown-request": [
        (pod("pair", container("c", "c.nics")), {}, "containers.0.resources.claims.1.request"),
        (pod("either", container("c", "c.gpu/nvidia")), {}, "containers.0.resources.claims.1.request"),
    ],
    "pod-unused-claim": [
        (pod("pair", container()), {}, "resourceClaims.0"),
        (pod("pair", container("c.gpu")), {}, "resourceClaims.0"),
    ],
    "pod-one-claim": [
        (
            pod("", container("c"), resourceClaims=[{"name": "c", "resourceClaimName": "shared"}]),
            {"copies": 2},
            "resourceClaims.0.resourceClaimName",
        )
    ],
    "pod-split-claims": [
        (
            pod(
                "",
                container("a", "b"),
                resourceClaims=[
                    {"name": "a", "resourceClaimTemplateName": "gpus"},
                    {"name": "b", "resourceClaimTemplateName": "nics"},
                ],
            ),
            {},
            "resourceClaims",
        )
    ],
    "pod-idle-launcher": [(pod("pair"), {"launcher": True}, "resourceClaims")],
    "pod-plugin-mix": [
        (pod("pair", container("c", resources={"limits": {"nvidia.com/gpu": 1}})), {}, "containers.0.resources"),
        (pod("two", container("c", resources={"requests": {"amd.com/gpu": "2"}})), {}, "containers.0.resources"),
        (pod("nics", container("c", resources={"limits": {"rdma/ib": 1}})), {}, "containers.0.resources"),
        (pod("pair", container("c", resources={"limits": {"nvidia.com/hostdev": 1}})), {}, "containers.0.resources"),
    ],
    "pod-plugin-gpu": [
        (pod("nics", container("c", resources={"limits": {"amd.com/gpu": 8}})), {}, "containers.0.resources")
    ],
    "pod-host-network": [(pod("nics", hostNetwork=True), {}, "hostNetwork")],
    "pod-memlock": [
        (pod("nics", container("c", securityContext={})), {}, "containers.0.securityContext"),
        (
            pod("", container(securityContext={}, resources={"limits": {"rdma/ib": 1}})),
            {},
            "containers.0.securityContext",
        ),
    ],
    "pod-privileged": [
        (
            pod("nics", container("c", securityContext={"privileged": True})),
            {},
            "containers.0.securityContext.privileged",
        )
    ],
    "pod-host-device": [
        (pod("", container(), volumes=[{"name": "ib", "hostPath": {"path": path}}]), {}, "volumes.0.hostPath")
        for path in ("/dev/infiniband", "/dev/infiniband/uverbs0", "/dev", "/dev/infiniband/")
    ],
    "pod-shared-memory": [
        (pod("two", container("c", volumeMounts=[])), {}, "containers.0.volumeMounts"),
        (pod("two", volumes=[{"name": "shm", "emptyDir": {}}]), {}, "containers.0.volumeMounts"),
        (
            pod("", container(volumeMounts=[], resources={"limits": {"nvidia.com/gpu": 8}})),
            {},
            "containers.0.volumeMounts",
        ),
    ],
}


@pytest.mark.parametrize(("rule", "trap"), [(rule, trap) for rule, traps in TRAPS.items() for trap in traps])
def test_a_trap_is_found_by_its_rule_and_no_other(rule: str, trap: tuple[dict[str, Any], dict[str, Any], str]) -> None:
    spec, options, place = trap
    findings = lint(spec, **options)
    assert {finding.id for finding in findings} == {rule}
    assert [finding.place for finding in findings] == [place]
    assert all(finding.what and finding.remedy for finding in findings)


def test_every_rule_has_a_trap_in_these_tests() -> None:
    assert [rule.id for rule in POD_RULES] == list(TRAPS)


def find(spec: dict[str, Any], rule: str, **options: Any) -> Finding:  # noqa: ANN401
    (finding,) = (one for one in lint(spec, **options) if one.id == rule)
    return finding


# -- what is bad and what cannot be told -------------------------------------------------------------------------


def test_a_claim_in_none_of_the_files_may_be_in_the_cluster() -> None:
    assert find(pod("elsewhere-entirely"), "pod-unknown-claim").verdict is Verdict.CANNOT_TELL


def test_a_name_that_is_nearly_one_of_the_files_is_a_slip() -> None:
    finding = find(pod("pairs"), "pod-unknown-claim")
    assert (finding.verdict, finding.remedy) == (Verdict.BAD, "did you mean pair?")


def test_a_template_named_as_a_claim_is_told_the_right_field() -> None:
    wrong = pod("", container("c"), resourceClaims=[{"name": "c", "resourceClaimName": "nics"}])
    finding = find(wrong, "pod-unknown-claim")
    assert (finding.verdict, finding.remedy) == (Verdict.BAD, "write resourceClaimTemplateName: nics")


def test_an_alternative_is_not_what_a_pod_names() -> None:
    finding = find(pod("either", container("c", "c.gpu/nvidia")), "pod-unknown-request")
    assert "not its alternative: gpu" in finding.remedy


def test_one_pod_may_have_a_claim_by_name() -> None:
    spec = pod("", container("c"), resourceClaims=[{"name": "c", "resourceClaimName": "shared"}])
    assert lint(spec, copies=1) == []


def test_locking_memory_as_another_user_cannot_be_told() -> None:
    user = {"runAsUser": 1000, "capabilities": {"add": ["IPC_LOCK"]}}
    own = find(pod("nics", container("c", securityContext=user)), "pod-memlock")
    whole = find(pod("nics", securityContext={"runAsNonRoot": True}), "pod-memlock")
    assert {own.verdict, whole.verdict} == {Verdict.CANNOT_TELL}
    root = {"runAsUser": 0, "capabilities": {"add": ["IPC_LOCK"]}}
    assert lint(pod("nics", container("c", securityContext=root), securityContext={"runAsUser": 1000})) == []


def test_only_the_container_that_gets_the_nic_has_to_lock_memory() -> None:
    bare = container("c.gpu", securityContext={})
    assert lint(pod("pair", bare, container("c.nic"))) == []


def test_small_shared_memory_is_bad_for_several_gpus_and_uncertain_for_one() -> None:
    several = find(pod("two", container("c", volumeMounts=[])), "pod-shared-memory")
    one = find(pod("pair", container("c", volumeMounts=[])), "pod-shared-memory")
    assert (several.verdict, one.verdict) == (Verdict.BAD, Verdict.CANNOT_TELL)
    assert "has 2 GPUs and 64 MiB" in several.what


def test_of_two_alternatives_one_gpu_is_given() -> None:
    finding = find(pod("either", container("c", volumeMounts=[])), "pod-shared-memory")
    assert "has 1 GPU and" in finding.what


def test_an_extended_resource_that_a_class_serves_is_no_plugin() -> None:
    served = msgspec.convert(
        {"metadata": {"name": "rdma-nics"}, "spec": {"extendedResourceName": "rdma/ib"}}, DeviceClass
    )
    around = Around({}, TEMPLATES, CLASSES | {"rdma-nics": served})
    spec = pod("nics", container("c", resources={"limits": {"rdma/ib": 1}}))
    assert lint(spec, around=around) == []


# -- where pods are ----------------------------------------------------------------------------------------------

MPI = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: nccl}
spec:
  mpiReplicaSpecs:
    Launcher: {replicas: 1, template: {spec: {containers: [{name: mpi}]}}}
    Worker: {replicas: 4, template: {spec: {containers: [{name: mpi}]}}}
"""


def test_an_mpi_job_has_a_launcher_that_idles_and_workers() -> None:
    launcher, worker = find_pods(msgspec.convert(yaml.safe_load(MPI), MPIJob))
    assert (launcher.idle_launcher, launcher.copies) == (True, 1)
    assert (worker.idle_launcher, worker.copies) == (False, 4)
    assert worker.path == ("spec", "mpiReplicaSpecs", "Worker", "template", "spec")
    working = yaml.safe_load(MPI) | {"spec": yaml.safe_load(MPI)["spec"] | {"runLauncherAsWorker": True}}
    assert not find_pods(msgspec.convert(working, MPIJob))[0].idle_launcher


def test_other_objects_have_no_pods() -> None:
    assert find_pods(CLASSES["dranet.net"]) == ()
    assert len(find_pods(msgspec.convert({"metadata": {"name": "p"}}, Pod))) == 1
