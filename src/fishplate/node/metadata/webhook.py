"""DRANET's webhook contract: a server of the site tells what it knows of each device.

`GET /health` tells what the server can do, `POST /GetDeviceAttributes` takes one device's identifiers and answers with
its attributes. Upstream asks for every device in every scan and waits; here the answers are fetched in the background,
a few at a time, and kept. A device whose answer fails keeps what was last said of it.

The profile calls are functions for whoever prepares claims; nothing here calls them.
"""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from fishplate.errors import OutsideError
from fishplate.node.metadata.attribute_rules import sift
from fishplate.node.metadata.facts import Attributes, DeviceId, FactsState, NodeFacts, ProviderName
from fishplate.node.metadata.http import Endpoint, parse_endpoint, request, require_ok
from fishplate.topology.attributes import Version

_MOST_BYTES = 256 * 1024
_AT_A_TIME = 4
_OWN_DOMAIN = "dra.net"
_MOST_REASONS = 16


class Capabilities(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    cloud_provider: bool = False
    profile_provider: bool = False


class Said(msgspec.Struct, frozen=True, kw_only=True, rename={"int_": "int", "bool_": "bool"}):
    """One attribute as resource.k8s.io writes it: exactly one of these."""

    string: str | None = None
    int_: int | None = None
    bool_: bool | None = None
    version: str | None = None

    @property
    def value(self) -> object:
        given = [self.string, self.int_, self.bool_, None if self.version is None else Version(self.version)]
        present = [one for one in given if one is not None]
        return present[0] if len(present) == 1 else None


class WebhookProvider:
    name: ProviderName = "webhook"
    interval = 600.0
    per_device = True

    def __init__(self, url: str, *, timeout: float = 10.0) -> None:
        self._endpoint = parse_endpoint(url, what="--webhook-url")
        self._timeout = timeout
        self._known: dict[str, Attributes] = {}

    async def attributes(self, devices: Sequence[DeviceId]) -> NodeFacts:
        can = await ask_capabilities(self._endpoint, timeout=self._timeout)
        if not can.cloud_provider or not devices:
            return NodeFacts(state=FactsState(provider="webhook"))
        gate = asyncio.Semaphore(_AT_A_TIME)
        found = await asyncio.gather(*(self._ask(device, gate) for device in devices))
        failures = [one for one in found if isinstance(one, OutsideError)]
        if len(failures) == len(devices):
            raise failures[0]
        known: dict[str, Attributes] = {}
        ignored = [str(one) for one in failures]
        for device, answer in zip(devices, found, strict=True):
            key = device.keys[-1] if device.keys else ""
            if isinstance(answer, OutsideError):
                known[key] = self._known.get(key, {})
            else:
                known[key], refused = answer
                ignored += refused
        self._known = known
        return NodeFacts(devices=known, state=FactsState(provider="webhook", ignored=tuple(ignored[:_MOST_REASONS])))

    async def _ask(self, device: DeviceId, gate: asyncio.Semaphore) -> tuple[Attributes, list[str]] | OutsideError:
        async with gate:
            try:
                body = await _post(self._endpoint, "/GetDeviceAttributes", _identify(device), timeout=self._timeout)
                return read_attributes(body, device)
            except OutsideError as error:
                return error


def read_attributes(body: bytes, device: DeviceId) -> tuple[Attributes, list[str]]:
    """What can be published of an answer, and why the rest cannot. A name without a domain is the driver's, as in
    the API."""
    try:
        said = msgspec.json.decode(body, type=dict[str, Said] | None) or {}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OutsideError(f"answered with something else than attributes: {error}", where=_describe(device)) from error
    values = {name if "/" in name else f"{_OWN_DOMAIN}/{name}": one.value for name, one in said.items()}
    return sift(values, whose=_describe(device))


def _identify(device: DeviceId) -> dict[str, str]:
    """As upstream writes it: the name is always there."""
    given = {"mac_address": device.mac, "pci_address": device.pci_address}
    return {key: text for key, text in given.items() if text} | {"name": device.name}


def _describe(device: DeviceId) -> str:
    return device.pci_address or device.name or device.mac


# -- the calls -----------------------------------------------------------------------------------------------------


async def ask_capabilities(endpoint: Endpoint, *, timeout: float = 10.0) -> Capabilities:  # noqa: ASYNC109
    answer = await request(endpoint, "GET", "/health", timeout=timeout, limit=_MOST_BYTES)
    where = f"{endpoint.url}/health"
    body = require_ok(answer, where)
    try:
        return msgspec.json.decode(body, type=Capabilities)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OutsideError(f"does not tell what the webhook can do: {error}", where=where) from error


async def get_profile_config(
    endpoint: Endpoint,
    device: DeviceId,
    claim: Mapping[str, object],
    config: Mapping[str, object],
    *,
    timeout: float = 10.0,  # noqa: ASYNC109
) -> dict[str, object]:
    """The network configuration that the server makes of a profile. `claim` is the whole ResourceClaim; its UID is sent
    beside it, for servers of before DRANET 1.5, which read only that."""
    metadata = claim.get("metadata")
    uid = metadata.get("uid", "") if isinstance(metadata, Mapping) else ""
    content = {"device": _identify(device), "claim": claim, "claim_uid": uid, "config": config}
    body = await _post(endpoint, "/GetProfileConfig", content, timeout=timeout)
    try:
        return msgspec.json.decode(body, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OutsideError(f"answered with something else than a configuration: {error}", where="profile") from error


async def release_profile_config(
    endpoint: Endpoint,
    device: DeviceId,
    claim_uid: str,
    config: Mapping[str, object],
    *,
    timeout: float = 10.0,  # noqa: ASYNC109
) -> None:
    content = {"device": _identify(device), "claim_uid": claim_uid, "config": config}
    await _post(endpoint, "/ReleaseProfileConfig", content, timeout=timeout)


async def _post(endpoint: Endpoint, path: str, content: object, *, timeout: float) -> bytes:  # noqa: ASYNC109
    body = msgspec.json.encode(content)
    answer = await request(endpoint, "POST", path, body=body, timeout=timeout, limit=_MOST_BYTES)
    return require_ok(answer, f"{endpoint.url}{path}")
