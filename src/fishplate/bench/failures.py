"""Causes that keep a run from doing what it was started for: names, launchers, reachability, memory.

A rule that finds its keyword must still ask what it means here: NCCL prints `NCCL_IB_DISABLE set by environment to 0`,
names its retry count on every run, and speaks of sockets for its bootstrap.
"""

import itertools
from collections.abc import Iterator

from fishplate.bench.case import Case, Named
from fishplate.bench.results import Evidence, Run


def unresolved_hosts(case: Case) -> Iterator[Named]:
    # A launcher that tried again until its workers were there is no trouble.
    if (shown := case.sign("unresolved")) and not case.run.rows:
        yield Named(
            "the launcher could not resolve its workers' names",
            shown,
            "set launcherCreationPolicy: WaitForWorkersReady, so that the workers and their DNS names are there first",
        )


def ranks_alone(case: Case) -> Iterator[Named]:
    alone = [run for run in (case.run, *case.siblings) if len(run.ranks) == 1 and run.ranks[0].rank == 0]
    if case.run in alone and _ran_at_once(alone):
        rank = case.run.ranks[0]
        yield Named(
            f"{len(alone)} processes each ran the test alone, as rank 0 of 1",
            Evidence(line=case.run.line, text=f"Rank 0 Pid {rank.pid} on {rank.host}, and no other rank"),
            "the program was built without MPI=1, or for another MPI than the mpirun that started it",
        )


def _ran_at_once(runs: list[Run]) -> bool:
    """Whether their output overlaps; one after the other, single ranks are nothing to worry about."""
    spans = sorted((run.line, run.rows[-1].line if run.rows else run.line) for run in runs)
    overlap = any(second[0] <= first[1] for first, second in itertools.pairwise(spans))
    return len(runs) > 1 and (overlap or any(not run.complete for run in runs))


def one_node(case: Case) -> Iterator[Named]:
    hosts = case.run.hosts
    if len(hosts) == 1 and len(case.run.ranks) > 1 and (case.context.nodes or 1) > 1:
        yield Named(
            f"all {len(case.run.ranks)} ranks ran on one node, so that nothing went over the network",
            Evidence(line=case.run.line, text=f"every rank is on {hosts[0]}"),
            "pass --hostfile /etc/mpi/hostfile to mpirun: Open MPI 5 ignores the variables that the MPI operator sets",
        )


def infiniband_disabled(case: Case) -> Iterator[Named]:
    found = case.setting("NCCL_IB_DISABLE")
    if found and found[0] not in ("0", "") and case.context.over in ("infiniband", "roce") and case.spans_nodes:
        yield Named("InfiniBand is switched off", found[1], "remove NCCL_IB_DISABLE, or set it to 0")


def tcp_fallback(case: Case) -> Iterator[Named]:
    if case.context.over not in ("infiniband", "roce") or not case.spans_nodes:
        return
    socket, rdma = case.path("NET/Socket"), case.path("NET/IB")
    if socket is not None:
        shown = socket.evidence[0]
    elif rdma is None and not case.run.network.paths and case.run.network.networks == ("Socket",):
        shown = case.run.network.signs["network-Socket"][0]
    else:
        return
    no_device = case.sign("no-device")
    what = "NCCL sends the data over TCP" + (", because it found no RDMA device" if no_device else "")
    remedy = (
        "give the pod RDMA devices: look for /dev/infiniband in it, and at its claim"
        if no_device
        else "see why NET/IB was not taken: the lines before `Using network Socket`, libibverbs in the image, NCCL_NET"
    )
    yield Named(what, no_device or shown, remedy)


def wrong_fabric(case: Case) -> Iterator[Named]:
    shown = case.sign("status-12") or case.sign("retry-exceeded")
    if not shown or case.is_roce:
        return
    yield Named(
        "the NICs cannot reach each other: the two nodes are on different InfiniBand fabrics, or a link is down",
        shown,
        "compare azure.dra.net/placementGroupId of both nodes (`fishplate capacity` shows which fabrics hold a job);"
        " then the port state and the partition key",
    )


def roce_gid(case: Case) -> Iterator[Named]:
    shown = case.sign("status-12") or case.sign("retry-exceeded")
    if shown and case.is_roce:
        yield Named(
            "the RoCE peers cannot reach each other: wrong GID, MTU or route",
            shown,
            "unset NCCL_IB_GID_INDEX (NCCL 2.21 and later chooses), compare MTUs, ping between the interfaces",
        )


def queue_pair_timeout(case: Case) -> Iterator[Named]:
    if shown := case.sign("qp-timeout"):
        yield Named(
            "a queue pair could not be brought up to its peer",
            shown,
            "on a rail-only fabric set NCCL_CROSS_NIC=0; else see with ib_write_bw whether the NIC reaches that peer",
        )


def protection_error(case: Case) -> Iterator[Named]:
    if shown := case.sign("status-4") or case.sign("acs-hint"):
        yield Named(
            "the NIC may not reach the GPU's memory: PCIe access control (ACS) or the IOMMU is in the way",
            shown,
            "on bare metal switch ACS off and use iommu=pt; in VMs enable ATS; NCCL_NET_GDR_LEVEL=0 proves the cause",
        )


def locked_memory(case: Case) -> Iterator[Named]:
    if shown := case.sign("no-memory"):
        yield Named(
            "memory could not be pinned for RDMA",
            shown,
            "give the container the capability IPC_LOCK, and see `ulimit -l` inside the mpirun session",
        )


def no_peer_memory(case: Case) -> Iterator[Named]:
    if shown := case.sign("bad-address"):
        yield Named(
            "GPU memory could not be registered with the NIC",
            shown,
            "load nvidia-peermem on the node, or use DMA-BUF (perftest: --use_cuda_dmabuf)",
        )


def small_shm(case: Case) -> Iterator[Named]:
    if shown := case.sign("shm-full"):
        yield Named(
            "/dev/shm is too small",
            shown,
            "mount a memory emptyDir at /dev/shm; the default of 64 MiB is not enough for NCCL",
        )


def gid_unreadable(case: Case) -> Iterator[Named]:
    if shown := case.sign("gid-unreadable"):
        yield Named("NCCL stumbles over GIDs that belong to another network namespace", shown, "use NCCL 2.26 or later")
