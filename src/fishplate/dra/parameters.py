"""What a claim says to the driver: DRANET's NetworkConfig as opaque parameters, and a section of our own, `rdma`.

Decoding is strict and says everything at once, in upstream's words where people search for them. Every field upstream
knows is known here; one that this release cannot carry out (anything that moves or configures an interface) is refused
by its name. Nothing is ever ignored: a pod that asked for MTU 9000 and got 1500 would fail in a way nobody can see.

Several configurations may speak of one request. Those of the class come first, then those of the claim, each in its
order, and a later one overrides an earlier one field by field. Upstream takes the first and forgets the rest.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from fishplate.documents import Path, Problem, find_problems, format_path
from fishplate.dra.parameter_rules import find_value_problems
from fishplate.dra.parameter_schema import UNSUPPORTED, NetworkConfig, Rdma
from fishplate.errors import DocumentError
from fishplate.k8s.claim import DeviceAllocationConfiguration

# Twice what the API server accepts (resource.k8s.io/v1 OpaqueParametersMaxLength).
_MOST_BYTES = 20 * 1024
_NOT_JSON = "failed to unmarshal JSON data"
_NOT_STRICT = "failed to unmarshal strict JSON data"
_FROM_CLASS = "FromClass"
_MOST_SHOWN = 300
_MOST_PROBLEMS = 16

Raw = bytes | str | msgspec.Raw | Mapping[str, object] | None


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver does for one request. None where nobody said anything: the driver's own default holds."""

    management_nodes: bool | None = None  # umad and issm as well; the operator must allow it
    nccl_environment: bool | None = None  # NCCL_IB_HCA in the container


def choose_parameters(
    config: Iterable[DeviceAllocationConfiguration], request: str, *, driver: str = "dra.net"
) -> Parameters:
    """The parameters for one allocated request, named as in the allocation's results (`req` or `req/sub`). Raises one
    DocumentError with all problems of all configurations that speak of it."""
    chosen = Parameters()
    problems: list[str] = []
    for place, one in _ordered(config, request, driver):
        assert one.opaque is not None
        found, wrong = decode_parameters(one.opaque.parameters)
        problems += [f"{place}: {what}" for what in wrong[:_MOST_PROBLEMS]]
        problems += [f"{place}: and {len(wrong) - _MOST_PROBLEMS} more"] if len(wrong) > _MOST_PROBLEMS else []
        chosen = _override(chosen, found)
    if problems:
        raise DocumentError("; ".join(problems), where=f"parameters for request {request}", remedy=_remedy(driver))
    return chosen


def _remedy(driver: str) -> str:
    return f"mend the opaque parameters for driver {driver} in the claim or its DeviceClass"


def _ordered(
    config: Iterable[DeviceAllocationConfiguration], request: str, driver: str
) -> Iterator[tuple[str, DeviceAllocationConfiguration]]:
    own = [
        (f"config[{index}] ({'class' if one.source == _FROM_CLASS else 'claim'})", one)
        for index, one in enumerate(config)
        if one.opaque is not None and one.opaque.driver == driver and applies(one.requests, request)
    ]
    return iter(sorted(own, key=lambda pair: pair[1].source != _FROM_CLASS))


def applies(requests: Sequence[str], request: str) -> bool:
    """Whether a configuration for these requests is meant for this one: all if it names none; `req` covers every
    alternative of it, `req/sub` only that one."""
    return not requests or request in requests or request.partition("/")[0] in requests


def _override(earlier: Parameters, later: Parameters) -> Parameters:
    given = {name: value for name in later.__struct_fields__ if (value := getattr(later, name)) is not None}
    return msgspec.structs.replace(earlier, **given)


# -- decoding ----------------------------------------------------------------------------------------------------


def decode_parameters(raw: object) -> tuple[Parameters, list[str]]:
    """The parameters, and everything that is wrong with them: then they must not be used. Give the bytes as the API
    server sent them where there are any; duplicate fields cannot be seen afterwards."""
    problems = find_parameter_problems(raw)
    if problems:
        return Parameters(), [phrase(problem) + _hint(problem) for problem in problems]
    value = _load(raw)[0]
    rdma = msgspec.convert(value or {}, NetworkConfig).rdma or Rdma()
    return Parameters(management_nodes=rdma.management_nodes, nccl_environment=rdma.nccl_environment), []


