"""metadata: names, labels, annotations, owners, finalizers; at creation and at an update."""

from collections.abc import Callable, Iterator

import msgspec

from fishplate.sim.apiserver import causes, names
from fishplate.sim.apiserver.kinds import Kind
from fishplate.sim.apiserver.status import Cause
from fishplate.sim.apiserver.values import Object

_ANNOTATIONS_LIMIT = 256 << 10
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")
_LABEL_NAMED = frozenset({"Namespace"})


def _name_rule(kind: Kind) -> Callable[[str], list[str]]:
    return names.label if kind.kind in _LABEL_NAMED else names.subdomain


def check_metadata(kind: Kind, meta: Object) -> Iterator[Cause]:
    yield from check_names(kind, meta)
    yield from check_labels(meta.get("labels") or {}, "metadata.labels")
    yield from check_annotations(meta.get("annotations") or {}, "metadata.annotations")
    yield from _check_owners(meta.get("ownerReferences") or [])
    yield from _check_finalizers(meta.get("finalizers") or [])


def check_names(kind: Kind, meta: Object) -> Iterator[Cause]:
    name, prefix = meta.get("name", ""), meta.get("generateName", "")
    rule = _name_rule(kind)
    if prefix:
        shown = prefix.removesuffix("-") + "a" if prefix.endswith("-") else prefix
        for text in rule(shown):
            yield causes.invalid("metadata.generateName", prefix, text)
    if not name:
        yield causes.required("metadata.name", "name or generateName is required")
    else:
        for text in rule(name):
            yield causes.invalid("metadata.name", name, text)


def check_labels(labels: dict[str, str], field: str) -> Iterator[Cause]:
    for key in sorted(labels):
        for text in names.qualified_name(key):
            yield causes.invalid(field, key, text)
        for text in names.label_value(labels[key]):
            yield causes.invalid(field, labels[key], text)


def check_annotations(annotations: dict[str, str], field: str) -> Iterator[Cause]:
    for key in sorted(annotations):
        for text in names.qualified_name(key.lower()):
            yield causes.invalid(field, key, text)
    if sum(len(key) + len(value) for key, value in annotations.items()) > _ANNOTATIONS_LIMIT:
        yield causes.too_long(field, _ANNOTATIONS_LIMIT)


def _check_owners(owners: list[Object]) -> Iterator[Cause]:
    controllers = [f"{owner['kind']}/{owner['name']}" for owner in owners if owner.get("controller")]
    for owner in owners:
        for name in _OWNER_FIELDS:
            if not owner.get(name):
                yield causes.invalid(f"metadata.ownerReferences.{name}", "", "must not be empty")
    if len(controllers) > 1:
        shown = msgspec.json.encode(owners).decode()
        said = "Only one reference can have Controller set to true. "
        said += f'Found "true" in references for {controllers[0]} and {controllers[1]}'
        yield causes.invalid_as("metadata.ownerReferences", shown, said)


def _check_finalizers(finalizers: list[str]) -> Iterator[Cause]:
    for index, name in enumerate(finalizers):
        for text in names.qualified_name(name):
            yield causes.invalid("metadata.finalizers", name, text)
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            said = "name is neither a standard finalizer name nor is it fully qualified"
            yield causes.invalid(f"metadata.finalizers[{index}]", name, said)


def check_metadata_change(new: Object, old: Object) -> Iterator[Cause]:
    if old.get("deletionTimestamp"):
        added = [name for name in new.get("finalizers") or () if name not in (old.get("finalizers") or ())]
        if added:
            shown = ", ".join(causes.quote(name) for name in added)
            said = "no new finalizers can be added if the object is being deleted, found new finalizers []string"
            yield causes.forbidden("metadata.finalizers", f"{said}{{{shown}}}")
    for field in ("name", "namespace", "uid"):
        if new.get(field) and new[field] != old.get(field):
            yield causes.invalid(f"metadata.{field}", new[field], "field is immutable")
