import asyncio
import json

import pytest

from fishplate.errors import OutsideError
from fishplate.node.metadata.facts import DeviceId, NodeFacts
from fishplate.node.metadata.http import parse_endpoint
from fishplate.node.metadata.webhook import (
    WebhookProvider,
    ask_capabilities,
    get_profile_config,
    read_attributes,
    release_profile_config,
)
from fishplate.topology.attributes import Version
from tests.unit.node.metadata.conftest import Asked, Reply, Site

HEALTHY = Reply(body=b'{"cloudProvider": true, "profileProvider": true, "runtimeHook": true}')
FIRST = DeviceId(pci_address="0000:1a:00.0", mac="00:11:22:33:44:55", name="eth1")
SECOND = DeviceId(pci_address="0000:2a:00.0")


def ask(provider: WebhookProvider, *devices: DeviceId) -> NodeFacts:
    return asyncio.run(provider.attributes(devices))


def test_every_device_is_asked_for_by_its_identifiers(site: Site) -> None:
    site.replies = {"/health": HEALTHY}
    site.otherwise = Reply(body=b'{"dra.net/webhook_attr": {"string": "python"}, "a.example/n": {"int": 3}}')
    facts = ask(WebhookProvider(site.url), FIRST, SECOND)
    bodies = sorted(one.body for one in site.asked if one.path == "/GetDeviceAttributes")
    assert [json.loads(body) for body in bodies] == [
        {"mac_address": "00:11:22:33:44:55", "pci_address": "0000:1a:00.0", "name": "eth1"},
        {"pci_address": "0000:2a:00.0", "name": ""},
    ]
    assert {one.method for one in site.asked[1:]} == {"POST"}
    assert facts.of_device(FIRST) == {"a.example/n": 3, "dra.net/webhook_attr": "python"}


def test_a_unix_socket_serves_as_well(unix_site: Site) -> None:
    unix_site.replies = {"/health": HEALTHY, "/GetDeviceAttributes": Reply(body=b'{"x": {"bool": true}}')}
    assert ask(WebhookProvider(unix_site.url), SECOND).of_device(SECOND) == {"dra.net/x": True}


def test_a_server_without_the_capability_is_not_asked(site: Site) -> None:
    site.replies = {"/health": Reply(body=b'{"profileProvider": true}')}
    assert not ask(WebhookProvider(site.url), FIRST).devices
    assert [one.path for one in site.asked] == ["/health"]


def test_a_device_whose_answer_fails_keeps_its_last(site: Site) -> None:
    broken: set[str] = set()

    def decide(asked: Asked) -> Reply:
        if asked.path == "/health":
            return HEALTHY
        address = json.loads(asked.body)["pci_address"]
        return Reply(status=500) if address in broken else Reply(body=b'{"a.example/b": {"string": "old"}}')

    site.decide = decide
    provider = WebhookProvider(site.url)
    ask(provider, FIRST, SECOND)
    broken.add(SECOND.pci_address)
    facts = ask(provider, FIRST, SECOND)
    assert facts.of_device(SECOND) == {"a.example/b": "old"}
    assert "HTTP 500" in facts.state.ignored[0]
    broken.add(FIRST.pci_address)
    with pytest.raises(OutsideError, match="HTTP 500"):
        ask(provider, FIRST, SECOND)


def test_an_unhealthy_server_is_an_error(site: Site) -> None:
    for reply in (Reply(status=503), Reply(body=b"{"), Reply(body=b'{"cloudProvider": "yes"}')):
        site.replies = {"/health": reply}
        with pytest.raises(OutsideError, match="/health"):
            ask(WebhookProvider(site.url), FIRST)


def test_what_cannot_be_published_is_left_out_with_its_reason() -> None:
    body = json.dumps(
        {
            "dra.net/rdma": {"bool": True},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
            "a.example/long": {"string": "x" * 65},
            "a.example/both": {"string": "x", "int": 1},
            "a.example/none": {},
            "a.example/v": {"version": "1.2.3"},
            "a.example/w": {"version": "one"},
            "a.example/ok": {"string": "y"},
        }
    )
    kept, ignored = read_attributes(body.encode(), FIRST)
    assert kept == {"a.example/ok": "y", "a.example/v": "1.2.3"}
    assert isinstance(kept["a.example/v"], Version)
    assert len(ignored) == 6
    assert all(one.startswith("0000:1a:00.0: ") for one in ignored)


def test_more_attributes_than_a_device_may_have_are_cut() -> None:
    body = json.dumps({f"a.example/x{number:03}": {"int": number} for number in range(40)})
    kept, ignored = read_attributes(body.encode(), FIRST)
    assert (len(kept), len(ignored)) == (32, 8)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"a": 1}', b'{"a": {"int": "1"}}', b'{"a": {"int": 1.5}}', b"\xff"])
def test_an_answer_of_another_shape_is_an_error(body: bytes) -> None:
    with pytest.raises(OutsideError, match="something else than attributes"):
        read_attributes(body, FIRST)
    assert read_attributes(b"null", FIRST) == ({}, [])


def test_profiles_are_asked_for_with_the_whole_claim(site: Site) -> None:
    site.replies = {"/health": HEALTHY, "/GetProfileConfig": Reply(body=b'{"interface": {"mtu": 1450}}')}
    endpoint = parse_endpoint(site.url)
    claim = {"metadata": {"name": "c", "uid": "u-1"}}

    async def calls() -> object:
        assert (await ask_capabilities(endpoint)).profile_provider
        answer = await get_profile_config(endpoint, FIRST, claim, {"profile": "p"})
        await release_profile_config(endpoint, FIRST, "u-1", {"profile": "p"})
        return answer

    assert asyncio.run(calls()) == {"interface": {"mtu": 1450}}
    sent = {one.path: json.loads(one.body) for one in site.asked[1:]}
    assert sent["/GetProfileConfig"]["claim"] == claim
    assert sent["/GetProfileConfig"]["claim_uid"] == "u-1"
    assert sent["/ReleaseProfileConfig"]["claim_uid"] == "u-1"
    assert sent["/ReleaseProfileConfig"]["device"]["pci_address"] == "0000:1a:00.0"


def test_a_failed_profile_is_an_error(site: Site) -> None:
    site.otherwise = Reply(status=501, body=b"no")
    with pytest.raises(OutsideError, match="HTTP 501"):
        asyncio.run(get_profile_config(parse_endpoint(site.url), FIRST, {}, {}))
