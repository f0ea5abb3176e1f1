"""Who is asking. A token is a user who may do everything; nobody may do next to nothing.

There are no roles here: what rights the driver needs is tested where they are real, in the lab.
"""

from collections.abc import Mapping

from fishplate.sim.apiserver.request import Request, Target
from fishplate.sim.apiserver.status import ApiError, forbidden

ANONYMOUS = "system:anonymous"
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def authenticate(headers: Mapping[str, str], tokens: Mapping[str, str]) -> str:
    """The user's name; 401 if there is a token and it is nobody's."""
    said = headers.get("authorization", "")
    scheme, _, token = said.partition(" ")
    if scheme.lower() != "bearer" or not token:
        return ANONYMOUS
    user = tokens.get(token.strip())
    if user is None:
        raise ApiError(401, "Unauthorized")
    return user


def authorize(user: str, request: Request, target: Target | None) -> None:
    if user != ANONYMOUS or request.path in _PUBLIC:
        return
    if target is None:
        message = f'forbidden: User "{user}" cannot {request.method.lower()} path "{request.path}"'
        raise ApiError(403, message, details={})
    verb = _VERBS.get(request.method) or ("get" if target.name else "list")
    kind = target.kind
    resource = f"{kind.plural}/{target.subresource}" if target.subresource else kind.plural
    place = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
    said = f'User "{user}" cannot {verb} resource "{resource}" in API group "{kind.group}" {place}'
    raise forbidden(kind.name, target.name, said)
