"""Query parameters: read once, checked as the API server checks them."""

from collections.abc import Mapping

import msgspec

from fishplate.sim.apiserver import causes
from fishplate.sim.apiserver.status import ApiError, Cause, bad_request, invalid

_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_MATCHES = ("Exact", "NotOlderThan", "")
_MAX_MANAGER = 128
_MAX_DIGITS = 18
_POLICIES = ("Foreground", "Background", "Orphan")


def _refuse(kind: str, found: list[Cause]) -> None:
    if found:
        raise invalid(kind, "meta.k8s.io", "", found)


def _integer(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    digits = text[1:] if text[0] in "+-" else text
    if not digits.isascii() or not digits.isdigit() or len(digits) > _MAX_DIGITS:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def parse_bool(text: str | None) -> bool:
    """As conversion of query parameters does: anything but 0 and false is true."""
    return text is not None and text.lower() not in ("0", "false", "f")


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Of create, update and patch."""

    dry_run: bool = False
    manager: str = ""
    validation: str = ""
    force: bool = False

    @property
    def is_strict(self) -> bool:
        return self.validation == "Strict"


def read_write_options(query: Mapping[str, str], kind: str, *, apply: bool = False) -> WriteOptions:
    found = []
    dry = query.get("dryRun", "")
    manager, validation = query.get("fieldManager", ""), query.get("fieldValidation", "")
    if kind == "PatchOptions" and not apply and parse_bool(query.get("force")):
        found.append(causes.forbidden("force", "may not be specified for non-apply patch"))
    if kind == "PatchOptions" and apply and not manager:
        found.append(causes.required("fieldManager", "is required for apply patch"))
    if len(manager) > _MAX_MANAGER:
        found.append(causes.too_long("fieldManager", _MAX_MANAGER))
    if dry not in ("", "All"):
        found.append(causes.unsupported("dryRun", [dry], ("All",)))
    if validation not in _VALIDATIONS:
        found.append(causes.unsupported("fieldValidation", validation, _VALIDATIONS))
    _refuse(kind, found)
    force = parse_bool(query.get("force"))
    return WriteOptions(dry_run=dry == "All", manager=manager, validation=validation, force=force)


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Of list, watch and deletecollection."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    token: str = ""
    version: str = ""
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial: bool | None = None
    timeout_s: int | None = None


def read_list_options(query: Mapping[str, str]) -> ListOptions:
    options = ListOptions(
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        limit=max(0, _integer(query, "limit") or 0),
        token=query.get("continue", ""),
        version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        watch=parse_bool(query.get("watch")),
        bookmarks=parse_bool(query.get("allowWatchBookmarks")),
        initial=parse_bool(query["sendInitialEvents"]) if "sendInitialEvents" in query else None,
        timeout_s=_integer(query, "timeoutSeconds"),
    )
    _refuse("ListOptions", _check_watch(options) if options.watch else _check_list(options))
    return options


def _check_watch(options: ListOptions) -> list[Cause]:
    found = []
    field = "resourceVersionMatch"
    if options.initial is not None and options.match != "NotOlderThan":
        found.append(causes.forbidden(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if options.initial is None and options.match:
        said = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        found.append(causes.forbidden(field, said))
        if options.match != "NotOlderThan":
            found.append(causes.unsupported(field, options.match, ("NotOlderThan",)))
    return found


def _check_list(options: ListOptions) -> list[Cause]:
    found = []
    field = "resourceVersionMatch"
    if options.match:
        if not options.version:
            said = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            found.append(causes.forbidden(field, said))
        if options.token:
            found.append(causes.forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
        if options.match not in _MATCHES:
            found.append(causes.unsupported(field, options.match, _MATCHES))
        if options.match == "Exact" and options.version == "0":
            said = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            found.append(causes.forbidden(field, said))
    if options.initial is not None:
        found.append(causes.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return found


def parse_version(text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    raise ValueError(f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax')


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    dry_run: bool = False
    grace_s: int | None = None
    policy: str = ""
    uid: str = ""
    version: str = ""


def read_delete_options(query: Mapping[str, str], body: Mapping[str, object]) -> DeleteOptions:
    """The body wins where there is one."""
    conditions = body.get("preconditions")
    conditions = conditions if isinstance(conditions, dict) else {}
    dry_runs = body.get("dryRun") or ([query["dryRun"]] if query.get("dryRun") else [])
    grace = body.get("gracePeriodSeconds", _integer(query, "gracePeriodSeconds"))
    policy = str(body.get("propagationPolicy") or query.get("propagationPolicy", ""))
    orphan = body.get("orphanDependents")
    if orphan is not None and not policy:
        policy = "Orphan" if orphan else "Background"
    found = []
    if policy and policy not in _POLICIES:
        found.append(causes.unsupported("propagationPolicy", policy, (*_POLICIES, "nil")))
    if dry_runs and dry_runs != ["All"]:
        found.append(causes.unsupported("dryRun", dry_runs, ("All",)))
    _refuse("DeleteOptions", found)
    if grace is not None and not isinstance(grace, int):
        raise ApiError(400, "gracePeriodSeconds must be a number")
    return DeleteOptions(
        dry_run=bool(dry_runs),
        grace_s=grace,
        policy=policy,
        uid=str(conditions.get("uid") or ""),
        version=str(conditions.get("resourceVersion") or ""),
    )
