"""Kubernetes' url library, on the rules of Go's net/url."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from fishplate.cel import gotext
from fishplate.cel.values import CelMap, Err, Opaque, Value

if TYPE_CHECKING:
    from collections.abc import Callable

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_HOST = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff]*")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}")
_PATH_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~$&+,/:;=@!'()*[]%")


class Url(Opaque):
    __slots__ = ("host", "path", "query", "scheme", "text")
    type_name = "kubernetes.URL"

    def __init__(self, text: str, scheme: str, host: str, path: str, query: str) -> None:
        self.text = text
        self.scheme = scheme
        self.host = host
        self.path = path
        self.query = query

    def same(self, other: Value) -> bool:
        return isinstance(other, Url) and self.text == other.text

    @property
    def hostname(self) -> str:
        host, colon, port = self.host.rpartition(":")
        bare = host if colon and (port.isdigit() or not port) and "]" not in port else self.host
        return bare[1 : bare.index("]")] if bare.startswith("[") and "]" in bare else bare

    @property
    def port(self) -> str:
        host, colon, port = self.host.rpartition(":")
        return port if colon and port.isdigit() and (":" not in host or host.endswith("]")) else ""


def parse_request(text: str) -> Url | str:
    """url.ParseRequestURI: the parts of an absolute URL or path, or what is wrong. A fragment is not split off."""
    problem = _problem(text)
    if problem:
        return f"parse {gotext.quote(text)}: {problem}"
    scheme, rest = _scheme(text)
    host = ""
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        # `scheme:opaque`, which has no path.
        return Url(text, scheme, host, "", query)
    if rest.startswith("//") and not (not scheme and rest.startswith("///")):
        host, slash, path = rest[2:].partition("/")
        rest = slash + path
        host = host.rpartition("@")[2]
    return Url(text, scheme, host, rest, query)


def _scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.match(text)
    if match and text[match.end() : match.end() + 1] == ":":
        return match.group().lower(), text[match.end() + 1 :]
    return "", text


def _problem(text: str) -> str:
    if any(char < " " or char == "\x7f" for char in text):
        return "net/url: invalid control character in URL"
    if not text:
        return "empty url"
    if text.startswith(":"):
        return "missing protocol scheme"
    first = re.match(r"[^/?#]*", text)
    scheme, rest = _scheme(text)
    if not scheme and first and ":" in first.group():
        return "first path segment in URL cannot contain colon"
    if not rest.startswith("/"):
        return "" if scheme else "invalid URI for request"
    host, _, _ = (rest[2:] if rest.startswith("//") else "").partition("/")
    host = re.split(r"[?]", host)[0]
    if scheme and (problem := _host_problem(host)):
        return problem
    bad = _BAD_ESCAPE.search(re.split(r"[?]", rest)[0])
    return f"invalid URL escape {gotext.quote(bad.group())}" if bad else ""


def _host_problem(host: str) -> str:
    host = host.rpartition("@")[2]
    if host.startswith("["):
        if "]" not in host:
            return "missing ']' in host"
        inner = host[1 : host.index("]")].partition("%25")[0]
        try:
            ipaddress.IPv6Address(inner)
        except ValueError as error:
            return f"invalid host: ParseAddr({gotext.quote(inner)}): {error}"
    after = host[host.index("]") + 1 :] if host.startswith("[") else host[host.rfind(":") :] if ":" in host else ""
    if after and not re.fullmatch(r":[0-9]*", after):
        return f"invalid port {gotext.quote(after)} after host"
    if not _HOST.fullmatch(host):
        bad = next(char for char in host if not _HOST.fullmatch(char))
        return f"invalid character {gotext.quote(bad)} in host name"
    return ""


def url(text: str) -> Value:
    parsed = parse_request(text)
    if isinstance(parsed, str):
        return Err(f"URL parse error during conversion from string: {parsed}")
    path, _, _ = text.partition("#")
    whole = parse_request(path)
    return Url(text, whole.scheme, whole.host, whole.path, whole.query) if isinstance(whole, Url) else parsed


def _escaped_path(value: Url) -> Value:
    if all(char in _PATH_SAFE for char in value.path):
        return value.path
    return "".join(
        char if char in _PATH_SAFE and char not in "!'()*[]" else "".join(f"%{byte:02X}" for byte in char.encode())
        for char in value.path
    )


def _query(value: Url) -> Value:
    found: dict[str, list[str]] = {}
    for part in value.query.split("&"):
        if not part or ";" in part:
            continue
        key, _, text = part.partition("=")
        if not (_BAD_ESCAPE.search(key) or _BAD_ESCAPE.search(text)):
            found.setdefault(unquote_plus(key), []).append(unquote_plus(text))
    return CelMap.of({key: tuple(texts) for key, texts in found.items()})


OVERLOADS: dict[str, Callable[..., Value]] = {
    "string_to_url": url,
    "is_url_string": lambda text: isinstance(parse_request(text), Url),
    "url_get_scheme": lambda value: value.scheme,
    "url_get_host": lambda value: value.host,
    "url_get_hostname": lambda value: value.hostname,
    "url_get_port": lambda value: value.port,
    "url_get_escaped_path": _escaped_path,
    "url_get_query": _query,
}
