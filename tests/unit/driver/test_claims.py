import socket
import tempfile
from pathlib import Path

import msgspec

from fishplate.driver.claims import consumer_of
from fishplate.driver.neighbours import answers
from fishplate.k8s.pod import Pod

POD = {
    "metadata": {"name": "trainer", "namespace": "ns", "uid": "u"},
    "spec": {
        "resourceClaims": [
            {"name": "rdma", "resourceClaimTemplateName": "t"},
            {"name": "other", "resourceClaimName": "elsewhere"},
        ],
        "initContainers": [{"name": "check", "resources": {"claims": [{"name": "rdma", "request": "nic"}]}}],
        "containers": [
            {"name": "main", "resources": {"claims": [{"name": "rdma"}]}},
            {
                "name": "two",
                "resources": {"claims": [{"name": "rdma", "request": "b"}, {"name": "rdma", "request": "a"}]},
            },
            {"name": "sidecar", "resources": {"claims": [{"name": "other"}]}},
            {"name": "plain"},
        ],
    },
    "status": {"resourceClaimStatuses": [{"name": "rdma", "resourceClaimName": "trainer-rdma-x"}]},
}


def test_which_containers_use_a_claim_and_which_of_its_requests() -> None:
    consumer = consumer_of(msgspec.convert(POD, Pod), "trainer-rdma-x")
    assert consumer.containers == {"check": ("nic",), "main": (), "two": ("a", "b")}
    assert consumer_of(msgspec.convert(POD, Pod), "elsewhere").containers == {"sidecar": ()}
    assert consumer_of(msgspec.convert(POD, Pod), "somebody-elses").containers == {}


def test_a_pod_that_asks_the_old_way_is_known_by_its_mappings() -> None:
    extended = {
        "resourceClaimName": "trainer-extended-resources-y",
        "requestMappings": [{"containerName": "plain", "resourceName": "rdma/ib", "requestName": "c-3-request-0"}],
    }
    pod = msgspec.convert({**POD, "status": {"extendedResourceClaimStatus": extended}}, Pod)
    assert consumer_of(pod, "trainer-extended-resources-y").containers == {"plain": ("c-3-request-0",)}


def test_a_socket_file_counts_only_if_somebody_listens() -> None:
    with tempfile.TemporaryDirectory() as short:
        path = Path(short) / "reg.sock"
        assert not answers(path)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            assert answers(path)
        assert path.exists()
        assert not answers(path)
