"""The driver put together, started and stopped.

Order of the start: the pages (so that probes get an answer), a scan, a look for another driver of our name, the store,
then the kubelet's sockets, NRI and the publisher side by side. A part that fails for good ends the process: Kubernetes
starts it anew, and nothing is lost by that.
"""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Coroutine, Mapping
from pathlib import Path

from fishplate.driver.attach import Attacher
from fishplate.driver.cdi import SpecDirectory
from fishplate.driver.claims import ClaimReader
from fishplate.driver.events import EventWriter
from fishplate.driver.feature_file import FeatureFile
from fishplate.driver.filter import DEFAULT_FILTER, compile_filter
from fishplate.driver.health import HealthBoard
from fishplate.driver.http import Page, serve_pages
from fishplate.driver.inventory import Cause, NodeInventory
from fishplate.driver.memory import give_back
from fishplate.driver.metered import MeteredDra, MeteredNri
from fishplate.driver.metrics import Metrics
from fishplate.driver.neighbours import refuse_if_occupied
from fishplate.driver.options import Options
from fishplate.driver.pages import Pages, starting_pages
from fishplate.driver.prepare import Preparer, Rules
from fishplate.driver.publish import Publisher, PublishState
from fishplate.driver.reporter import Reporter
from fishplate.driver.sharing import SharedClaims
from fishplate.driver.status import StatusWriter
from fishplate.driver.store import open_store
from fishplate.driver.survey import Allowance, Survey
from fishplate.errors import FishplateError, OutsideError
from fishplate.hardware.catalog import load_catalog
from fishplate.k8s.api import Api, connect
from fishplate.node import rdma
from fishplate.node.events import KernelEvents
from fishplate.node.metadata import DeviceId, Provider, Refresher, choose_provider
from fishplate.node.scan import scan
from fishplate.node.tree import Tree
from fishplate.topology.attributes import Value
from fishplate.topology.inventory import Inventory, Nic
from fishplate.topology.slices import publish_slices
from fishplate.wire.kubelet_server import (
    KubeletServer,
    Registration,
    RegistrationPhase,
    SocketPaths,
    plan_socket_paths,
)
from fishplate.wire.nri_plugin import Phase, Plugin, PluginState

_ORPHANS_EVERY_S = 600.0
_log = logging.getLogger("fishplate.driver")


