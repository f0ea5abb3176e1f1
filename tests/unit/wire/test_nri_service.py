"""Methods become calls of the handler: old and new names, pieces, and what is refused."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from fishplate.errors import OutsideError
from fishplate.wire import nri_service
from fishplate.wire.nri import Event, RuntimeInfo, Update
from fishplate.wire.nri_service import PLUGIN, PluginService
from fishplate.wire.proto import nri_pb2 as pb
from fishplate.wire.ttrpc import Code, Request, StatusError
from tests.recording import Recorder

if TYPE_CHECKING:
    from google.protobuf.message import Message

POD = pb.PodSandbox(
    id="s", uid="u", linux=pb.LinuxPodSandbox(namespaces=[pb.LinuxNamespace(type="network", path="/n")])
)
CONTAINER = pb.Container(id="c", name="main")
EVERYTHING = Event(0x1FFF)


class Served:
    """A service, its handler, and the progress it told."""

    def __init__(self, events: Event = EVERYTHING) -> None:
        self.handler = Recorder(events)
        self.runtimes: list[RuntimeInfo] = []
        self.synchronised = 0
        self._service = PluginService(
            self.handler, on_configured=self.runtimes.append, on_synchronised=self._note_synchronised
        )

    def _note_synchronised(self) -> None:
        self.synchronised += 1

    def ask(self, method: str, message: Message | None = None, *, service: str = PLUGIN) -> bytes:
        payload = message.SerializeToString() if message is not None else b""
        result = self._service.serve(Request(service, method, payload, None))
        return result if isinstance(result, bytes) else asyncio.run(result)


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ("RunPodSandbox", "run u /n"),
        ("StopPodSandbox", "stop u /n"),
        ("RemovePodSandbox", "remove u"),
        ("UpdatePodSandbox", "UPDATE_POD_SANDBOX u/"),
        ("PostUpdatePodSandbox", "POST_UPDATE_POD_SANDBOX u/"),
        ("PostCreateContainer", "POST_CREATE_CONTAINER u/main"),
        ("StartContainer", "START_CONTAINER u/main"),
        ("PostStartContainer", "POST_START_CONTAINER u/main"),
        ("UpdateContainer", "UPDATE_CONTAINER u/main"),
        ("PostUpdateContainer", "POST_UPDATE_CONTAINER u/main"),
        ("StopContainer", "STOP_CONTAINER u/main"),
        ("RemoveContainer", "REMOVE_CONTAINER u/main"),
        ("CreateContainer", "create u/main"),
    ],
)
def test_every_event_has_a_method_of_its_own(method: str, told: str) -> None:
    served = Served()
    served.ask(method, pb.ContainerRequest(pod=POD, container=CONTAINER))
    assert served.handler.told == [told]


@pytest.mark.parametrize(
    ("number", "told"), [(1, "run u /n"), (2, "stop u /n"), (3, "remove u"), (11, "REMOVE_CONTAINER u/main")]
)
def test_old_runtimes_tell_events_by_state_change(number: int, told: str) -> None:
    served = Served()
    assert served.ask("StateChange", pb.StateChangeEvent(event=number, pod=POD, container=CONTAINER)) == b""
    assert served.handler.told == [told]


@pytest.mark.parametrize("number", [0, -1, 4, 14, 15, 2**31 - 1, -(2**31)])
def test_a_state_change_nobody_knows_is_taken_and_nothing_happens(number: int) -> None:
    served = Served()
    assert served.ask("StateChange", pb.StateChangeEvent(event=number, pod=POD)) == b""
    assert served.handler.told == []


@pytest.mark.parametrize(("service", "method"), [("other.Service", "Configure"), (PLUGIN, "Foo"), (PLUGIN, "")])
def test_what_is_not_implemented_is_told_so(service: str, method: str) -> None:
    with pytest.raises(StatusError, match=f"service {service}|method {method}") as caught:
        Served().ask(method, service=service)
    assert caught.value.code == Code.UNIMPLEMENTED


def test_bytes_that_are_no_message_are_refused() -> None:
    with pytest.raises(StatusError, match="unmarshalling") as caught:
        Served().ask("CreateContainer", pb.KeyValue(key="\x07\x7f\x7f"))
    assert caught.value.code == Code.INTERNAL


def test_configure_tells_who_and_how_long_to_wait() -> None:
    served = Served()
    request = pb.ConfigureRequest(runtime_name="containerd", runtime_version="v2.2.1", request_timeout=1500)
    answer = pb.ConfigureResponse.FromString(served.ask("Configure", request))
    assert answer.events == EVERYTHING
    assert served.runtimes == [served.handler.runtime]
    runtime = served.runtimes[0]
    assert (runtime.nri_version, runtime.request_timeout, runtime.registration_timeout) == ((0, 11, 0), 1.5, 5.0)


def test_configure_asks_an_old_runtime_only_for_what_it_knows() -> None:
    request = pb.ConfigureRequest(runtime_name="containerd", runtime_version="v1.7.28")
    assert pb.ConfigureResponse.FromString(Served().ask("Configure", request)).events == 0x7FF


def test_configure_never_asks_for_nothing_since_that_means_everything() -> None:
    request = pb.ConfigureRequest(runtime_name="containerd", runtime_version="v1.7.28")
    served = Served(Event.UPDATE_POD_SANDBOX)
    with pytest.raises(OutsideError, match="knows none of the events"):
        served.ask("Configure", request)
    assert served.runtimes == []


def test_a_synchronize_in_pieces_is_one_for_the_handler() -> None:
    served = Served()
    served.handler.updates = [Update(container_id="c2", mems="0")]
    for name in ("c0", "c1"):
        piece = pb.SynchronizeRequest(pods=[POD], containers=[pb.Container(id=name)], more=True)
        answer = pb.SynchronizeResponse.FromString(served.ask("Synchronize", piece))
        assert (answer.more, list(answer.update)) == (True, [])
    assert (served.handler.told, served.synchronised) == ([], 0)
    last = pb.SynchronizeResponse.FromString(
        served.ask("Synchronize", pb.SynchronizeRequest(containers=[pb.Container(id="c2")]))
    )
    assert (last.more, [one.container_id for one in last.update]) == (False, ["c2"])
    assert [container.id for container in served.handler.containers] == ["c0", "c1", "c2"]
    assert (len(served.handler.pods), served.handler.told, served.synchronised) == (2, ["synchronize"], 1)


def test_a_synchronize_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nri_service, "MAX_SYNCHRONIZE", 10_000)
    served = Served()
    piece = pb.SynchronizeRequest(pods=[pb.PodSandbox(id="x" * 3000)], more=True)
    for _ in range(3):
        served.ask("Synchronize", piece)
    with pytest.raises(StatusError, match="more than 10000 bytes") as caught:
        served.ask("Synchronize", piece)
    assert caught.value.code == Code.RESOURCE_EXHAUSTED


def test_shutdown_is_acknowledged() -> None:
    assert Served().ask("Shutdown") == b""
