"""Discovery, as far as the embedded server serves the same kinds."""

from tests.conformance.api.conversation import Conversation, Value

_OURS = {
    "bindings": "v1",
    "configmaps": "v1",
    "events": "v1",
    "namespaces": "v1",
    "namespaces/finalize": "v1",
    "namespaces/status": "v1",
    "nodes": "v1",
    "nodes/status": "v1",
    "pods": "v1",
    "pods/binding": "v1",
    "pods/status": "v1",
    "secrets": "v1",
    "serviceaccounts": "v1",
}


def _group(talk: Conversation, path: str, wanted: set[str] | None = None) -> Value:
    got = talk.get(path)
    said = talk.transcript[-1]["body"]
    keep = [r for r in said["resources"] if wanted is None or r["name"] in wanted]
    for resource in keep:
        resource.pop("storageVersionHash", None)
    said["resources"] = sorted(keep, key=lambda r: str(r["name"]))
    return got


def the_core_group(talk: Conversation) -> None:
    got = talk.get("/api")
    talk.transcript.clear()
    talk.note("api", kind=got["kind"], versions=got["versions"])
    _group(talk, "/api/v1", set(_OURS) - {"bindings"})


def the_resource_group(talk: Conversation) -> None:
    talk.get("/apis/resource.k8s.io")
    _group(talk, "/apis/resource.k8s.io/v1")


def the_other_groups(talk: Conversation) -> None:
    _group(talk, "/apis/coordination.k8s.io/v1")
    _group(talk, "/apis/batch/v1", {"jobs", "jobs/status"})
    _group(talk, "/apis/apps/v1", {"daemonsets", "daemonsets/status"})


def all_groups_at_once(talk: Conversation) -> None:
    got = talk.get("/apis")
    talk.transcript.clear()
    mine = [g for g in got["groups"] if g["name"] in ("resource.k8s.io", "coordination.k8s.io")]
    talk.note("groups", kind=got["kind"], groups=sorted(mine, key=lambda g: str(g["name"])))


def all_kinds_at_once(talk: Conversation) -> None:
    wanted = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    got = talk.get("/apis", headers={"Accept": wanted})
    talk.transcript.clear()
    mine = [g for g in got["items"] if g["metadata"]["name"] == "resource.k8s.io"]
    for group in mine:
        for version in group["versions"]:
            version["resources"] = sorted(version["resources"], key=lambda r: str(r["resource"]))
    talk.note("kinds", kind=got["kind"], version=got["apiVersion"], mine=mine)


def the_version(talk: Conversation) -> None:
    got = talk.get("/version")
    talk.transcript.clear()
    talk.note("version", major=got["major"], minor=got["minor"], git=got["gitVersion"])
