"""A service without sockets, driven by requests; and tests that are coroutines."""

import asyncio
import inspect
import json
from collections.abc import Callable
from typing import Any

import pytest

from fishplate.sim.apiserver.request import Answer, Request
from fishplate.sim.apiserver.service import Service

TOKEN = "secret"
Ask = Callable[..., Any]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine gets an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture
def service() -> Service:
    return Service({TOKEN: "admin"})


def send(service: Service, method: str, path: str, body: object = None, **query: str) -> Answer:
    kind = "application/json" if method != "PATCH" else "application/merge-patch+json"
    if method == "PATCH" and "fieldManager" in query:
        kind = "application/apply-patch+yaml"
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": kind, "user-agent": "test/1"}
    data = b"" if body is None else json.dumps(body).encode()
    answer = service.answer(Request(method, path, query, headers, data))
    while service.collector.step():
        pass
    return answer


@pytest.fixture
def ask(service: Service) -> Ask:
    """The decoded body of the answer; its status is checked."""

    def ask(method: str, path: str, body: object = None, *, status: int = 0, **query: str) -> Any:  # noqa: ANN401
        answer = send(service, method, path, body, **query)
        assert answer.status == status if status else answer.status < 300, answer.body
        return json.loads(answer.body)

    return ask
