"""Pods that join a claim which is prepared already.

The kubelet does not call for them, and NRI knows no claims: the API server is asked, once per pod, and only while a
claim that pods could share is prepared on this node. A claim is joined by its UID and by its own list of pods, never by
its name alone: names are used again.
"""

import asyncio
import logging

from fishplate.driver.claims import ClaimReader, claim_names, consumer_of
from fishplate.driver.prepare import Preparer
from fishplate.driver.records import Claim
from fishplate.driver.store import Store
from fishplate.errors import InputError, OutsideError
from fishplate.k8s.pod import Pod as PodObject
from fishplate.wire.kubelet import ClaimRef
from fishplate.wire.nri import Pod

# Below the runtime's own patience: a slow API server must not keep pods from starting that have nothing to do with us.
_PATIENCE_S = 1.0
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
            async with asyncio.timeout(_PATIENCE_S):
                await self._find(pod)
        except (OutsideError, TimeoutError) as error:
            why = str(error) or "no answer in time"
            if self._required:
                raise InputError(f"cannot tell whether pod {pod.namespace}/{pod.name} shares a claim: {why}") from error
            _log.warning("pod %s/%s may share a claim: %s", pod.namespace, pod.name, why)

    async def _find(self, pod: Pod) -> None:
        known = await self._reader.pod(pod.namespace, pod.name)
        if known is None or known.metadata.uid != pod.uid:
            return  # gone, or a static pod, which has no claims
        names = set(claim_names(known).values())
        for claim in self._store.claims:
            if claim.shared and claim.namespace == pod.namespace and claim.name in names:
                await self._join(claim, known)

    async def _join(self, claim: Claim, pod: PodObject) -> None:
        try:
            live = await self._reader.read(ClaimRef(namespace=claim.namespace, name=claim.name, uid=claim.uid))
        except InputError:
            return  # another claim has that name by now: the kubelet calls for it
        consumer = consumer_of(pod, claim.name)
        if consumer.containers and any(one.uid == consumer.uid for one in live.reserved_for):
            await self._preparer.join(claim, consumer)
