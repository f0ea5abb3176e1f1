"""What Prometheus is told. DRANET's names and labels are kept, so its dashboards and alerts work; ours stand beside."""

from fishplate.driver.exposition import Family, Histogram, Number


class Metrics:
    def __init__(self) -> None:
        self._families: list[Family[Number] | Family[Histogram]] = []
        self.dra_requests = self._counter(
            "dranet_driver_dra_plugin_requests_total", "Calls of the kubelet, per claim.", "method", "status"
        )
        self.dra_seconds = self._histogram(
            "dranet_driver_dra_plugin_requests_latency_seconds", "Time for a call of the kubelet.", "method"
        )
        self.nri_requests = self._counter(
            "dranet_driver_nri_plugin_requests_total", "Calls of the container runtime.", "method", "status"
        )
        self.nri_seconds = self._histogram(
            "dranet_driver_nri_plugin_requests_latency_seconds",
            "Time for a call of the container runtime.",
            "method",
            "status",
        )
        self.scans = self._counter("fishplate_scans_total", "Scans of the host.", "cause")
        self.scan_seconds = self._histogram("fishplate_scan_seconds", "Time for one scan of the host.").of()
        self.api_writes = self._counter("fishplate_api_writes_total", "Writes to the API server.", "kind", "status")
        self.devices = self._gauge("fishplate_devices", "Devices offered to the cluster.")
        self.held = self._gauge("fishplate_devices_held", "Devices held by prepared claims.")
        self.slice_generation = self._gauge("fishplate_slice_generation", "Generation of the published pool.")
        self.slice_dropped = self._gauge("fishplate_slice_fields_dropped", "Fields that the API server dropped.")
        self.status_waiting = self._gauge("fishplate_claim_status_waiting", "Claim statuses still to be written.")
        self.nri_connected = self._gauge("fishplate_nri_connected", "1 while the container runtime has us as a plugin.")
        self.nri_connections = self._counter("fishplate_nri_connections_total", "Times the runtime took us in.").of()
        self.kubelet_registered = self._gauge("fishplate_kubelet_registered", "1 while the kubelet has us registered.")
        self.metadata_age = self._gauge("fishplate_metadata_age_seconds", "Age of the cloud's facts about this node.")
        self.metadata_failures = self._gauge("fishplate_metadata_failures", "Failed reads of the cloud's facts so far.")
        self.without_devices = self._counter(
            "fishplate_containers_without_devices_total", "Containers found running without what their claim holds."
        ).of()

    def text(self) -> bytes:
        return "".join(f"{line}\n" for family in self._families for line in family.expose()).encode()

    def _counter(self, name: str, text: str, *labels: str) -> Family[Number]:
        family = Family("counter", name, text, labels, Number)
        self._families.append(family)
        return family

    def _gauge(self, name: str, text: str) -> Number:
        family = Family("gauge", name, text, (), Number)
        self._families.append(family)
        return family.of()

    def _histogram(self, name: str, text: str, *labels: str) -> Family[Histogram]:
        family = Family("histogram", name, text, labels, Histogram)
        self._families.append(family)
        return family