class Driver:
    """Everything one node's driver consists of."""

    def __init__(self, options: Options, api: Api, node: str) -> None:
        self._options = options
        self._api = api
        self._node = node
        self._settled = False
        self.metrics = Metrics()
        self._filter = compile_filter(DEFAULT_FILTER if options.filter is None else options.filter)
        self._catalog = load_catalog()
        self._size = self._catalog.find(options.size) if options.size else None
        self._inventory = NodeInventory(self._scan, still_there=self._is_still_there, on_scan=self._on_scan)
        self._store = open_store(options.db_path)
        self._health = HealthBoard(node)
        self._publisher = Publisher(
            api,
            driver=options.driver_name,
            node=node,
            on_change=self._on_publish,
            on_write=lambda outcome: self.metrics.api_writes.of("resource-slice", outcome).inc(),
        )
        self._status = StatusWriter(
            api,
            manager=options.driver_name,
            on_write=lambda outcome: self.metrics.api_writes.of("claim-status", outcome).inc(),
        )
        self._events = EventWriter(api, component=options.driver_name, node=node)
        self._reporter = Reporter(
            driver=options.driver_name,
            status=self._status,
            events=self._events,
            metrics=self.metrics,
            store=self._store,
        )
        reader = ClaimReader(api)
        self._preparer = Preparer(
            rules=Rules(
                driver=options.driver_name,
                node=node,
                cdi=options.injection != "nri",
                management=options.allow_management_nodes,
                nccl=options.nccl_environment,
            ),
            store=self._store,
            specs=SpecDirectory(options.cdi_dir, options.driver_name),
            inventory=self._inventory,
            reader=reader,
            listener=self._reporter,
            running=lambda claim: self._attacher.runs(claim),
            attached=lambda: self._plugin.state.phase is Phase.SYNCHRONISED,
        )
        sharing = SharedClaims(reader, self._store, self._preparer, required=options.injection == "nri")
        self._attacher = Attacher(
            self._store,
            driver=options.driver_name,
            inject=options.injection != "cdi",
            find_shared=sharing.find,
            on_missing=self._reporter.missing,
        )
        self._kubelet = KubeletServer(
            MeteredDra(self._preparer, self._health, self.metrics),
            driver=options.driver_name,
            paths=_socket_paths(options),
            on_change=self._on_registration,
        )
        self._plugin = Plugin(
            MeteredNri(self._attacher, self.metrics),
            name=options.driver_name,
            index=options.nri_index,
            socket=options.nri_socket,
            on_change=self._on_nri,
        )
        self._survey = Survey(
            self._inventory,
            allowance=Allowance(options.inventory_min_poll_interval, options.inventory_poll_burst),
            interval=options.inventory_max_poll_interval,
        )
        self._facts: Refresher | None = None
        self._pages = Pages(
            kubelet=lambda: self._kubelet.registration,
            reachable=lambda: self._kubelet.is_reachable,
            nri=(lambda: self._plugin.state) if options.nri_socket else None,
            publisher=lambda: self._publisher.state,
            metrics=self._current_metrics,
        )
        self._features = FeatureFile(Path(options.node_features_file)) if options.node_features_file else None

    # -- life ----------------------------------------------------------------------------------------------------

    async def run(self, stop: asyncio.Event, pages: dict[str, Page]) -> None:
        """`pages` are those being served; ours take their place."""
        try:
            await self._start()
            pages.update(self._pages.by_path)
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(work) for work in self._work()]
                await self._kubelet.start()
                await stop.wait()
                _log.info("stopping: the kubelet's sockets first, so that nothing new begins")
                await self._kubelet.stop()
                await self._plugin.stop()
                for task in tasks:
                    task.cancel()
        finally:
            self._store.close()

    def look_again(self) -> None:
        """On request: SIGHUP."""
        self._survey.request()

    async def _start(self) -> None:
        inventory = await self._inventory.rescan("start")
        self._preparer.restore()
        self._preparer.follow(inventory)
        self._reporter.resume()
        provider = _choose_provider(self._options, cloud=inventory.host.cloud)
        self._facts = Refresher(provider, on_change=self._publish)

    def _work(self) -> list[Coroutine[object, object, None]]:
        assert self._facts is not None
        work = [
            self._facts.run(),
            self._publish_first(),
            self._publisher.run(),
            self._status.run(),
            self._events.run(),
            self._survey.run(),
            self._release_orphans(),
        ]
        if self._options.nri_socket:
            work.append(self._plugin.run())
        if not self._options.root.strip("/"):
            work.append(self._survey.listen(KernelEvents()))
        return work

    async def _publish_first(self) -> None:
        """The cloud's facts get a moment to arrive, so that the first slice is the last one for a while."""
        assert self._facts is not None
        await self._facts.settled()
        self._settled = True
        self._publish()
        await self._kubelet.wait_until(RegistrationPhase.REGISTERED)
        give_back()

    async def _release_orphans(self) -> None:
        while True:
            try:
                for claim in await self._preparer.release_orphans():
                    _log.warning("claim %s (%s) is gone and was never unprepared: released", claim, claim.uid)
            except OutsideError as error:
                _log.warning("cannot look for claims that are gone: %s", error)
            await asyncio.sleep(_ORPHANS_EVERY_S)

    # -- what is here, and what is told of it --------------------------------------------------------------------

    def _scan(self) -> Inventory:
        with self.metrics.scan_seconds.time():
            return scan(Tree(self._options.root), catalog=self._catalog, size=self._size)

    def _is_still_there(self, nic: Nic) -> bool:
        tree = Tree(self._options.root)
        address = nic.pci.address if nic.pci else ""
        return all(rdma.is_still_there(tree, device, address) for device in nic.rdma)

    def _on_scan(self, cause: Cause, inventory: Inventory) -> None:
        self.metrics.scans.of(cause).inc()
        self._health.note(inventory)
        self._preparer.follow(inventory)
        if self._facts is not None:
            self._facts.ask_about(_device_id(nic) for nic in inventory.nics)
        self._publish()

    def _publish(self) -> None:
        if self._facts is None or not self._settled:
            return
        facts = self._facts.facts

        def attributes_of(nic: Nic) -> Mapping[str, Value]:
            return facts.of_device(_device_id(nic))

        # In exclusive mode a pod could not use what it is given: nothing is offered rather than refused later.
        exclusive = self._inventory.now.host.rdma_netns == "exclusive"
        if exclusive:
            _log.warning("RDMA devices belong to one network namespace each; set `rdma system set netns shared`")
        slices = publish_slices(
            self._inventory.now,
            node=self._node,
            driver=self._options.driver_name,
            publish_uuid=self._options.publish_gpu_uuid,
            attributes_of=attributes_of,
            keep=lambda device: not exclusive and self._filter.judge(device.attributes).keep,
        )
        self._publisher.want(slices)
        if self._features:
            try:
                self._features.update(facts)
            except OutsideError as error:
                _log.error("%s", error)

    # -- what others say -----------------------------------------------------------------------------------------

    def _on_publish(self, state: PublishState) -> None:
        self.metrics.devices.set(state.devices)
        self.metrics.slice_generation.set(state.generation)
        self.metrics.slice_dropped.set(len(state.dropped))

    def _on_registration(self, registration: Registration) -> None:
        self.metrics.kubelet_registered.set(registration.phase is RegistrationPhase.REGISTERED)
        _log.info("kubelet: %s %s", registration.phase.value, registration.error)

    def _on_nri(self, state: PluginState) -> None:
        up = state.phase is Phase.SYNCHRONISED
        self.metrics.nri_connected.set(up)
        if up:
            self.metrics.nri_connections.inc()

    def _current_metrics(self) -> bytes:
        if self._facts is not None:
            state = self._facts.facts.state
            self.metrics.metadata_age.set(state.age_seconds or 0.0)
            self.metrics.metadata_failures.set(state.failures)
        self.metrics.status_waiting.set(self._status.waiting)
        return self.metrics.text()


