"""What Prometheus is told. DRANET's names and labels are kept, so its dashboards and alerts work; ours stand beside."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

# From a device node added in memory to a claim that waits for the API server.
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=self.registry)

        def histogram(name: str, text: str, *labels: str) -> Histogram:
            return Histogram(name, text, labels, registry=self.registry, buckets=_BUCKETS)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(name, text, labels, registry=self.registry)

        self.dra_requests = counter(
            "dranet_driver_dra_plugin_requests_total", "Calls of the kubelet, per claim.", "method", "status"
        )
        self.dra_seconds = histogram(
            "dranet_driver_dra_plugin_requests_latency_seconds", "Time for a call of the kubelet.", "method"
        )
        self.nri_requests = counter(
            "dranet_driver_nri_plugin_requests_total", "Calls of the container runtime.", "method", "status"
        )
        self.nri_seconds = histogram(
            "dranet_driver_nri_plugin_requests_latency_seconds",
            "Time for a call of the container runtime.",
            "method",
            "status",
        )
        self.scans = counter("fishplate_scans_total", "Scans of the host.", "cause")
        self.scan_seconds = histogram("fishplate_scan_seconds", "Time for one scan of the host.")
        self.devices = gauge("fishplate_devices", "Devices offered to the cluster.")
        self.held = gauge("fishplate_devices_held", "Devices held by prepared claims.")
        self.api_writes = counter("fishplate_api_writes_total", "Writes to the API server.", "kind", "status")
        self.slice_generation = gauge("fishplate_slice_generation", "Generation of the published pool.")
        self.slice_dropped = gauge("fishplate_slice_fields_dropped", "Fields of ours that the API server dropped.")
        self.status_waiting = gauge("fishplate_claim_status_waiting", "Claim statuses that are still to be written.")
        self.nri_connected = gauge("fishplate_nri_connected", "1 while the container runtime has us as a plugin.")
        self.nri_connections = counter("fishplate_nri_connections_total", "Times the runtime took us in.")
        self.kubelet_registered = gauge("fishplate_kubelet_registered", "1 while the kubelet has us registered.")
        self.metadata_age = gauge("fishplate_metadata_age_seconds", "Age of the cloud's facts about this node.")
        self.metadata_failures = counter("fishplate_metadata_failures_total", "Failed reads of the cloud's facts.")
        self.without_devices = counter(
            "fishplate_containers_without_devices_total", "Containers found running without what their claim holds."
        )

    def text(self) -> bytes:
        return generate_latest(self.registry)
