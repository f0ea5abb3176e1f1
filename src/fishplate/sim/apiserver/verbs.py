"""Create, read, list, watch, replace and patch: a request in, an answer out. Deletion is in `deletion`.

The order of a write is the real one's: decode, defaults, ownership, admission, the kind's own preparation, validation,
store. Nothing is stored unless all of it went well, so a refused request leaves no trace.
"""

from fishplate.sim.apiserver.clock import Clock
from fishplate.sim.apiserver.conform import DecodeError, conform
from fishplate.sim.apiserver.decode import parse_json, parse_yaml, read_body, read_object, refuse_problems
from fishplate.sim.apiserver.defaults import apply_defaults
from fishplate.sim.apiserver.kinds import NAMESPACE, Kind
from fishplate.sim.apiserver.lists import Page, list_objects, select
from fishplate.sim.apiserver.options import ListOptions, WriteOptions, read_write_options
from fishplate.sim.apiserver.ownership import Write, apply, track_update
from fishplate.sim.apiserver.patch import json_patch, merge_patch
from fishplate.sim.apiserver.patch_problems import refuse_patch_problems
from fishplate.sim.apiserver.request import Request, Target
from fishplate.sim.apiserver.status import (
    ApiError,
    Cause,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    no_such_method,
    not_found,
    stale,
)
from fishplate.sim.apiserver.store import Store, Stored
from fishplate.sim.apiserver.strategic import strategic_patch
from fishplate.sim.apiserver.strategy import prepare_create, prepare_update, validate_create, validate_update
from fishplate.sim.apiserver.values import Object, Value

PATCHES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}


