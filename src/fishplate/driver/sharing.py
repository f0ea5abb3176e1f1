"""Pods that join a claim which is prepared already.

The kubelet does not call for them, and NRI knows no claims: the API
server is asked, once per such pod, and only while a claim that pods could share is prepared on this node.
"""

import logging

from fishplate.driver.claims import ClaimReader, claim_names, consumer_of
from fishplate.driver.prepare import Preparer
from fishplate.driver.store import Store
from fishplate.errors import InputError, OutsideError
from fishplate.wire.nri import Pod

_log = logging.getLogger("fishplate.sharing")


class SharedClaims:
    def __init__(self, reader: ClaimReader, store: Store, preparer: Preparer, *, required: bool) -> None:
        """`required`: the devices come through NRI alone, so a pod that cannot be looked up must not start."""
        self._reader = reader
        self._store = store
        self._preparer = preparer
        self._required = required

    async def find(self, pod: Pod) -> None:
        try:
            known = await self._reader.pod(pod.namespace, pod.name)
        except OutsideError as error:
            if self._required:
                raise InputError(
                    f"cannot tell whether pod {pod.namespace}/{pod.name} shares a claim: {error.what}"
                ) from error
            _log.warning("pod %s/%s may share a claim: %s", pod.namespace, pod.name, error)
            return
        if known is None or known.metadata.uid != pod.uid:
            return  # gone, or a static pod, which has no claims
        names = set(claim_names(known).values())
        for claim in self._store.claims:
            if claim.namespace == pod.namespace and claim.name in names:
                consumer = consumer_of(known, claim.name)
                if consumer.containers:
                    await self._preparer.join(claim, consumer)
