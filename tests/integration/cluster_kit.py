"""Pods and claims at an API server whose scheduler and controllers are real, for tests of the driver."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from tests.integration.driver_node import wait_for

DRA = "/apis/resource.k8s.io/v1"
SLICES = f"{DRA}/resourceslices"


class Requests(Protocol):
    def request(
        self, method: str, path: str, body: dict[str, object] | None = None, *, kind: str = ...
    ) -> dict[str, object]: ...


class ClusterKit:
    def __init__(self, api: Requests, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._claims = f"{DRA}/namespaces/{namespace}/resourceclaims"

    def get(self, path: str) -> Any:  # noqa: ANN401
        return self.api.request("GET", path)

    def create(self, path: str, body: object) -> Any:  # noqa: ANN401
        plain = msgspec.to_builtins(body)
        assert isinstance(plain, dict)
        return self.api.request("POST", path, plain)

    def create_namespace(self) -> None:
        self.create("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        wait_for("the service account", self._has_account)

    def _has_account(self) -> bool:
        listing: Any = self.get(f"/api/v1/namespaces/{self.namespace}/serviceaccounts")
        return any(one["metadata"]["name"] == "default" for one in listing["items"])

    # -- claims and pods -----------------------------------------------------------------------------------------

    def create_template(self, template: Any) -> None:  # noqa: ANN401
        body = msgspec.to_builtins(template)
        body["metadata"]["namespace"] = self.namespace
        self.create(f"{DRA}/namespaces/{self.namespace}/resourceclaimtemplates", body)

    def create_claim(self, name: str, devices: Mapping[str, object]) -> Any:  # noqa: ANN401
        return self.create(self._claims, {"metadata": {"name": name}, "spec": {"devices": devices}})

    def create_pod(self, name: str, *, template: str = "", claim: str = "", **spec: object) -> Any:  # noqa: ANN401
        """Containers `main`, which uses the claim, and `sidecar`, which does not."""
        source = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
        return self.create(
            self._pods,
            {
                "metadata": {"name": name},
                "spec": {
                    "resourceClaims": [{"name": "rdma", **source}],
                    "containers": [
                        {"name": "main", "image": "none", "resources": {"claims": [{"name": "rdma"}]}},
                        {"name": "sidecar", "image": "none"},
                    ],
                    "terminationGracePeriodSeconds": 0,
                    **spec,
                },
            },
        )

    def scheduled(self, name: str, timeout_s: float = 30.0) -> tuple[Any, Any]:
        """The pod, bound, and its claim, allocated and reserved."""

        def look() -> tuple[Any, Any] | None:
            pod = self.get(f"{self._pods}/{name}")
            if not pod["spec"].get("nodeName"):
                return None
            claim = self.claim_of(pod)
            return (pod, claim) if claim and claim.get("status", {}).get("reservedFor") else None

        try:
            found: tuple[Any, Any] = wait_for(f"pod {name} to be scheduled", look, timeout_s)
        except AssertionError as error:
            status = self.get(f"{self._pods}/{name}").get("status")
            raise AssertionError(f"{error}; the API server says {status}") from error
        return found

    def claim_of(self, pod: Any) -> Any:  # noqa: ANN401
        (entry,) = pod["spec"]["resourceClaims"]
        made = {one["name"]: one["resourceClaimName"] for one in pod.get("status", {}).get("resourceClaimStatuses", [])}
        name = entry.get("resourceClaimName") or made.get(entry["name"])
        return self.get(f"{self._claims}/{name}") if name else None

    def claim(self, name: str) -> Any:  # noqa: ANN401
        return self.get(f"{self._claims}/{name}")

    def pending_because(self, name: str) -> str:
        """The scheduler's words for a pod that it cannot place."""

        def look() -> str | None:
            pod = self.get(f"{self._pods}/{name}")
            for condition in pod.get("status", {}).get("conditions", []):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    return str(condition["message"])
            return None

        words: str = wait_for(f"pod {name} to be called unschedulable", look)
        return words

    def delete_pod(self, name: str) -> None:
        self.api.request("DELETE", f"{self._pods}/{name}?gracePeriodSeconds=0")
        wait_for(f"pod {name} to go", lambda: not self._exists(f"{self._pods}/{name}"))

    def _exists(self, path: str) -> bool:
        try:
            self.get(path)
        except Exception as error:
            if getattr(error, "status", None) == 404:
                return False
            raise
        return True

    def delete(self, path: str) -> None:
        if self._exists(path):
            self.api.request("DELETE", path)

    # -- slices --------------------------------------------------------------------------------------------------

    def slices(self, node: str, driver: str = "dra.net") -> list[Any]:
        listing: Any = self.get(f"{SLICES}?fieldSelector=spec.nodeName={node},spec.driver={driver}")
        return list(listing["items"])


def allocated(claim: Any, driver: str = "dra.net") -> list[str]:  # noqa: ANN401
    results = claim["status"]["allocation"]["devices"]["results"]
    return [one["device"] for one in results if one["driver"] == driver]
