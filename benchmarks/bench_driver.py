"""The node driver between a real kube-apiserver, the kubelet's client code and the real NRI adaptation.

Everything about the driver is taken from outside: memory and CPU from /proc, API writes from the API server's audit
log, latency by the peers in Go. The host is a synthetic MI300X node with 8 NICs. Upstream's figures are DRANET 1.4.0's
in an emulated VM of the lab, where noted; they are not from this run.
"""

import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.bare import bare_node
from lab.session import Lab, running
from lab.state import Request
from tests.integration.cluster_kit import DRA, ClusterKit, allocated
from tests.integration.driver_node import DriverNode, claim_ref, wait_for

_SIZE = "Standard_ND96isr_MI300X_v5"
_NODE = "bench-driver"
_NAMESPACE = "bench"
_NICS = 8
_PODS = int(os.environ.get("FISHPLATE_BENCH_PODS", "1000"))
_ROUNDS = int(os.environ.get("FISHPLATE_BENCH_ROUNDS", "10000"))
_UPSTREAM_MB = 58


def run() -> Iterator[object]:
    with running("bench-driver", Request(nodes=0)) as lab, _memory() as short:
        kit = ClusterKit(lab.api, _NAMESPACE)
        kit.create_namespace()
        selector = {"cel": {"expression": 'device.driver == "dra.net"'}}
        kit.create(f"{DRA}/deviceclasses", {"metadata": {"name": "dranet.net"}, "spec": {"selectors": [selector]}})
        kit.create("/api/v1/nodes", bare_node(_NODE))
        with DriverNode(Path(short), kubeconfig=lab.kubeconfig, name=_NODE, size=_SIZE) as node:
            node.start_runtime()
            yield _start(kit, node)
            node.wait_ready()
            yield from _idle(node)
            pod, claim = _claim(kit)
            yield from _latency(node, pod, claim)
            yield _rounds(node, pod, claim)
            yield _api_writes(lab, kit, node)
        yield from _link_events()


def _memory() -> tempfile.TemporaryDirectory[str]:
    """Files in memory, as /run is on a node, where the store and the CDI specs live."""
    return tempfile.TemporaryDirectory(prefix="fp-", dir="/dev/shm")


def _start(kit: ClusterKit, node: DriverNode) -> str:
    began = time.monotonic()
    node.start()
    wait_for("the slice", lambda: kit.slices(_NODE))
    return f"start of the process to published slice: {time.monotonic() - began:.2f} s (upstream in a VM: 13-17 s)"


def _idle(node: DriverNode) -> Iterator[str]:
    before, began = cpu_s(node.pid), time.monotonic()
    time.sleep(20)
    share = (cpu_s(node.pid) - before) / (time.monotonic() - began)
    yield f"CPU while idle: {share * 100:.2f} % of a core over 20 s"
    yield f"resident after start: {resident_mb(node.pid):.1f} MB (upstream in a VM: {_UPSTREAM_MB} MB)"


def _claim(kit: ClusterKit) -> tuple[Any, Any]:
    """A pod with a claim of all NICs, scheduled by the real scheduler."""
    exactly = {"deviceClassName": "dranet.net", "count": _NICS}
    kit.create_claim("bench", {"requests": [{"name": "nic", "exactly": exactly}]})
    kit.create_pod("bench", claim="bench")
    pod, claim = kit.scheduled("bench")
    assert len(allocated(claim)) == _NICS
    return pod, claim


def _latency(node: DriverNode, pod: Any, claim: Any) -> Iterator[str]:  # noqa: ANN401
    # Paced, the status of the claim before is written by then; back to back, that write runs beside the next prepare.
    for what, count, pause in (("warm-up", 50, 0), ("one every 30 ms", 500, 30), ("back to back", 500, 0)):
        fields = {"socket": node.service_socket, "claims": [claim_ref(claim)], "count": count, "pause_ms": pause}
        took = node.ask("kubelet", "rounds", **fields)
        if what != "warm-up":
            yield (
                f"prepare of a claim of {_NICS} NICs, {what}: p50 {took['prepare']['p50'] / 1000:.2f} ms, "
                f"p99 {took['prepare']['p99'] / 1000:.2f} ms (goal 10); "
                f"unprepare p99 {took['unprepare']['p99'] / 1000:.2f} ms"
            )
    node.prepare(claim)
    meta = pod["metadata"]
    for kind, count in (("warm-up", 200), ("", 3000)):
        fields = {"uid": meta["uid"], "namespace": meta["namespace"], "pod": meta["name"], "container": "main"}
        took = node.ask("nri-0.12", "latency", count=count, **fields)
        if not kind:
            yield (
                f"CreateContainer with {_NICS} NICs, real adaptation: p50 {took['p50'] / 1000:.3f} ms, "
                f"p99 {took['p99'] / 1000:.3f} ms (goal 1), max {took['max'] / 1000:.2f} ms"
            )
    node.unprepare(claim)