class Verbs:
    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock

    # Reading.

    def find(self, target: Target) -> Stored:
        stored = self.store.get(target.kind, target.key)
        if stored is None:
            raise not_found(target.kind.name, target.name)
        return stored

    def list_page(self, target: Target, options: ListOptions) -> Page:
        return list_objects(self.store, select(target.kind, target.namespace, options), options)

    # Creating.

    def create(self, target: Target, request: Request) -> tuple[Stored, list[str]]:
        """What was stored, and warnings."""
        kind = target.kind
        if kind.namespaced and not target.namespace:
            raise no_such_method()
        options = read_write_options(request.query, "CreateOptions")
        value, warnings = self._read(kind, request, options)
        write = Write(options.manager or request.manager, "", self.clock.stamp())
        return self.insert(target, value, write, dry_run=options.dry_run), warnings

    def _read(self, kind: Kind, request: Request, options: WriteOptions) -> tuple[Object, list[str]]:
        value, problems = read_object(kind, read_body(request.content_type, request.body, kind.kind, kind.shape))
        if problems and options.is_strict:
            raise refuse_problems(kind, problems)
        return value, problems if options.validation != "Ignore" else []

    def insert(
        self, target: Target, value: Object, write: Write, *, dry_run: bool = False, managed: list[Object] | None = None
    ) -> Stored:
        """A conformed object, made into a stored one. `managed` is set where an apply has settled the owners."""
        kind, meta = target.kind, value["metadata"]
        self._place(target, meta)
        if meta.get("resourceVersion"):
            raise ApiError(500, "resourceVersion should not be set on objects to be created", reason="")
        if meta.get("generateName") and not meta.get("name"):
            meta["name"] = self.clock.name(meta["generateName"])
        for name in ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"):
            meta.pop(name, None)
        meta |= {"uid": self.clock.uid(), "creationTimestamp": write.now}
        apply_defaults(kind, value, write.now)
        meta["managedFields"] = track_update(kind, None, value, write) if managed is None else managed
        if not meta["managedFields"]:
            del meta["managedFields"]
        if kind.counts_generations:
            meta["generation"] = 1
        self._check_namespace(target, meta.get("name", ""))
        prepare_create(kind, value)
        validate_create(kind, value, self.store)
        if self.store.get(kind, f"{target.namespace}/{meta['name']}" if kind.namespaced else meta["name"]) is not None:
            raise already_exists(kind.name, meta["name"])
        return Stored(kind, value, 0) if dry_run else self.store.put(kind, value)

    def _place(self, target: Target, meta: Object) -> None:
        given = meta.get("namespace", "")
        if target.kind.namespaced:
            if given and given != target.namespace:
                said = "the namespace of the provided object does not match the namespace sent on the request"
                raise bad_request(said)
            meta["namespace"] = target.namespace
        else:
            meta.pop("namespace", None)

    def _check_namespace(self, target: Target, name: str) -> None:
        if not target.kind.namespaced:
            return
        found = self.store.get(NAMESPACE, target.namespace)
        if found is None:
            raise not_found(NAMESPACE.name, target.namespace)
        if found.object["metadata"].get("deletionTimestamp"):
            said = f"namespace {target.namespace} is being terminated"
            cause = Cause("metadata.namespace", said, "NamespaceTerminating")
            text = f"unable to create new content in namespace {target.namespace} because it is being terminated"
            raise forbidden(target.kind.name, name, text, [cause])

    # Replacing.

    def replace(self, target: Target, request: Request) -> tuple[Stored, list[str]]:
        options = read_write_options(request.query, "UpdateOptions")
        value, warnings = self._read(target.kind, request, options)
        self._check_name(target, value["metadata"])
        live = self.find(target)
        self.check_version(live, value["metadata"])
        write = Write(options.manager or request.manager, target.subresource, self.clock.stamp())
        return self.store_update(live, value, write, dry_run=options.dry_run), warnings

    def _check_name(self, target: Target, meta: Object) -> None:
        name = meta.get("name", "")
        if name and name != target.name:
            said = f"the name of the object ({name}) does not match the name on the URL ({target.name})"
            raise bad_request(said)
        if target.kind.namespaced and meta.get("namespace") not in (None, target.namespace):
            said = "the namespace of the provided object does not match the namespace sent on the request"
            raise bad_request(said)

    def check_version(self, live: Stored, meta: Object) -> None:
        kind = live.kind
        if meta.get("uid") and meta["uid"] != live.uid:
            place = "/".join(part for part in ("/registry", kind.plural, live.namespace, live.name) if part)
            said = f"StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0, AdditionalErrorMsg: "
            said += f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {live.uid}"
            raise conflict(kind.name, live.name, said)
        if meta.get("resourceVersion") not in (None, "", str(live.version)):
            raise stale(kind.name, live.name)

    def store_update(
        self, live: Stored, value: Object, write: Write, *, dry_run: bool = False, managed: list[Object] | None = None
    ) -> Stored:
        """A conformed object over a live one. Nothing changed: nothing is written, and the version stays."""
        kind, old = live.kind, live.object
        meta = value["metadata"]
        meta.pop("resourceVersion", None)
        apply_defaults(kind, value, write.now)
        prepare_update(kind, value, old, write.subresource)
        owners = track_update(kind, old, value, write) if managed is None else managed
        meta = value["metadata"]
        meta.pop("managedFields", None)
        if owners:
            meta["managedFields"] = owners
        meta["resourceVersion"] = old["metadata"]["resourceVersion"]
        if value == old:
            return live
        validate_update(kind, value, old, write.subresource, self.store)
        if dry_run:
            return Stored(kind, value, live.version)
        if _is_finished(kind, value):
            # Watchers see what was there before; the caller sees what it wrote, under the version it wrote over.
            self.store.remove(kind, live.key)
            return Stored(kind, value, live.version)
        return self.store.put(kind, value)

    # Patching.

    def patch(self, target: Target, request: Request) -> tuple[Stored, list[str], bool]:
        """What was stored, warnings, and whether it is new."""
        form = PATCHES.get(request.content_type.partition(";")[0].strip().lower())
        if form is None:
            raise ApiError(415, "415: Unsupported Media Type", details={})
        options = read_write_options(request.query, "PatchOptions", apply=form == "apply")
        write = Write(options.manager or request.manager, target.subresource, self.clock.stamp())
        if form == "apply":
            return self._apply(target, request, options, write)
        live = self.store.get(target.kind, target.key)
        patch = self._read_patch(request.body, form)
        if live is None:
            raise not_found(target.kind.name, target.name)
        merged = self._merge(live, patch, form)
        value, problems = read_object(target.kind, merged)
        if problems and options.is_strict:
            raise refuse_patch_problems(live, merged, patch, form, problems)
        self._check_name(target, value["metadata"])
        self.check_version(live, value["metadata"])
        stored = self.store_update(live, value, write, dry_run=options.dry_run)
        return stored, problems if options.validation != "Ignore" else [], False

    def _read_patch(self, body: bytes, form: str) -> Value:
        try:
            patch = parse_json(body)
        except DecodeError as error:
            raise bad_request(f"error decoding patch: {error}") from error
        if form != "json" and not isinstance(patch, dict):
            said = "json: cannot unmarshal array into Go value of type map[string]interface {}"
            raise bad_request(f"error decoding patch: {said}")
        return patch

    def _merge(self, live: Stored, patch: Value, form: str) -> Object:
        whole: Object = {"kind": live.kind.kind, "apiVersion": live.kind.api_version, **live.object}
        match form:
            case "json":
                merged = json_patch(whole, patch)
            case "merge":
                merged = merge_patch(whole, patch)
            case _:
                merged = strategic_patch(live.kind.shape, whole, patch)
        if not isinstance(merged, dict) or not isinstance(merged.get("metadata"), dict):
            raise bad_request("the patched object is no object any more")
        return merged

    def _apply(
        self, target: Target, request: Request, options: WriteOptions, write: Write
    ) -> tuple[Stored, list[str], bool]:
        kind = target.kind
        try:
            said = parse_yaml(request.body)
        except DecodeError as error:
            raise bad_request(f"error decoding YAML: {error}") from error
        if not isinstance(said, dict):
            raise bad_request("error decoding YAML: the body is no object")
        self._check_applied(target, said)
        live = self.store.get(kind, target.key)
        if live is None and target.subresource:
            raise not_found(kind.name, target.name)
        said = {**said, "metadata": {**said.get("metadata", {}), "name": target.name}}
        if live is not None:
            self.check_version(live, said["metadata"])
        applied = apply(kind, live.object if live else None, said, write, force=options.force)
        try:
            value = conform(kind.shape, applied.value)
        except DecodeError as error:
            raise bad_request(str(error)) from error
        value.pop("kind", None)
        value.pop("apiVersion", None)
        if live is None:
            stored = self.insert(target, value, write, dry_run=options.dry_run, managed=applied.managed)
            return stored, [], True
        return self.store_update(live, value, write, dry_run=options.dry_run, managed=applied.managed), [], False

    def _check_applied(self, target: Target, said: Object) -> None:
        kind = target.kind
        version, name = said.get("apiVersion", ""), said.get("kind", "")
        if (version, name) != (kind.api_version, kind.kind):
            shown = version if "/" in str(version) else f"/{version}"
            raise bad_request(f"invalid object type: {shown}, Kind={name}")
        meta = said.get("metadata") or {}
        if not isinstance(meta, dict):
            raise bad_request("error decoding YAML: metadata is no object")
        if meta.get("managedFields") is not None:
            raise bad_request("metadata.managedFields must be nil")
        self._check_name(target, meta)


def _is_finished(kind: Kind, value: Object) -> bool:
    """Whether nothing holds an object that is being deleted any more."""
    meta = value["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers"):
        return False
    if kind is NAMESPACE and value["spec"].get("finalizers"):
        return False
    return not meta.get("deletionGracePeriodSeconds")
