"""Why a run is slow or fails: one small rule for each cause, and each must show the line it saw.

The order is the rank: what explains everything else stands first. docs/bench.md lists the evidence of each rule.
"""

from collections.abc import Callable, Iterator

from fishplate.bench import failures, slow_paths
from fishplate.bench.case import Case, Named
from fishplate.bench.consistency import place
from fishplate.findings import Finding, Verdict

PREFIX = "bench.cause."

RULES: tuple[tuple[str, Callable[[Case], Iterator[Named]]], ...] = (
    ("unresolved-hosts", failures.unresolved_hosts),
    ("ranks-alone", failures.ranks_alone),
    ("one-node", failures.one_node),
    ("infiniband-disabled", failures.infiniband_disabled),
    ("tcp-fallback", failures.tcp_fallback),
    ("wrong-fabric", failures.wrong_fabric),
    ("roce-gid", failures.roce_gid),
    ("queue-pair-timeout", failures.queue_pair_timeout),
    ("protection-error", failures.protection_error),
    ("locked-memory", failures.locked_memory),
    ("no-peer-memory", failures.no_peer_memory),
    ("small-shm", failures.small_shm),
    ("gid-unreadable", failures.gid_unreadable),
    ("mixed-link-layers", slow_paths.mixed_link_layers),
    ("nics-missing", slow_paths.nics_missing),
    ("one-nic-used", slow_paths.one_nic_used),
    ("gpudirect-too-far", slow_paths.gpudirect_too_far),
    ("gpudirect-forbidden", slow_paths.gpudirect_forbidden),
    ("gpudirect-off", slow_paths.gpudirect_off),
    ("data-direct-off", slow_paths.data_direct_off),
    ("rate-of-one-nic", slow_paths.rate_of_one_nic),
)

# Enough to call a run bad though no rate could be judged: it did not do what it was started for.
CONCLUSIVE = frozenset({"ranks-alone", "one-node", "infiniband-disabled", "tcp-fallback"})
# A run that shows these and no result failed because of them.
FATAL = frozenset(
    {"wrong-fabric", "roce-gid", "queue-pair-timeout", "protection-error", "locked-memory", "no-peer-memory"}
    | {"small-shm", "gid-unreadable", "unresolved-hosts"}
)


def find_causes(case: Case) -> tuple[Finding, ...]:
    """Ranked, the likeliest first."""
    return tuple(
        Finding(
            id=f"{PREFIX}{name}",
            place=place(case.run, named.shown.line),
            what=named.what,
            evidence=named.shown.text,
            remedy=named.remedy,
            verdict=Verdict.BAD,
        )
        for name, rule in RULES
        for named in rule(case)
    )
