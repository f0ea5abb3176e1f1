"""Objects that make pods: what pods, how many of each, and where in the object they are described."""

from typing import Literal, NamedTuple, TypeAlias

import msgspec

from fishplate.documents import Path
from fishplate.k8s.pod import Pod, PodSpec
from fishplate.k8s.resource import ObjectMeta


class PodTemplate(msgspec.Struct, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()


class ReplicatedSpec(msgspec.Struct, frozen=True, kw_only=True):
    template: PodTemplate
    replicas: int = 1


class _Apps(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: Literal["apps/v1"] = "apps/v1"
    metadata: ObjectMeta
    spec: ReplicatedSpec


class Deployment(_Apps, frozen=True, kw_only=True):
    kind: Literal["Deployment"] = "Deployment"


class StatefulSet(_Apps, frozen=True, kw_only=True):
    kind: Literal["StatefulSet"] = "StatefulSet"


class DaemonSet(_Apps, frozen=True, kw_only=True):
    """A pod on each node: as many as there are, so more than one."""

    kind: Literal["DaemonSet"] = "DaemonSet"


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    template: PodTemplate
    parallelism: int = 1


class Job(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: Literal["batch/v1"] = "batch/v1"
    kind: Literal["Job"] = "Job"
    metadata: ObjectMeta
    spec: JobSpec


class JobTemplate(msgspec.Struct, frozen=True, kw_only=True):
    spec: JobSpec


class CronJobSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    job_template: JobTemplate


class CronJob(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: Literal["batch/v1"] = "batch/v1"
    kind: Literal["CronJob"] = "CronJob"
    metadata: ObjectMeta
    spec: CronJobSpec


class MPIJobSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    mpi_replica_specs: dict[str, ReplicatedSpec] = {}
    run_launcher_as_worker: bool = False


class MPIJob(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Kubeflow's; its roles are Launcher and Worker."""

    api_version: Literal["kubeflow.org/v2beta1"] = "kubeflow.org/v2beta1"
    kind: Literal["MPIJob"] = "MPIJob"
    metadata: ObjectMeta
    spec: MPIJobSpec


Workload: TypeAlias = Deployment | StatefulSet | DaemonSet | Job | CronJob | MPIJob
WORKLOADS: dict[str, type[msgspec.Struct]] = {
    kind.__name__: kind for kind in (Deployment, StatefulSet, DaemonSet, Job, CronJob, MPIJob)
}


class PodUse(NamedTuple):
    """A pod that an object makes, `copies` times; `path` leads to its spec. `idle_launcher` is an MPI launcher that
    does no work itself."""

    name: str
    spec: PodSpec
    path: Path
    copies: int
    idle_launcher: bool = False


def find_pods(value: object) -> tuple[PodUse, ...]:
    """The pods of a Pod or of an object that makes some; nothing for any other object."""
    match value:
        case Pod():
            return (PodUse(f"Pod {value.metadata.name}", value.spec, ("spec",), 1),)
        case Deployment() | StatefulSet() | DaemonSet():
            copies = 2 if isinstance(value, DaemonSet) else value.spec.replicas
            return (PodUse(_name(value), value.spec.template.spec, ("spec", "template", "spec"), copies),)
        case Job():
            path: Path = ("spec", "template", "spec")
            return (PodUse(_name(value), value.spec.template.spec, path, value.spec.parallelism),)
        case CronJob():
            job = value.spec.job_template.spec
            path = ("spec", "jobTemplate", "spec", "template", "spec")
            return (PodUse(_name(value), job.template.spec, path, job.parallelism),)
        case MPIJob():
            return tuple(
                PodUse(
                    f"{_name(value)} {role}",
                    replica.template.spec,
                    ("spec", "mpiReplicaSpecs", role, "template", "spec"),
                    replica.replicas,
                    role == "Launcher" and not value.spec.run_launcher_as_worker,
                )
                for role, replica in value.spec.mpi_replica_specs.items()
            )
    return ()


def _name(value: Workload) -> str:
    return f"{value.kind} {value.metadata.name}"
