"""Which form of an answer a client accepts: JSON, YAML, a table, metadata alone."""

import msgspec

from fishplate.sim.apiserver.status import ApiError

_PLAIN = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_STREAMS = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
_FORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


class Form(msgspec.Struct, frozen=True):
    """`media` is application/json or application/yaml; `kind` is Table, PartialObjectMetadata or nothing."""

    media: str = "application/json"
    kind: str = ""


_JSON = Form()


def negotiate(accept: str, *, listing: bool = False) -> Form:
    """The first form that can be had; 406 if there is none."""
    if not accept or accept in ("application/json", "*/*"):
        return _JSON
    refused_form = False
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        said = dict(part.partition("=")[::2] for part in parameters)
        if media not in ("application/json", "application/yaml", "*/*"):
            continue
        form = said.get("as", "")
        if form and (form not in _FORMS or said.get("g") != "meta.k8s.io" or said.get("v") != "v1"):
            refused_form = True
            continue
        chosen = "application/yaml" if media == "application/yaml" else "application/json"
        return Form(chosen, form.removesuffix("List"))
    if refused_form:
        raise ApiError(406, f"only the following media types are accepted: {', '.join(_PLAIN)}")
    offered = (*_PLAIN, *_STREAMS) if listing else _PLAIN
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(offered)}"
    raise ApiError(406, message, details={})


def wants_aggregated(accept: str) -> bool:
    return "g=apidiscovery.k8s.io" in accept and "v=v2;" in accept + ";" and "as=APIGroupDiscoveryList" in accept
