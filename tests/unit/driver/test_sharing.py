import asyncio
from pathlib import Path

import msgspec
import pytest

from fishplate.driver.records import Consumer
from fishplate.driver.sharing import SharedClaims
from fishplate.errors import InputError
from fishplate.k8s.pod import Pod as PodObject
from fishplate.wire.nri import Pod
from tests.unit.driver.node_kit import NICS, NodeKit

JOINER = Pod(id="s2", uid="second-uid", namespace="ns", name="second")


def pod_object(claim: str, uid: str = "second-uid") -> PodObject:
    return msgspec.convert(
        {
            "metadata": {"name": "second", "namespace": "ns", "uid": uid},
            "spec": {
                "resourceClaims": [{"name": "rdma", "resourceClaimName": claim}],
                "containers": [{"name": "main", "resources": {"claims": [{"name": "rdma"}]}}],
            },
        },
        PodObject,
    )


@pytest.fixture
def kit(tmp_path: Path) -> NodeKit:
    made = NodeKit(tmp_path)
    first = Consumer(uid="first-uid", name="first", containers={"main": ()})
    second = Consumer(uid="second-uid", name="second", containers={"main": ()})
    ref = made.shelf.put("a", NICS[0], users=(first,), shared=True)
    assert asyncio.run(made.preparer.prepare([ref]))["a"].error == ""
    made.shelf.put("a", NICS[0], users=(first, second), shared=True)  # reserved for the second pod by now
    made.shelf.pods["second"] = pod_object("claim-a")
    return made


def join(kit: NodeKit, *, required: bool = False) -> list[str]:
    sharing = SharedClaims(kit.shelf, kit.store, kit.preparer, required=required)
    asyncio.run(sharing.find(JOINER))
    return [claim.uid for claim in kit.store.claims_of("second-uid")]


def test_a_pod_that_shares_a_prepared_claim_is_known(kit: NodeKit) -> None:
    assert join(kit) == ["a"]


def test_a_claim_of_the_same_name_and_another_uid_is_not_joined(kit: NodeKit) -> None:
    del kit.shelf.claims["a"]  # deleted by force and made anew under its name
    assert join(kit) == []


def test_a_pod_for_which_the_claim_is_not_reserved_is_not_joined(kit: NodeKit) -> None:
    kit.shelf.put("a", NICS[0], shared=True)
    assert join(kit) == []


def test_an_api_server_that_keeps_silent_holds_up_no_pod(kit: NodeKit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fishplate.driver.sharing._PATIENCE_S", 0.01)

    async def silent(namespace: str, name: str) -> None:
        await asyncio.Event().wait()

    kit.shelf.pod = silent  # type: ignore[method-assign]
    assert join(kit) == []
    with pytest.raises(InputError, match="no answer in time"):
        join(kit, required=True)
