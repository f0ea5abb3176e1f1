"""Azure's instance metadata: which placement group, interconnect group and size this VM has.

Every device carries these, because the scheduler sees devices only: a claim pins its pods to one InfiniBand fabric by
`azure.dra.net/placementGroupId`. A placement group, or an interconnect group, is one fabric; an interconnect subgroup
is one NVLink domain (Microsoft.Compute: InterconnectGroupScope InfiniBand, SubgroupProfileScope VerticalConnect).
"""

from collections.abc import Sequence

import msgspec

from fishplate.errors import OutsideError
from fishplate.node.metadata.attribute_rules import shorten, sift
from fishplate.node.metadata.facts import DeviceId, FactsState, NodeFacts, ProviderName
from fishplate.node.metadata.http import parse_endpoint, request, require_ok

ENDPOINT = "http://169.254.169.254"
API_VERSION = "2025-11-11"  # the first with the interconnect groups
_PATH = "/metadata/instance/compute"
_MOST_BYTES = 256 * 1024


class Compute(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The part of the answer we read; the rest may be anything."""

    vm_size: str = ""
    placement_group_id: str = ""
    interconnect_group_id: str = ""
    interconnect_subgroup_id: str = ""


class AzureProvider:
    name: ProviderName = "azure"
    interval = 600.0
    per_device = False

    def __init__(self, endpoint: str = ENDPOINT, *, timeout: float = 5.0) -> None:
        self._endpoint = parse_endpoint(endpoint)
        self._timeout = timeout

    async def attributes(self, devices: Sequence[DeviceId]) -> NodeFacts:
        path = f"{_PATH}?api-version={API_VERSION}&format=json"
        where = f"{self._endpoint.url}{_PATH}"
        answer = await request(
            self._endpoint, "GET", path, headers={"Metadata": "true"}, timeout=self._timeout, limit=_MOST_BYTES
        )
        return read_compute(require_ok(answer, where), where)


def read_compute(body: bytes, where: str = "") -> NodeFacts:
    try:
        compute = msgspec.json.decode(body, type=Compute)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OutsideError(f"answered with something else than a VM's metadata: {error}", where=where) from error
    values = {
        "placementGroupId": compute.placement_group_id,
        "vmSize": compute.vm_size,
        "interconnectGroupId": compute.interconnect_group_id,
        "interconnectSubgroupId": compute.interconnect_subgroup_id,
    }
    node, ignored = sift({f"azure.dra.net/{name}": shorten(text) for name, text in values.items() if text})
    return NodeFacts(
        node=node,
        fabric=compute.placement_group_id or compute.interconnect_group_id,
        nvlink_domain=compute.interconnect_subgroup_id,
        state=FactsState(provider="azure", ignored=tuple(ignored)),
    )