def _rounds(node: DriverNode, pod: Any, claim: Any) -> str:  # noqa: ANN401
    batch = 500
    node.ask("kubelet", "rounds", socket=node.service_socket, claims=[claim_ref(claim)], count=batch)
    before = resident_mb(node.pid)
    began = time.monotonic()
    for _ in range(_ROUNDS // batch):
        node.ask("kubelet", "rounds", socket=node.service_socket, claims=[claim_ref(claim)], count=batch - 1)
        node.prepare(claim)
        node.run_pod(pod)
        node.create_container(pod, "main")
        node.remove_pod(pod)
        node.unprepare(claim)
    rate = _ROUNDS / (time.monotonic() - began)
    after = resident_mb(node.pid)
    return (
        f"resident after {_ROUNDS} more rounds: {after:.1f} MB, {after - before:+.1f} MB "
        f"(upstream grew from 58 to 67-77 MB over 16-26 pods); {rate:.0f} rounds a second"
    )


def _api_writes(lab: Lab, kit: ClusterKit, node: DriverNode) -> str:
    """Pods from one template after the other, scheduled for real; the kubelet's part played by its client code."""
    exactly = {"deviceClassName": "dranet.net", "count": 1}
    spec = {"devices": {"requests": [{"name": "nic", "exactly": exactly}]}}
    kit.create_template({"metadata": {"name": "one-nic"}, "spec": {"spec": spec}})
    kit.delete_pod("bench")
    kit.delete(f"{DRA}/namespaces/{_NAMESPACE}/resourceclaims/bench")
    offset = lab.audit_log.stat().st_size
    for first in range(0, _PODS, _NICS):
        names = [f"load-{number}" for number in range(first, min(first + _NICS, _PODS))]
        for name in names:
            kit.create_pod(name, template="one-nic")
        for name in names:
            pod, claim = kit.scheduled(name)
            answer = node.prepare(claim)[claim["metadata"]["uid"]]
            assert not answer.get("error"), answer
            node.run_pod(pod)
            assert len(node.create_container(pod, "main")) == 2
            node.remove_pod(pod)
            node.unprepare(claim)
            kit.delete_pod(name)
    wait_for("the last status", lambda: "fishplate_claim_status_waiting 0.0" in node.page("/metrics")[1])
    writes = count_writes(lab.audit_log, offset)
    per_pod = writes.get("resourceclaims/status", 0) / _PODS
    other = sum(writes.values()) - writes.get("resourceclaims/status", 0)
    return (
        f"API writes of the driver during {_PODS} pods: {per_pod:.2f} claim-status writes a pod, {other} others "
        f"({writes or 'none'}; upstream 2 slice writes a pod)"
    )


def count_writes(audit_log: Path, offset: int) -> dict[str, int]:
    """Writes with our user agent, by resource, from the API server's own log."""
    found: dict[str, int] = {}
    with audit_log.open("rb") as log:
        log.seek(offset)
        for line in log:
            entry = json.loads(line)
            if entry["verb"] in ("get", "list", "watch") or not entry.get("userAgent", "").startswith("fishplate/"):
                continue
            reference = entry.get("objectRef", {})
            key = "/".join(filter(None, (reference.get("resource", "?"), reference.get("subresource", ""))))
            found[key] = found.get(key, 0) + 1
    return found


# -- link events -------------------------------------------------------------------------------------------------


def _link_events() -> Iterator[str]:
    """A process of our own namespace where links can be made; scans are counted by the driver's survey there."""
    if os.geteuid() != 0:
        yield "scans for a burst of 1,000 link events: needs root"
        return
    from benchmarks.link_events import count_scans

    scans, seconds = count_scans(1_000)
    yield f"scans for a burst of 1,000 link events in {seconds:.1f} s: {scans} (goal 3; upstream one for each event)"


# -- from /proc --------------------------------------------------------------------------------------------------


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
