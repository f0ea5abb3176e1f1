"""The complaint about a patch that would bring in fields nobody knows. It shows the patched object, as Go prints it."""

import msgspec

from fishplate.sim.apiserver import causes
from fishplate.sim.apiserver.status import ApiError, invalid
from fishplate.sim.apiserver.store import Stored
from fishplate.sim.apiserver.values import Object, Value

_META_ORDER = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)


def refuse_patch_problems(
    live: Stored,
    merged: Object,
    patch: Value,
    form: str,
    problems: list[str],
) -> ApiError:
    if form == "strategic":
        shown = _go_map(patch)
    else:
        meta = merged["metadata"]
        ordered = {name: meta[name] for name in _META_ORDER if name in meta} | meta
        whole = {key: ordered if key == "metadata" else merged[key] for key in sorted(merged)}
        shown = msgspec.json.encode(whole).decode()
    cause = causes.invalid("patch", shown, f"strict decoding error: {', '.join(problems)}")
    return invalid("", "", "", [cause])


def _go_map(value: Value) -> str:
    """Go's %v of a map."""
    match value:
        case dict():
            return f"map[{' '.join(f'{key}:{_go_map(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(_go_map(one) for one in value)}]"
        case bool():
            return "true" if value else "false"
        case None:
            return "<nil>"
    return str(value)