def _device_id(nic: Nic) -> DeviceId:
    interface = nic.interface
    return DeviceId(
        mac=interface.mac if interface else "",
        pci_address=nic.pci.address if nic.pci else "",
        name=interface.name if interface else "",
    )


def node_name(options: Options, environment: Mapping[str, str]) -> str:
    """As the kubelet registers it: told, or the host's name in lower case."""
    return options.hostname_override or environment.get("NODE_NAME", "") or os.uname().nodename.lower()


async def run_driver(options: Options) -> None:
    """Until SIGTERM or SIGINT."""
    _check(options)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, lambda: None)  # there is nothing to look at again yet
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    node = node_name(options, os.environ)
    _log.info("driver %s on node %s", options.driver_name, node)
    api = connect(options.kubeconfig)
    pages = starting_pages()
    server = await _serve(options, pages)
    try:
        if await _is_ours(api, options, node, stop):
            driver = Driver(options, api, node)
            loop.add_signal_handler(signal.SIGHUP, driver.look_again)
            await driver.run(stop, pages)
    except* FishplateError as group:
        raise group.exceptions[0] from group  # one error of many is shown as itself
    finally:
        server.close()
        await api.close()


async def _serve(options: Options, pages: dict[str, Page]) -> asyncio.Server:
    try:
        return await serve_pages(*options.listen, pages)
    except OSError as error:
        where = f"--bind-address {options.bind_address}"
        raise OutsideError(error.strerror or str(error), where=where, remedy="give another port") from error


async def _is_ours(api: Api, options: Options, node: str, stop: asyncio.Event) -> bool:
    """Nothing is touched before it is known that this node is ours to serve. False when we are stopped first."""
    backoff = 1.0
    registration = _socket_paths(options).registration
    while not stop.is_set():
        try:
            await refuse_if_occupied(api, driver=options.driver_name, node=node, registration=registration)
            return True
        except OutsideError as error:
            _log.warning("waiting for the API server: %s", error)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(backoff):
                await stop.wait()
        backoff = min(backoff * 2, 30.0)
    return False


def _socket_paths(options: Options) -> SocketPaths:
    root = Path(options.kubelet_root_dir)
    return plan_socket_paths(options.driver_name, plugins=root / "plugins", registry=root / "plugins_registry")


def _check(options: Options) -> None:
    """Flags that can be wrong whatever the cluster says, before it is asked."""
    compile_filter(DEFAULT_FILTER if options.filter is None else options.filter)
    _choose_provider(options, cloud="")


def _choose_provider(options: Options, *, cloud: str) -> Provider:
    return choose_provider(
        options.cloud_provider_hint,
        cloud=cloud,
        file=options.metadata_file,
        webhook_url=options.webhook_url,
        azure_endpoint=options.metadata_endpoint,
    )
