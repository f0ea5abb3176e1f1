"""HTTP: what is not found, not allowed, not acceptable, not readable; tokens; compression; health."""

from tests.conformance.api import objects
from tests.conformance.api.conversation import Conversation


def _maps(talk: Conversation) -> str:
    return f"/api/v1/namespaces/{talk.namespace}/configmaps"


def kinds_nobody_knows_are_not_found(talk: Conversation) -> None:
    talk.get("/api/v1/unicorns")
    talk.get(f"/api/v1/namespaces/{talk.namespace}/unicorns/one")
    talk.get("/apis/example.test/v1/unicorns")
    talk.get("/apis/resource.k8s.io/v9/resourceslices")
    talk.get("/nothing")
    talk.post("/apis/example.test/v1/unicorns", {"kind": "Unicorn"})
    talk.get(f"{_maps(talk)}/one/unicorn")


def media_types_nobody_reads_are_unsupported(talk: Conversation) -> None:
    talk.post(_maps(talk), b"a=b", headers={"Content-Type": "application/x-www-form-urlencoded"})
    talk.post(_maps(talk), b"<x/>", headers={"Content-Type": "text/xml"})


def media_types_nobody_writes_are_not_acceptable(talk: Conversation) -> None:
    talk.get(_maps(talk), headers={"Accept": "text/html"})
    talk.get(_maps(talk), headers={"Accept": "application/json;as=Poem;v=v1;g=meta.k8s.io"})


def anything_is_acceptable_as_json(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one"), headers={"Accept": "*/*"})
    talk.get(f"{_maps(talk)}/one", headers={"Accept": "application/*"})


def yaml_is_written_when_asked(talk: Conversation) -> None:
    talk.get(f"/api/v1/namespaces/{talk.namespace}", headers={"Accept": "application/yaml"})
    talk.transcript[-1]["body"] = sorted(line.split(":")[0] for line in talk.transcript[-1]["body"].splitlines())


def methods_that_make_no_sense_are_not_allowed(talk: Conversation) -> None:
    talk.put(_maps(talk), objects.config_map("one"))
    talk.post(f"{_maps(talk)}/one", objects.config_map("one"))
    talk.patch(_maps(talk), {}, "merge")
    talk.post("/api/v1/configmaps", objects.config_map("one"))
    talk.delete(f"{objects.DRA}/namespaces/{talk.namespace}/resourceclaims/one/status")


def a_wrong_token_is_unauthorized(talk: Conversation) -> None:
    talk.ask("GET", _maps(talk), token="wrong")


def no_token_is_nobody(talk: Conversation) -> None:
    talk.ask("GET", "/api/v1/configmaps", token="")
    talk.ask("GET", f"{_maps(talk)}/one", token="")
    talk.ask("POST", f"{objects.DRA}/resourceslices", objects.resource_slice("nobody"), token="")
    talk.ask("GET", "/apis", token="")


def health_is_told_to_everybody(talk: Conversation) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        talk.ask("GET", path, token="")


def long_answers_are_compressed_when_asked(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("long", {"a": "x" * 200_000}))
    talk.transcript.clear()
    got = talk.get(f"{_maps(talk)}/long", headers={"Accept-Encoding": "gzip"})
    talk.transcript[-1]["body"] = len(got["data"]["a"])
    talk.get(f"{_maps(talk)}/nobody", headers={"Accept-Encoding": "gzip"})


def a_body_too_large_is_refused(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one", {"a": "x" * (3 << 20)}))


def a_config_map_has_a_limit(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one", {"a": "x" * (1 << 20)}))


def query_values_that_make_no_sense_are_refused(talk: Conversation) -> None:
    talk.post(_maps(talk), objects.config_map("one"), fieldManager="x" * 129)
    talk.get(_maps(talk), timeoutSeconds="soon")
