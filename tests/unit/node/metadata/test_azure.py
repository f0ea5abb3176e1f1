import asyncio

import pytest

from fishplate.errors import OutsideError
from fishplate.node.metadata.attribute_rules import shorten
from fishplate.node.metadata.azure import AzureProvider, read_compute
from fishplate.node.metadata.facts import NodeFacts
from tests.unit.node.metadata.conftest import Reply, Site

GROUP = "c6c749e8-a38b-470e-8c94-2a7d00001bf0"


def ask(site: Site, timeout: float = 5.0) -> NodeFacts:
    return asyncio.run(AzureProvider(site.url, timeout=timeout).attributes(()))


def test_the_metadata_service_is_asked_as_azure_wants_it(site: Site) -> None:
    ask(site)
    (asked,) = site.asked
    assert (asked.method, asked.path) == ("GET", "/metadata/instance/compute?api-version=2025-11-11&format=json")
    assert asked.headers["Metadata"] == "true"
    assert "X-Forwarded-For" not in asked.headers


def test_groups_and_size_hold_for_the_node(site: Site) -> None:
    site.otherwise = Reply(
        body=b'{"placementGroupId": "%s", "vmSize": "Standard_ND128isr_GB300_v6", "interconnectGroupId": "icg-1",'
        b' "interconnectSubgroupId": "icb-7", "osType": "Linux", "tagsList": [{"name": "a", "value": "b"}]}'
        % GROUP.encode()
    )
    facts = ask(site)
    assert facts.node == {
        "azure.dra.net/interconnectGroupId": "icg-1",
        "azure.dra.net/interconnectSubgroupId": "icb-7",
        "azure.dra.net/placementGroupId": GROUP,
        "azure.dra.net/vmSize": "Standard_ND128isr_GB300_v6",
    }
    assert (facts.fabric, facts.nvlink_domain) == (GROUP, "icb-7")
    assert not facts.devices


def test_what_is_empty_is_left_out() -> None:
    facts = read_compute(b'{"placementGroupId": "", "vmSize": "Standard_HB176rs_v4", "interconnectGroupId": "icg"}')
    assert list(facts.node) == ["azure.dra.net/interconnectGroupId", "azure.dra.net/vmSize"]
    assert (facts.fabric, facts.nvlink_domain) == (
        "icg",
        "",
    )  # no placement group: the interconnect group is the fabric


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"<html>", b'{"vmSize": 3}', b'{"placementGroupId": null}', b'{"vmSize": "\xff"}', b"[" * 10_000],
)
def test_another_answer_is_an_error(site: Site, body: bytes) -> None:
    site.otherwise = Reply(body=body)
    with pytest.raises(OutsideError, match="something else than a VM's metadata"):
        ask(site)


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_a_refusal_is_an_error_with_its_code(site: Site, status: int) -> None:
    site.otherwise = Reply(status=status, body=b"busy")
    with pytest.raises(OutsideError, match=f"HTTP {status}: 'busy'"):
        ask(site)


def test_a_huge_answer_is_refused(site: Site) -> None:
    site.otherwise = Reply(body=b'{"vmSize": "' + b"x" * 300_000 + b'"}')
    with pytest.raises(OutsideError, match="larger than"):
        ask(site)


def test_a_slow_service_is_given_up(site: Site) -> None:
    site.otherwise = Reply(hold=True)
    with pytest.raises(OutsideError, match="no answer within"):
        ask(site, timeout=0.05)


def test_long_identifiers_that_differ_stay_different() -> None:
    base = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/ai/providers/interconnectGroups/"
    one, two = shorten(f"{base}one"), shorten(f"{base}two")
    assert one != two
    assert len(one.encode()) == 64
    assert one.startswith("/subscriptions/00000000")
    assert shorten("x" * 64) == "x" * 64
    assert len(shorten("ü" * 60).encode()) <= 64


def test_control_characters_never_reach_the_api() -> None:
    facts = read_compute(b'{"vmSize": "a\\u0000b", "placementGroupId": "p"}')
    assert list(facts.node) == ["azure.dra.net/placementGroupId"]
    assert "control characters" in facts.state.ignored[0]
