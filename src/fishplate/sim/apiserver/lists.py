"""Lists: selection, order, pages that stay consistent while the world goes on."""

import base64
from typing import Any, NamedTuple

import msgspec

from fishplate.sim.apiserver.kinds import Kind
from fishplate.sim.apiserver.options import ListOptions, parse_version
from fishplate.sim.apiserver.selectors import Matcher, parse_fields, parse_labels, sole_name
from fishplate.sim.apiserver.status import ApiError, bad_request, expired
from fishplate.sim.apiserver.store import Store, Stored

_INCONSISTENT = -1
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class Page(NamedTuple):
    items: list[Stored]
    version: int
    token: str = ""
    remaining: int | None = None

    def metadata(self) -> dict[str, Any]:
        meta: dict[str, Any] = {"resourceVersion": str(self.version)}
        if self.token:
            meta["continue"] = self.token
        if self.remaining is not None:
            meta["remainingItemCount"] = self.remaining
        return meta


class Selection(NamedTuple):
    """Which objects of a kind are meant."""

    kind: Kind
    prefix: str
    matchers: tuple[Matcher, ...]
    key: str = ""  # set if only one object can match

    def takes(self, stored: Stored) -> bool:
        return stored.key.startswith(self.prefix) and all(matches(stored.object) for matches in self.matchers)


def select(kind: Kind, namespace: str, options: ListOptions) -> Selection:
    prefix = f"{namespace}/" if namespace else ""
    found = (parse_labels(options.labels) if options.labels else None, parse_fields(kind, options.fields))
    name = sole_name(options.fields) if namespace or not kind.namespaced else ""
    return Selection(kind, prefix, tuple(one for one in found if one is not None), prefix + name if name else "")


class _Token(msgspec.Struct, frozen=True, rename={"version": "v"}):
    version: str
    rv: int
    start: str


def encode_token(version: int, start: str) -> str:
    data = msgspec.json.encode(_Token(version="meta.k8s.io/v1", rv=version, start=start))
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode_token(text: str) -> _Token:
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.json.decode(data, type=_Token)
    except (ValueError, msgspec.DecodeError) as error:
        said = f"continue key is not valid: {_complaint(text)}"
        raise bad_request(f"invalid continue token: {said}") from error
    if token.version != "meta.k8s.io/v1" or not token.start:
        raise bad_request(
            "invalid continue token: continue key is not valid: encoded start key empty (version meta.k8s.io/v1)"
        )
    return token


def _complaint(text: str) -> str:
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return "illegal base64 data at input byte 0"
    first = data[0] if data else 0
    shown = chr(first) if 32 <= first < 127 else f"\\u{first:04x}"
    return f"invalid character '{shown}' looking for beginning of value"


def list_objects(store: Store, selection: Selection, options: ListOptions) -> Page:
    if options.token:
        return _next_page(store, selection, options)
    version = store.version
    if options.version:
        try:
            asked = parse_version(options.version)
        except ValueError as error:
            raise bad_request(f"invalid resource version: {error}") from error
        if asked > store.version:
            raise _too_large(asked, store.version)
        if asked and (options.match == "Exact" or (options.limit and not options.match)):
            return _page(store.at(selection.kind, asked, selection.prefix), asked, selection, options, "")
    if selection.key:
        found = store.get(selection.kind, selection.key)
        return Page([found] if found is not None and selection.takes(found) else [], version)
    return _page(list(store.scan(selection.kind, selection.prefix)), version, selection, options, "")


def _too_large(asked: int, current: int) -> ApiError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ApiError(504, message, details={"causes": [cause], "retryAfterSeconds": 1})


def _next_page(store: Store, selection: Selection, options: ListOptions) -> Page:
    token = _decode_token(options.token)
    if options.version and options.version != "0":
        raise bad_request("specifying resource version is not allowed when using continue")
    start = selection.prefix + token.start.strip("/\0")
    if token.rv == _INCONSISTENT:
        return _page(list(store.scan(selection.kind, selection.prefix)), store.version, selection, options, start)
    try:
        state = store.at(selection.kind, token.rv, selection.prefix)
    except ApiError as error:
        raise expired(_TOO_OLD, token=encode_token(_INCONSISTENT, token.start)) from error
    return _page(state, token.rv, selection, options, start)


def _page(state: list[Stored], version: int, selection: Selection, options: ListOptions, start: str) -> Page:
    if start:
        state = [stored for stored in state if stored.key > start]
    if selection.matchers:
        matchers = selection.matchers
        found = [stored for stored in state if all(matches(stored.object) for matches in matchers)]
    else:
        found = state
    if not options.limit or len(found) <= options.limit:
        return Page(found, version)
    items = found[: options.limit]
    last = items[-1].key.removeprefix(selection.prefix)
    # The rest is counted only where that is free; with a selector it is not, for the real one.
    remaining = None if selection.matchers else len(found) - options.limit
    return Page(items, version, encode_token(version, f"/{last}\0"), remaining)
