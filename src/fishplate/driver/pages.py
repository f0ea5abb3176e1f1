"""What /healthz, /readyz and /metrics answer. They tell the truth: a driver that cannot serve a pod is not ready."""

from collections.abc import Callable
from http import HTTPStatus

from fishplate.driver.http import METRICS, Answer, Page, plain
from fishplate.driver.publish import PublishState
from fishplate.wire.kubelet_server import Registration, RegistrationPhase
from fishplate.wire.nri_plugin import Phase, PluginState


def starting_pages() -> dict[str, Page]:
    """Until it is known that this node is ours to serve."""
    return {
        "/healthz": lambda: plain(HTTPStatus.OK, "ok\n"),
        "/readyz": lambda: plain(HTTPStatus.SERVICE_UNAVAILABLE, "waiting for the API server\n"),
        "/metrics": lambda: (HTTPStatus.OK, METRICS, b""),
    }


class Pages:
    def __init__(
        self,
        *,
        kubelet: Callable[[], Registration],
        reachable: Callable[[], bool],
        nri: Callable[[], PluginState] | None,
        publisher: Callable[[], PublishState],
        metrics: Callable[[], bytes],
    ) -> None:
        self._kubelet = kubelet
        self._reachable = reachable
        self._nri = nri
        self._publisher = publisher
        self._metrics = metrics

    @property
    def by_path(self) -> dict[str, Page]:
        return {"/healthz": self._healthz, "/readyz": self._readyz, "/metrics": self._metrics_page}

    def _healthz(self) -> Answer:
        """Alive: the loop answers. Anything that ends a part for good ends the process."""
        return plain(HTTPStatus.OK, "ok\n")

    def _readyz(self) -> Answer:
        problems = self.problems()
        if problems:
            return plain(HTTPStatus.SERVICE_UNAVAILABLE, "".join(f"{problem}\n" for problem in problems))
        return plain(HTTPStatus.OK, "ok\n")

    def _metrics_page(self) -> Answer:
        return HTTPStatus.OK, METRICS, self._metrics()

    def problems(self) -> list[str]:
        """What keeps a pod on this node from getting its devices, or from being scheduled here."""
        problems = []
        registration = self._kubelet()
        if registration.phase is not RegistrationPhase.REGISTERED:
            problems.append(f"kubelet: {registration.phase.value} {registration.error}".rstrip())
        elif not self._reachable():
            problems.append("kubelet: somebody removed our sockets; restart the driver")
        if self._nri and (state := self._nri()).phase is not Phase.SYNCHRONISED:
            problems.append(f"NRI: {state.phase.value} {state.error}".rstrip())
        published = self._publisher()
        if not published.published:
            problems.append(f"slices: not published {published.error}".rstrip())
        elif published.error:
            problems.append(f"slices: {published.error}")
        return problems
