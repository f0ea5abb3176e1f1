"""Rules about the form of a claim: what the API server would refuse, and what it ought to."""

from collections.abc import Iterator

from fishplate.cel import COST_LIMIT, MAX_EXPRESSION_BYTES
from fishplate.dra.intent_classes import NIC_DRIVER
from fishplate.dra.lint_subject import Hit, Setting, Subject
from fishplate.dra.parameters import find_parameter_problems, phrase
from fishplate.findings import Verdict
from fishplate.k8s.claim import ALL
from fishplate.k8s.resource import MAX_RESULTS_PER_CLAIM

# Limits of resource.k8s.io/v1 (staging/src/k8s.io/api/resource/v1/types.go).
_MAX_REQUESTS = _MAX_CONSTRAINTS = _MAX_SELECTORS = 32
_MAX_ALTERNATIVES = 8


def find_compile_errors(subject: Subject, setting: Setting) -> Iterator[Hit]:
    for one in setting.read_selectors(subject):
        if isinstance(one.program, str):
            yield Hit(one.path, f"request {one.asked.name}: {one.program}", evidence=one.text)


def find_costly_selectors(subject: Subject, setting: Setting) -> Iterator[Hit]:
    for one in setting.read_selectors(subject):
        size = len(one.text.encode())
        if size > MAX_EXPRESSION_BYTES:
            yield Hit(one.path, f"the selector has {size} bytes, the API server takes {MAX_EXPRESSION_BYTES}")
        elif not isinstance(one.program, str) and one.program.too_expensive:
            yield Hit(one.path, f"the selector may cost {one.program.cost}, the API server takes {COST_LIMIT}")


def find_double_constraints(subject: Subject, setting: Setting) -> Iterator[Hit]:
    for index, one in enumerate(subject.devices.constraints):
        if (one.match_attribute is None) == (one.distinct_attribute is None):
            said = "both matchAttribute and distinctAttribute" if one.match_attribute else "no attribute"
            yield Hit(("constraints", index), f"the constraint names {said}")


def find_unknown_requests(subject: Subject, setting: Setting) -> Iterator[Hit]:
    known = {request.name for request in subject.devices.requests} | {asked.name for asked in subject.asked}
    named = [("constraints", index, one.requests) for index, one in enumerate(subject.devices.constraints)]
    named += [("config", index, one.requests) for index, one in enumerate(subject.devices.config)]
    for field, index, requests in named:
        for number, name in enumerate(requests):
            if name not in known:
                path = (field, index, "requests", number)
                yield Hit(path, f"there is no request {name!r}", evidence=f"requests: {', '.join(sorted(known))}")


def find_bad_parameters(subject: Subject, setting: Setting) -> Iterator[Hit]:
    """What the NIC driver would refuse when the pod starts, and leave it waiting for ever."""
    for index, one in enumerate(subject.devices.config):
        if one.opaque is None or one.opaque.driver != NIC_DRIVER:
            continue
        for problem in find_parameter_problems(one.opaque.parameters):
            yield Hit(("config", index, "opaque", "parameters", *problem.path), phrase(problem), remedy=problem.remedy)


def find_excess(subject: Subject, setting: Setting) -> Iterator[Hit]:
    devices = subject.devices
    total = sum(asked.number for asked in subject.asked if asked.mode != ALL and "/" not in asked.name)
    if total > MAX_RESULTS_PER_CLAIM:
        yield Hit(("requests",), f"{total} devices in one claim, the limit is {MAX_RESULTS_PER_CLAIM}")
    for field, number, limit in (
        ("requests", len(devices.requests), _MAX_REQUESTS),
        ("constraints", len(devices.constraints), _MAX_CONSTRAINTS),
    ):
        if number > limit:
            yield Hit((field,), f"{number} {field}, the limit is {limit}")
    for index, request in enumerate(devices.requests):
        if len(request.first_available) > _MAX_ALTERNATIVES:
            said = f"{len(request.first_available)} alternatives, the limit is {_MAX_ALTERNATIVES}"
            yield Hit(("requests", index, "firstAvailable"), said)
    for asked in subject.asked:
        if len(asked.selectors) > _MAX_SELECTORS:
            yield Hit((*asked.path, "selectors"), f"{len(asked.selectors)} selectors, the limit is {_MAX_SELECTORS}")


def find_shapeless_requests(subject: Subject, setting: Setting) -> Iterator[Hit]:
    for index, request in enumerate(subject.devices.requests):
        if (request.exactly is None) == (not request.first_available):
            said = "neither" if request.exactly is None else "both"
            yield Hit(("requests", index), f"request {request.name} has {said} of `exactly` and `firstAvailable`")


def find_unknown_classes(subject: Subject, setting: Setting) -> Iterator[Hit]:
    if setting.scene is None:
        return
    for asked in subject.asked:
        if asked.class_name not in setting.classes:
            path = (*asked.path, "deviceClassName")
            known = ", ".join(sorted(setting.classes))
            said = f"request {asked.name}: nobody here knows a DeviceClass {asked.class_name!r}"
            yield Hit(path, said, evidence=f"known: {known}", verdict=Verdict.CANNOT_TELL)
