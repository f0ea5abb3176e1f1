"""Where a run took place: what the person said, and beside it what the log shows beyond doubt."""

import msgspec

from fishplate.bench.results import Context, Run


def complete_context(run: Run) -> Context:
    """The words of the person win; the log fills the gaps."""
    given = run.context
    hosts = run.hosts
    nodes = given.nodes or len(hosts) or run.network.nodes
    counts = {sum(rank.host == host for rank in run.ranks) for host in hosts}
    gpus = given.gpus or (counts.pop() if len(counts) == 1 else None)
    nics = given.nics or len(run.network.hcas) or None
    return msgspec.structs.replace(given, nodes=nodes, gpus=gpus, nics=nics)
