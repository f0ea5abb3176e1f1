"""What `fishplate driver` can be told. DRANET's names and meanings where DRANET has them."""

from typing import Literal

import msgspec

Injection = Literal["auto", "cdi", "nri"]
LogFormat = Literal["text", "json"]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    # DRANET's
    kubeconfig: str = ""
    bind_address: str = ":9177"
    hostname_override: str = ""
    filter: str | None = None
    db_path: str = "/run/fishplate/driver.db"
    inventory_min_poll_interval: float = 2.0
    inventory_max_poll_interval: float = 60.0
    inventory_poll_burst: int = 5
    cloud_provider_hint: str = ""
    webhook_url: str = ""
    kubelet_root_dir: str = "/var/lib/kubelet"
    # ours
    driver_name: str = "dra.net"
    root: str = "/"
    size: str = ""
    cdi_dir: str = "/var/run/cdi"
    nri_socket: str = "/var/run/nri/nri.sock"
    nri_index: str = "10"
    injection: Injection = "auto"
    allow_management_nodes: bool = False
    nccl_environment: bool = False
    metadata_file: str = ""
    metadata_endpoint: str = ""
    node_features_file: str = ""
    publish_gpu_uuid: bool = False
    log_format: LogFormat = "text"
    verbosity: int = 2

    @property
    def listen(self) -> tuple[str, int]:
        host, _, port = self.bind_address.rpartition(":")
        return host.strip("[]"), int(port)
