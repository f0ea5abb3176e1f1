"""A request in, an answer out: authentication, routing, verbs, the form of the answer. No sockets."""

from collections.abc import Mapping

from fishplate.k8s.yaml import dump_yaml
from fishplate.sim.apiserver import discovery, openapi
from fishplate.sim.apiserver.clock import Clock
from fishplate.sim.apiserver.deletion import Deletion
from fishplate.sim.apiserver.garbage import Collector
from fishplate.sim.apiserver.kinds import NAMESPACE, Kind
from fishplate.sim.apiserver.lists import Page, select
from fishplate.sim.apiserver.negotiation import Form, negotiate, wants_aggregated
from fishplate.sim.apiserver.options import ListOptions, read_list_options
from fishplate.sim.apiserver.ownership import Write
from fishplate.sim.apiserver.request import Answer, Request, Target, encode_json, parse_target
from fishplate.sim.apiserver.status import ApiError, no_such_method, no_such_resource
from fishplate.sim.apiserver.store import Store, Stored
from fishplate.sim.apiserver.tables import make_table, partial_metadata
from fishplate.sim.apiserver.users import authenticate, authorize
from fishplate.sim.apiserver.values import Object, Value
from fishplate.sim.apiserver.verbs import Verbs
from fishplate.sim.apiserver.watch import Watch

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_NOT_FOUND = Answer(404, b"404 page not found\n", media="text/plain; charset=utf-8")


