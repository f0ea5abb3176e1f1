"""Deletion: preconditions, finalizers, grace, collections; and binding, which is as particular to pods as grace is."""

from fishplate.sim.apiserver.decode import read_body
from fishplate.sim.apiserver.garbage import FOREGROUND, ORPHAN
from fishplate.sim.apiserver.kinds import NAMESPACE, POD, SERVICE_ACCOUNT, Kind
from fishplate.sim.apiserver.lists import Page
from fishplate.sim.apiserver.options import DeleteOptions, ListOptions, read_delete_options
from fishplate.sim.apiserver.ownership import Write
from fishplate.sim.apiserver.request import Request, Target
from fishplate.sim.apiserver.status import ApiError, KindName, conflict, forbidden
from fishplate.sim.apiserver.store import Stored
from fishplate.sim.apiserver.types import load_types
from fishplate.sim.apiserver.values import Object
from fishplate.sim.apiserver.verbs import Verbs

_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
_DEFAULT_GRACE_S = 30


class Deleted:
    """What became of an object: `gone`, or still there and waiting."""

    def __init__(self, stored: Stored, *, gone: bool) -> None:
        self.stored = stored
        self.gone = gone


class Deletion:
    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs
        self._store = verbs.store

    def delete(self, target: Target, request: Request) -> Deleted:
        options = self._options(request)
        stored = self._verbs.find(target)
        if target.kind is NAMESPACE and target.name in _IMMORTAL:
            raise forbidden(NAMESPACE.name, target.name, "this namespace may not be deleted")
        self._check_preconditions(stored, options)
        return self._delete(stored, options)

    def delete_collection(self, target: Target, request: Request, listing: ListOptions) -> Page:
        """The objects as they were before."""
        options = self._options(request)
        page = self._verbs.list_page(target, listing)
        for stored in page.items:
            self._delete(stored, options)
        return page

    def _options(self, request: Request) -> DeleteOptions:
        shape = load_types()["meta.v1.DeleteOptions"]
        body = read_body(request.content_type, request.body, "DeleteOptions", shape) if request.body else {}
        return read_delete_options(request.query, body)

    def _check_preconditions(self, stored: Stored, options: DeleteOptions) -> None:
        subject = KindName(kind=stored.kind.kind, plural=stored.kind.kind, group=stored.kind.group)
        if options.uid and options.uid != stored.uid:
            said = f"the UID in the precondition ({options.uid}) does not match the UID in record ({stored.uid}). "
            raise conflict(subject, stored.name, said + "The object might have been deleted and then recreated")
        if options.version and options.version != str(stored.version):
            said = f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in "
            said += f"record ({stored.version}). The object might have been modified"
            raise conflict(subject, stored.name, said)

    def _delete(self, stored: Stored, options: DeleteOptions) -> Deleted:
        kind = stored.kind
        grace = self._grace(stored, options)
        finalizers = self._finalizers(stored, options.policy)
        waits = bool(finalizers) or grace > 0 or (kind is NAMESPACE and bool(stored.object["spec"].get("finalizers")))
        if options.dry_run:
            return Deleted(stored, gone=not waits)
        value = self._mark(stored, grace, finalizers)
        if not waits:
            gone = self._store.remove(kind, stored.key)
            if kind is POD:
                # The caller sees the deletion that was asked for, watchers what was there before.
                meta = {**value["metadata"], "resourceVersion": str(gone.version)}
                gone = Stored(kind, {**value, "metadata": meta}, gone.version)
            return Deleted(gone, gone=True)
        if value == stored.object:
            return Deleted(stored, gone=False)
        return Deleted(self._store.put(kind, value), gone=False)

    def _mark(self, stored: Stored, grace: int, finalizers: list[str]) -> Object:
        meta = dict(stored.object["metadata"])
        known = meta.get("deletionGracePeriodSeconds")
        first = not meta.get("deletionTimestamp")
        if first or (known is not None and grace < known):
            meta["deletionTimestamp"] = self._verbs.clock.stamp(grace)
            if stored.kind is not NAMESPACE:
                meta["deletionGracePeriodSeconds"] = grace
        if first and meta.get("generation"):
            meta["generation"] += 1
        if finalizers:
            meta["finalizers"] = finalizers
        value = {**stored.object, "metadata": meta}
        if stored.kind is NAMESPACE:
            value["status"] = {**value["status"], "phase": "Terminating"}
        return value

    def _finalizers(self, stored: Stored, policy: str) -> list[str]:
        kept = [
            f for f in stored.object["metadata"].get("finalizers") or () if f not in (ORPHAN, FOREGROUND) or not policy
        ]
        added = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])
        return kept + added

    def _grace(self, stored: Stored, options: DeleteOptions) -> int:
        """How long a pod may take: nothing if no kubelet has it or it has ended."""
        if stored.kind is not POD:
            return 0
        spec, status = stored.object["spec"], stored.object.get("status") or {}
        asked = options.grace_s if options.grace_s is not None else spec.get("terminationGracePeriodSeconds")
        grace = _DEFAULT_GRACE_S if asked is None else asked
        if grace < 0:
            grace = 1
        if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
            grace = 0
        known = stored.object["metadata"].get("deletionGracePeriodSeconds")
        return grace if known is None else min(grace, known)

    # What the collector asks for.

    def delete_object(self, stored: Stored, policy: str = "") -> None:
        self._delete(stored, DeleteOptions(policy=policy))

    def rewrite(self, stored: Stored, value: Object) -> None:
        """Write an object as a controller does; if nothing holds it any more it goes."""
        meta = value["metadata"]
        kind: Kind = stored.kind
        held = meta.get("finalizers") or (kind is NAMESPACE and value["spec"].get("finalizers"))
        if meta.get("deletionTimestamp") and not held and not meta.get("deletionGracePeriodSeconds"):
            self._store.remove(kind, stored.key)
        else:
            self._store.put(kind, {**value, "metadata": dict(meta)})

    def create_service_account(self, namespace: str) -> None:
        """Every namespace has an account for pods that name none."""
        target = Target(SERVICE_ACCOUNT, namespace)
        write = Write("kube-controller-manager", "", self._verbs.clock.stamp())
        try:
            self._verbs.insert(target, {"metadata": {"name": "default"}}, write)
        except ApiError:
            return  # made by somebody else, or the namespace is on its way out

    # Binding.

    def bind(self, target: Target, request: Request) -> Object:
        """Put a pod on a node, once."""
        body = read_body(request.content_type, request.body, "Binding", load_types()["core.v1.Binding"])
        node = (body.get("target") or {}).get("name", "")
        subject = KindName(kind="Pod", plural="pods/binding")
        stored = self._verbs.find(target)
        value, meta = stored.object, stored.object["metadata"]
        if meta.get("deletionTimestamp"):
            raise conflict(subject, target.name, f"pod {target.name} is being deleted, cannot be assigned to a host")
        if value["spec"].get("nodeName"):
            said = f'pod {target.name} is already assigned to node "{value["spec"]["nodeName"]}"'
            raise conflict(subject, target.name, said)
        now = self._verbs.clock.stamp()
        scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
        others = [c for c in value["status"].get("conditions") or () if c["type"] != "PodScheduled"]
        bound = {
            **value,
            "metadata": dict(meta),
            "spec": {**value["spec"], "nodeName": node},
            "status": {**value["status"], "conditions": [*others, scheduled]},
        }
        self._store.put(POD, bound)
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