def phrase(problem: Problem) -> str:
    """One line for the kubelet, which puts it into the pod's events: of bounded length, and good UTF-8 in any case."""
    place = "" if not problem.path or problem.what.startswith(_NOT_STRICT) else f"{format_path(problem.path)}: "
    return f"{place}{problem.what}"[:_MOST_SHOWN].encode("utf-8", "replace").decode()


def _hint(problem: Problem) -> str:
    return f" ({problem.remedy})" if problem.remedy else ""


def find_parameter_problems(raw: object) -> list[Problem]:
    """Each problem with the path of its field, for whoever knows the lines."""
    try:
        value, duplicates = _load(raw)
    except ValueError as error:
        return [Problem((), f"{_NOT_JSON}: {error}")]
    if value is None:
        return []
    if not isinstance(value, dict):
        return [Problem((), f"{_NOT_JSON}: expected an object, got {type(value).__name__}")]
    problems = [Problem(path, f'{_NOT_STRICT}: duplicate field "{format_path(path)}"') for path in duplicates]
    problems += _find_foreign_kind(value)
    for one in find_problems(NetworkConfig, value, (), strict=True):
        if one.path in (("apiVersion",), ("kind",)):
            continue
        problems.append(_as_upstream(one))
    problems += find_value_problems(value)
    problems += [
        Problem(path, "not supported by this release: interfaces stay on the host, only RDMA devices are handed out")
        for path in _given_paths(value)
        if path in UNSUPPORTED
    ]
    return problems


def _as_upstream(problem: Problem) -> Problem:
    if problem.what.startswith("unknown field"):
        what = f'{_NOT_STRICT}: unknown field "{format_path(problem.path)}"'
        return Problem(problem.path, what, problem.remedy)
    return Problem(problem.path, f"{_NOT_JSON}: {problem.what}", problem.remedy)


def _find_foreign_kind(value: Mapping[str, object]) -> list[Problem]:
    """GPU drivers' parameters have a kind, NetworkConfig has none: one pasted here was meant for another driver."""
    given = [name for name in ("apiVersion", "kind") if name in value]
    if not given:
        return []
    shown = " ".join(str(value[name])[:80] for name in given)
    what = f'{_NOT_STRICT}: unknown field "{given[0]}": these are parameters of {shown}, not of this driver'
    return [Problem((given[0],), what, "NetworkConfig has neither apiVersion nor kind; see also opaque.driver")]


def _given_paths(value: Mapping[str, object]) -> Iterator[Path]:
    """Every field that says something; empty strings and lists, null and {} say nothing, as in Go's zero values."""
    for name, inner in value.items():
        if name == "interface" and isinstance(inner, Mapping):
            yield from (("interface", str(key)) for key, one in inner.items() if one not in (None, "", []))
        elif inner not in (None, "", [], {}):
            yield (name,)


def _load(raw: object) -> tuple[object, list[Path]]:
    """The JSON value and the paths of duplicate fields. Raises ValueError if it is none."""
    if not isinstance(raw, bytes | str | msgspec.Raw):
        return raw, []
    text = raw if isinstance(raw, str) else bytes(raw).decode()
    if len(text) > _MOST_BYTES:
        raise ValueError(f"longer than {_MOST_BYTES} bytes")
    if not text.strip():
        return None, []
    repeated: dict[int, list[str]] = {}

    def build(pairs: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs]
            repeated[id(made)] = [name for name in made if names.count(name) > 1]
        return made

    try:
        value = json.loads(text, object_pairs_hook=build, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value, list(_find_repeated(value, (), repeated)) if repeated else []


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _find_repeated(value: object, path: Path, repeated: Mapping[int, list[str]]) -> Iterator[Path]:
    """Where the objects that had a name twice came to lie. One that was itself overwritten is not there any more."""
    if isinstance(value, dict):
        yield from ((*path, name) for name in repeated.get(id(value), ()))
        for name, inner in value.items():
            yield from _find_repeated(inner, (*path, name), repeated)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _find_repeated(inner, (*path, index), repeated)
