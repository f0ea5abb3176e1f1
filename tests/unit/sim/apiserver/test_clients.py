"""The product's own clients, unmodified, on the embedded server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from fishplate.k8s import api as driver_api
from fishplate.k8s.api import Api, Change, ConflictError, GoneError, RefusedError
from fishplate.k8s.client import ClusterReader, NotFoundError
from fishplate.k8s.resource import ObjectMeta, ResourcePool, ResourceSlice, ResourceSliceSpec
from fishplate.sim.apiserver.server import ApiServer, serving

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


@contextlib.asynccontextmanager
async def connected(tmp_path: Path) -> AsyncIterator[tuple[ApiServer, Api]]:
    async with serving(tmp_path) as server:
        client = driver_api.connect(str(tmp_path / "kubeconfig"))
        try:
            yield server, client
        finally:
            await client.close()


def _slice(name: str, node: str = "n1", count: int = 1) -> ResourceSlice:
    pool = ResourcePool(name=node, generation=1, resource_slice_count=count)
    return ResourceSlice(
        metadata=ObjectMeta(name=name), spec=ResourceSliceSpec(driver="dra.net", node_name=node, pool=pool)
    )


class _Stored(msgspec.Struct, frozen=True, rename="camel"):
    """Any object, as far as these tests look at it."""

    metadata: "_Meta"
    status: dict[str, object] = {}


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""


async def test_the_drivers_client_creates_reads_replaces_and_deletes(tmp_path: Path) -> None:
    async with connected(tmp_path) as (_, client):
        await client.create(SLICES, _slice("one"))
        with pytest.raises(ConflictError, match="already exists"):
            await client.create(SLICES, _slice("one"))
        made = await client.get(f"{SLICES}/one", _Stored)
        changed = await client.replace(f"{SLICES}/one", _slice("one", count=2))
        assert changed.spec.pool.resource_slice_count == 2
        with pytest.raises(ConflictError, match="precondition"):
            await client.delete(f"{SLICES}/one", uid="someone-else")
        with pytest.raises(ConflictError, match="ResourceVersion"):
            await client.delete(f"{SLICES}/one", uid=made.metadata.uid, resource_version=made.metadata.resource_version)
        await client.delete(f"{SLICES}/one", uid=made.metadata.uid)
        await client.delete(f"{SLICES}/one", uid=made.metadata.uid)
        with pytest.raises(NotFoundError):
            await client.get(f"{SLICES}/one", _Stored)


async def test_the_drivers_client_is_told_what_is_wrong(tmp_path: Path) -> None:
    async with connected(tmp_path) as (_, client):
        with pytest.raises(RefusedError, match="must be greater than zero"):
            await client.create(SLICES, _slice("one", count=0))
        with pytest.raises(RefusedError, match="field label not supported"):
            await client.list(SLICES, _Stored, {"fieldSelector": "spec.colour=green"})


async def test_the_drivers_client_applies_a_claims_status(tmp_path: Path) -> None:
    async with connected(tmp_path) as (_, client):
        requests = [{"name": "nic", "exactly": {"deviceClassName": "c"}}]
        claim = {"metadata": {"name": "one"}, "spec": {"devices": {"requests": requests}}}
        made = await client.create(CLAIMS, claim)
        result = {"request": "nic", "driver": "dra.net", "pool": "n1", "device": "nic-0"}
        status = {"status": {"allocation": {"devices": {"results": [result]}}}}
        await client.replace(f"{CLAIMS}/one/status", {**made, **status})
        device = {"driver": "dra.net", "pool": "n1", "device": "nic-0", "data": {"mtu": 9000}}
        head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "one"}}
        await client.apply(f"{CLAIMS}/one/status", {**head, "status": {"devices": [device]}}, manager="dra.net")
        seen = await client.get(f"{CLAIMS}/one", _Stored)
        assert seen.status["devices"] == [{**device, "conditions": None}]


async def test_the_drivers_client_watches_resumes_and_learns_that_it_is_too_late(tmp_path: Path) -> None:
    async with connected(tmp_path) as (server, client):
        await client.create(SLICES, _slice("one"))
        listing = await client.list(SLICES, _Stored, {"fieldSelector": "spec.nodeName=n1"})
        assert [item.metadata.name for item in listing.items] == ["one"]
        await client.create(SLICES, _slice("two"))
        await client.create(SLICES, _slice("elsewhere", node="n2"))
        await client.create(SLICES, _slice("three"))
        seen: list[str] = []
        version = ""
        wanted = {"fieldSelector": "spec.nodeName=n1"}
        stream = client.watch(SLICES, _Stored, query=wanted, resource_version=listing.resource_version)
        async for told in stream:
            if isinstance(told, Change):
                seen.append(f"{told.type} {told.object.metadata.name}")
            else:
                version = told
            if len(seen) == 2 and version:
                break
        assert seen == ["ADDED two", "ADDED three"]
        server.service.store.compact()
        with pytest.raises(GoneError, match="too old"):
            async for _ in client.watch(SLICES, _Stored, resource_version="1"):
                pass


async def test_the_reader_lists_page_by_page_and_knows_what_is_not_there(tmp_path: Path) -> None:
    import httpx2
    from lightkube.config.client_adapter import Client, ConnectionParams
    from lightkube.config.kubeconfig import KubeConfig

    async with connected(tmp_path) as (_, client):
        for index in range(501):
            await client.create(SLICES, _slice(f"s-{index:03}"))
        config = KubeConfig.from_file(tmp_path / "kubeconfig").get()
        assert config is not None
        reader = ClusterReader(Client(config, ConnectionParams(timeout=httpx2.Timeout(20))))
        slices = await asyncio.to_thread(lambda: list(reader.list(SLICES, ResourceSlice)))
        assert [s.metadata.name for s in slices] == [f"s-{i:03}" for i in range(501)]
        with pytest.raises(NotFoundError, match='"nobody" not found'):
            await asyncio.to_thread(reader.get, f"{SLICES}/nobody", msgspec.Raw)
        reader._http.close()