class Service:
    def __init__(
        self, tokens: Mapping[str, str], *, store: Store | None = None, clock: Clock | None = None, address: str = ""
    ) -> None:
        self.store = store or Store()
        self.clock = clock or Clock()
        self.verbs = Verbs(self.store, self.clock)
        self.deletion = Deletion(self.verbs)
        self.collector = Collector(self.store, self.deletion)
        self.address = address
        self._tokens = tokens
        for name in _NAMESPACES:
            write = Write("kube-apiserver", "", self.clock.stamp())
            made: Object = {"metadata": {"name": name}, "spec": {}, "status": {}}
            self.verbs.insert(Target(NAMESPACE), made, write)
        self.collector.step()

    def answer(self, request: Request) -> Answer:
        """Never raises for what a client did; a refusal is an answer too."""
        try:
            return self._answer(request)
        except ApiError as error:
            headers: tuple[tuple[str, str], ...] = ()
            if error.details and error.details.get("retryAfterSeconds"):
                headers = (("Retry-After", str(error.details["retryAfterSeconds"])),)
            return Answer(error.code, encode_json(error.body()), headers=headers)

    def _answer(self, request: Request) -> Answer:
        user = authenticate(request.headers, self._tokens)
        path = request.path
        target = parse_target(path)
        authorize(user, request, target)
        if target is not None:
            return self._serve(target, request)
        if request.method != "GET":
            return _NOT_FOUND
        return self._tell(path, request)

    # Kinds.

    def _serve(self, target: Target, request: Request) -> Answer:
        method = request.method
        match method:
            case "GET" if target.name:
                return self._get(target, request)
            case "GET":
                return self._list(target, request)
            case "POST" if target.subresource == "binding":
                return Answer(201, encode_json(self.deletion.bind(target, request)))
            case "POST" if not target.name:
                form = self._form(request)
                stored, warnings = self.verbs.create(target, request)
                return self._one(stored, request, form, status=201, warnings=warnings)
            case "PUT" if target.name and target.subresource != "binding":
                form = self._form(request)
                stored, warnings = self.verbs.replace(target, request)
                return self._one(stored, request, form, warnings=warnings)
            case "PATCH" if target.name and target.subresource in ("", "status"):
                form = self._form(request)
                stored, warnings, fresh = self.verbs.patch(target, request)
                return self._one(stored, request, form, status=201 if fresh else 200, warnings=warnings)
            case "DELETE" if not target.subresource:
                return self._delete(target, request)
        raise no_such_method()

    def _form(self, request: Request, *, listing: bool = False) -> Form:
        return negotiate(request.headers.get("accept", ""), listing=listing)

    def _get(self, target: Target, request: Request) -> Answer:
        if target.subresource == "binding":
            raise no_such_method()
        return self._one(self.verbs.find(target), request, self._form(request))

    def _one(
        self, stored: Stored, request: Request, form: Form, *, status: int = 200, warnings: list[str] | None = None
    ) -> Answer:
        headers = tuple(("Warning", f'299 - "{_escape(text)}"') for text in warnings or ())
        if form.kind == "Table":
            meta = {"resourceVersion": stored.object["metadata"].get("resourceVersion", "")}
            table = self._table(stored.kind, [stored], meta, request)
            return _encode(status, table, form, headers)
        if form.kind:
            return _encode(status, partial_metadata(stored), form, headers)
        if form.media == "application/json":
            return Answer(status, stored.encode(), headers=headers)
        head = {"apiVersion": stored.kind.api_version, "kind": stored.kind.kind}
        return _encode(status, head | stored.object, form, headers)

    def _table(self, kind: Kind, items: list[Stored], metadata: Object, request: Request) -> Object:
        include = request.query.get("includeObject", "Metadata")
        return make_table(kind, items, metadata, include, self.clock.now())

    def _list(self, target: Target, request: Request) -> Answer:
        form = self._form(request, listing=True)
        options = read_list_options(request.query)
        if options.watch:
            return self._watch(target, request, options, form)
        page = self.verbs.list_page(target, options)
        return self._page(target, page, request, form)

    def _page(self, target: Target, page: Page, request: Request, form: Form) -> Answer:
        kind = target.kind
        if form.kind == "Table":
            return _encode(200, self._table(kind, page.items, page.metadata(), request), form)
        if form.kind:
            items = [partial_metadata(stored) for stored in page.items]
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            return _encode(200, head | {"metadata": page.metadata(), "items": items}, form)
        if form.media != "application/json":
            head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version}
            return _encode(
                200, head | {"metadata": page.metadata(), "items": [stored.object for stored in page.items]}, form
            )
        head_bytes = b'{"kind":"%sList","apiVersion":"%s","metadata":%s,"items":[' % (
            kind.kind.encode(),
            kind.api_version.encode(),
            encode_json(page.metadata()),
        )
        return Answer(200, head_bytes + b",".join([stored.data for stored in page.items]) + b"]}")

    def _watch(self, target: Target, request: Request, options: ListOptions, form: Form) -> Answer:
        selection = select(target.kind, target.namespace, options)
        render = None
        if form.kind == "Table":

            def render(stored: Stored) -> bytes:
                meta = {"resourceVersion": stored.object["metadata"]["resourceVersion"]}
                return encode_json(self._table(stored.kind, [stored], meta, request))

        elif form.kind:

            def render(stored: Stored) -> bytes:
                return encode_json(partial_metadata(stored))

        return Answer(200, watch=Watch(self.store, selection, options, render))

    def _delete(self, target: Target, request: Request) -> Answer:
        form = self._form(request)
        if not target.name:
            if target.kind is NAMESPACE:
                raise no_such_method()
            listing = read_list_options(request.query)
            return self._page(target, self.deletion.delete_collection(target, request, listing), request, form)
        done = self.deletion.delete(target, request)
        if done.gone and target.kind.answers_status:
            details = target.kind.name.details(target.name, uid=done.stored.uid)
            head: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
            return _encode(200, head | {"details": details}, form)
        return self._one(done.stored, request, form)

    # Everything else.

    def _tell(self, path: str, request: Request) -> Answer:
        if path in ("/healthz", "/livez", "/readyz"):
            return Answer(200, b"ok", media="text/plain; charset=utf-8")
        accept = request.headers.get("accept", "")
        found = self._discover(path.rstrip("/"), accept)
        if found is None:
            return _NOT_FOUND
        media = "application/json"
        if found.get("kind") == "APIGroupDiscoveryList":
            media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        return Answer(200, encode_json(found), media=media)

    def _discover(self, path: str, accept: str) -> Object | None:
        parts = path.strip("/").split("/")
        match parts:
            case ["api"]:
                return (
                    discovery.aggregated(core=True)
                    if wants_aggregated(accept)
                    else discovery.core_versions(self.address)
                )
            case ["apis"]:
                return discovery.aggregated(core=False) if wants_aggregated(accept) else discovery.group_list()
            case ["api", version]:
                return discovery.resource_list("", version) or _refuse()
            case ["apis", group]:
                return discovery.group_info(group)
            case ["apis", group, version]:
                return discovery.resource_list(group, version)
            case ["version"]:
                return discovery.version_info()
            case ["openapi", "v2"]:
                return openapi.document_v2()
            case ["openapi", "v3"]:
                return openapi.index_v3()
            case ["openapi", "v3", "api", version]:
                return openapi.document_v3("", version)
            case ["openapi", "v3", "apis", group, version]:
                return openapi.document_v3(group, version)
        return None


def _refuse() -> Object:
    raise no_such_resource()


def _sorted(value: Value) -> Value:
    match value:
        case dict():
            return {key: _sorted(value[key]) for key in sorted(value)}
        case list():
            return [_sorted(one) for one in value]
    return value


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _encode(status: int, value: Object, form: Form, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    if form.media == "application/yaml":
        return Answer(status, dump_yaml(_sorted(value)).encode(), media=form.media, headers=headers)
    return Answer(status, encode_json(value), headers=headers)
